"""Every declared setting at its edges: words or work, never a traceback. A new setting is tested by existing."""

import math
import types
import typing

import pytest
from as_process import write_graph
from typer.testing import CliRunner

from hgde.cli.main import app
from hgde.pipeline.settings import default_flat_settings, flat_settings, make_settings
from hgde.sections import SettingsError, nested

FEW = 3
"""Values of each kind that the quick tests take; the slow ones take all."""

NUMBERS = ["-1", "nan", "99999999999999999999999999", "0", "1e400", "inf", "-inf", "--5", "", "abc", "1,2", "½"]
TEXTS = ["--5", "os:system", "\x00", "", " ", "nobody", "../..", "a:b", "x" * 5000, "Ł", "1", "null", "{}", "a=b"]
PLAIN = [10**400, math.nan, {"name": 3}, None, True, -1, 0, -(2**63), 1e308, 5e-324, math.inf, -math.inf,
         "", "x" * 10_000, "\x00", [], [[]], {}, ["a", 1], "os:system", object()]  # fmt: skip
LEAVES = sorted({leaf.path: leaf for owned in flat_settings().values() for leaf in owned}.items())


def kinds_of(leaf):
    options = typing.get_args(leaf.kind) if isinstance(leaf.kind, types.UnionType) else (leaf.kind,)
    return [option for option in options if option is not type(None)]


BOTH = [pytest.param(FEW, id="a few values"), pytest.param(99, id="all values", marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", BOTH)
@pytest.mark.parametrize("section", sorted({path.partition(".")[0] for path, _ in LEAVES}))
def test_any_value_for_any_setting_is_taken_or_refused(section, count):
    """In a file or from a program: nothing but our own error, in one line that names the setting."""
    for path, leaf in LEAVES:
        if path.partition(".")[0] != section:
            continue
        chosen = {f"{place}.name": entry for place, entry in leaf.owners}
        for value in PLAIN[:count]:
            try:
                make_settings(nested({**chosen, path: value})).to_dict()
            except SettingsError as error:
                words = str(error)
                assert len(words.splitlines()) == 1, path
                assert len(words) < 2500, (path, words)
            except (TypeError, ValueError, OverflowError, AttributeError) as error:
                raise AssertionError(f"{path} = {value!r:.60}: {error!r}") from error


def edges():
    for name, leaf in sorted(default_flat_settings().items()):
        if kinds_of(leaf)[0] is bool:
            continue
        is_number = any(kind in (int, float) for kind in kinds_of(leaf))
        yield pytest.param(f"--{name.replace('_', '-')}", NUMBERS if is_number else TEXTS, id=name)


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph"))


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, repr(result.exception))
    assert "Traceback" not in result.output
    return result


# Long or far-reaching, if taken: what a value means is then tested where the setting is.
_HARMLESS = ["--epochs", "1", "--preset", "none", "--width", "2", "--time", "1", "--threads", "1", "--quiet"]


@pytest.mark.slow
@pytest.mark.parametrize(("flag", "values"), list(edges()))
def test_every_flag_at_its_edges(flag, values, named, tmp_path, monkeypatch):
    """On the command line: exit code 2 and words, or a run."""
    monkeypatch.chdir(tmp_path)
    others = [word for pair in zip(_HARMLESS[::2], _HARMLESS[1::2], strict=False) for word in pair if pair[0] != flag]
    base = ["train", *([] if flag in ("--edges", "--nodes", "--data") else named), *others, "--quiet"]
    for number, value in enumerate(values):
        result = run(*base, flag, value, "--out", tmp_path / str(number))
        assert result.exit_code in (0, 2), (flag, value, result.output)
        if result.exit_code == 2:
            assert any(word in result.output for word in ("error:", "Error", "Usage")), result.output


COMMANDS = [
    ("info --edges EDGES --samples 1", "--samples"),
    ("info --edges EDGES --samples -5", "--samples"),
    ("info --edges EDGES --seed -1", "--seed"),
    ("compare --edges EDGES --trials 0", "--trials"),
    ("compare --edges EDGES --workers 0", "--workers"),
    ("compare --edges EDGES --minutes 0", "--minutes"),
    ("compare --edges EDGES --models nobody", "nobody"),
    ("tune --edges EDGES --folds 0", "--folds"),
    ("tune --edges EDGES --search-space nowhere.toml", "nowhere.toml"),
    ("reproduce nobody", "nobody"),
    ("list nobody", "nobody"),
    ("data nobody", "nobody"),
    ("data get nobody", "nobody"),
    ("orders --nobody", "nobody"),
    ("predict", "predict"),
    ("predict nowhere --import nobody.there", "nobody"),
    ("report nowhere --format pdf", "pdf"),
    ("explore nowhere --to-disk nobody", "nobody"),
    ("embed nowhere --to nobody", "nowhere"),
    ("train --resume nowhere --import nobody.there", "nobody"),
]


@pytest.mark.parametrize(("words", "said"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_other_commands_at_their_edges(words, said, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*({"EDGES": named[1]}.get(word, word) for word in words.split()))
    assert result.exit_code == 2, result.output
    assert said in result.output.replace("│", "")


def test_optuna_that_is_not_there(named, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "optuna", None)
    words = ["tune", *named, "--model", "mlp", "--trials", "2", "--folds", "1", "--workers", "1", "--epochs", "1"]
    result = run(*words, "--quiet", "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert "pip install 'hgde[search]'" in result.output


def test_a_label_that_looks_like_an_option(tmp_path):
    """``--5`` is a class like any other."""
    named = write_graph(tmp_path)
    table = (tmp_path / "nodes.csv").read_text().replace(",a,", ",--5,")
    (tmp_path / "nodes.csv").write_text(table)
    assert run("train", *named, *_HARMLESS, "--out", tmp_path / "run").exit_code == 0
    assert run("predict", tmp_path / "run", "--out", tmp_path / "p.csv").exit_code == 0
    assert "--5" in (tmp_path / "p.csv").read_text()


@pytest.mark.parametrize("given", ["nowhere", "", "\x00", "a" * 5000, __file__])
def test_loading_a_model_from_a_text(given):
    import hgde
    from hgde.pipeline import RunError

    load = getattr(hgde, "load_model", None) or hgde.pipeline.load
    with pytest.raises((RunError, OSError, ValueError)) as refused:
        load(given)
    assert len(str(refused.value).splitlines()) == 1
