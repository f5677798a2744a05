"""Where nothing is as usual: no home, an unknown user, nothing to write to, ASCII, optimised bytecode, other clocks."""

import json
import os

import pandas as pd
import pytest
from as_process import QUICK, SOURCE, several, write_graph

pytestmark = pytest.mark.slow


def use(folder, environment=None, flags=(), named=None, **options):
    """Train, measure, predict; the output."""
    named = named or write_graph(folder)
    commands = [
        ["train", *named, *QUICK, "--out", folder / "run"],
        ["info", *named],
        ["predict", folder / "run", "--out", folder / "table.csv"],
        ["evaluate", folder / "run"],
    ]
    done = several(commands, environment, flags, cwd=folder, **options)
    error = done.stderr.decode(errors="replace")
    last = done.stdout.decode(errors="replace").strip().splitlines()[-1] if done.stdout else ""
    assert done.returncode == 0, error
    assert json.loads(last)["codes"] == [0, 0, 0, 0], error
    assert "Traceback" not in error
    assert len(pd.read_csv(folder / "table.csv")) == 40
    return done


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({}, id="no HOME"),
        pytest.param({"HOME": "/nonexistent"}, id="a home that is not there"),
        pytest.param({"HOME": "HERE", "LANG": "C", "LC_ALL": "C"}, id="LANG=C"),
        pytest.param({"HOME": "HERE", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}, id="ASCII terminal"),
        pytest.param({"HOME": "HERE", "TZ": "Pacific/Kiritimati"}, id="fourteen hours ahead"),
        pytest.param({"HOME": "HERE", "TZ": "America/St_Johns", "COLUMNS": "20"}, id="a narrow terminal"),
    ],
)  # fmt: skip
def test_works_in(environment, tmp_path):
    use(tmp_path, {name: str(tmp_path) if value == "HERE" else value for name, value in environment.items()})


def test_optimised_bytecode(tmp_path):
    """Nothing that matters is an assert."""
    use(tmp_path, {"HOME": str(tmp_path)}, flags=("-O",))
    done = several([["predict", tmp_path / "nowhere"], ["train", "--split", "-1"]], {"HOME": str(tmp_path)}, ("-OO",))
    assert json.loads(done.stdout.splitlines()[-1])["codes"] == [2, 2]


def test_lines_that_end_as_on_windows(tmp_path):
    named = write_graph(tmp_path, "\r\n")
    use(tmp_path, {"HOME": str(tmp_path)}, named=named)
    (tmp_path / "s.toml").write_bytes(b"[model]\r\nwidth = 3\r\n")
    (tmp_path / "s.json").write_bytes(b'\xef\xbb\xbf{"model": {"width": 3}}\r\n')
    for name in ("s.toml", "s.json"):
        words = ["train", *named, "--settings", tmp_path / name, "--epochs", "1", "--preset", "none"]
        done = several([[*words, "--out", tmp_path / name[2:]]], {"HOME": str(tmp_path)})
        assert json.loads(done.stdout.splitlines()[-1])["codes"] == [0], done.stderr


@pytest.mark.skipif(not hasattr(os, "setuid") or os.getuid() != 0, reason="only root can become another user")
def test_an_unknown_user_who_may_write_nowhere_else(tmp_path):
    """As in a container: a number without a name, no home, and a package that cannot be written to."""
    place = tmp_path / "place"
    place.mkdir()
    named = write_graph(place)
    place.chmod(0o777)
    for above in place.parents:
        if above.stat().st_mode & 0o005 != 0o005:
            above.chmod(above.stat().st_mode | 0o055)

    def become():
        os.setgroups([])
        os.setgid(54321)
        os.setuid(54321)

    try:
        can_run = several([], {"TMPDIR": str(place)}, preexec_fn=become)
    except PermissionError:
        pytest.skip("the interpreter lies where other users may not go")
    if can_run.returncode != 0:
        pytest.skip("the interpreter cannot be run by other users")
    assert json.loads(can_run.stdout.splitlines()[-1])["uid"] == 54321
    assert not os.access(SOURCE, os.W_OK) or SOURCE.stat().st_uid == 0
    use(place, {"TMPDIR": str(place)}, named=named, preexec_fn=become)
    assert (place / "hgde-54321" / "kernels").is_dir(), "compiled kernels are kept where the user may write"
