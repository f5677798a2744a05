"""Full and read-only disks, on a small tmpfs: words, what was kept, nothing half-written."""

import json
import subprocess

import pytest
from as_process import QUICK, several, write_graph

pytestmark = pytest.mark.slow


@pytest.fixture
def disk(tmp_path):
    """A function that mounts a tmpfs of so many KiB; skipped where mounting is not allowed."""
    mounted = []

    def mount(kib, name="disk"):
        place = tmp_path / name
        place.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(place)], capture_output=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"mounting is not allowed here: {done.stderr.decode().strip()}")
        mounted.append(place)
        return place

    try:
        yield mount
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    finally:
        for place in mounted:
            subprocess.run(["umount", "-l", str(place)], check=False)


def refused(done, count=1):
    error = done.stderr.decode()
    assert "Traceback" not in error, error
    assert json.loads(done.stdout.splitlines()[-1])["codes"] == [2] * count, error
    return error


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    named = write_graph(folder)
    done = several([["train", *named, *QUICK, "--out", folder / "run"]], {"HOME": str(folder)})
    assert json.loads(done.stdout.splitlines()[-1])["codes"] == [0], done.stderr
    return folder


def leftovers(place):
    return [path for path in place.rglob("*") if path.name.endswith(".part") and path.is_file()]


@pytest.mark.parametrize("kib", [4, 12, 20, 28, 36])
def test_a_disk_that_fills_up_while_training(kib, disk, trained):
    """From no room for the data to no room for the summary; with room, it ends as if there always had been."""
    place, home = disk(kib), {"HOME": str(trained)}
    words = ["train", *write_graph(trained), *QUICK, "--out", place / "run"]
    error = refused(several([words], home))
    assert "No space left on device" in error
    assert not leftovers(place)
    for path in place.rglob("*.json"):
        json.loads(path.read_text())
    if "nothing was saved" in error:
        assert not (place / "run").exists()
    else:
        assert f"hgde train --resume {place / 'run'}" in error
        words = ["train", "--resume", place / "run", "--quiet"]
    subprocess.run(["mount", "-o", "remount,size=4000k", str(place)], check=True)
    done = several([words], home)
    assert json.loads(done.stdout.splitlines()[-1])["codes"] == [0], done.stderr
    stored = "run/seed-0/model.safetensors"
    assert (place / stored).read_bytes() == (trained / stored).read_bytes()


@pytest.mark.parametrize("words", ["predict", "embed", "report", "explore", "compare", "tune"])
def test_a_disk_without_room_for_results(words, disk, trained):
    place = disk(8)
    (place / "ballast").write_bytes(b"x" * 4096)
    run, named = trained / "run", write_graph(trained)
    quick = ["--trials", "1", "--workers", "1", "--quiet"]
    arguments = {
        "predict": ["predict", run, "--out", place / "out" / "t.csv"],
        "embed": ["embed", run, "--out", place / "out" / "z.csv"],
        "report": ["report", run, "--out", place / "out", "--no-baselines"],
        "explore": ["explore", run, "--out", place / "out" / "x.html"],
        "compare": ["compare", *named, "--models", "majority", "--splits", "1", *quick, "--out", place / "out"],
        "tune": ["tune", *named, "--model", "mlp", "--epochs", "2", "--folds", "1", *quick, "--out", place / "out"],
    }[words]
    assert "No space left on device" in refused(several([arguments], {"HOME": str(trained)}))
    assert (place / "ballast").read_bytes() == b"x" * 4096
    assert not leftovers(place)


def test_a_full_cache_costs_nothing_but_time(disk, trained, tmp_path):
    place = disk(4)
    (place / "ballast").write_bytes(b"x" * 4096)
    words = ["train", *write_graph(trained), *QUICK, "--diffusivity", "ricci", "--out", tmp_path / "run"]
    done = several([words], {"HOME": str(trained), "HGDE_CACHE": str(place)})
    assert json.loads(done.stdout.splitlines()[-1])["codes"] == [0], done.stderr


def test_a_read_only_disk(disk, trained):
    """A run there is used; nothing can be kept there."""
    import shutil

    place = disk(4000)
    shutil.copytree(trained / "run", place / "run")
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    named, home = write_graph(trained), {"HOME": str(trained)}
    used = several(
        [["evaluate", place / "run"], ["predict", place / "run", "--out", trained / "t.csv"], ["explore", place / "run",
          "--out", trained / "x.html"]],
        home,
    )  # fmt: skip
    assert json.loads(used.stdout.splitlines()[-1])["codes"] == [0, 0, 0], used.stderr
    done = several(
        [
            ["train", *named, *QUICK, "--out", place / "new"],
            ["train", "--resume", place / "run", "--epochs", "9"],
            ["predict", place / "run", "--out", place / "t.csv"],
            ["report", place / "run", "--no-baselines"],
        ],
        home,
    )
    assert refused(done, 4).count("Read-only file system") == 4
