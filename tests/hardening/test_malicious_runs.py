"""Run folders that mean harm: each kind is refused with one line, nothing is executed, nothing outside is touched."""

import json
import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from hgde.cli.main import app
from hgde.pipeline import fit, make_settings
from hgde.training import checkpoint

SETTINGS = {
    "preset": "none",
    "data": {"options": ["num_nodes=60"]},
    "model": {"width": 3, "time": 1.0},
    "training": {"epochs": 2},
    "run": {"threads": 1},
}
MODEL, CHECKPOINT = "seed-0/model.safetensors", "seed-0/checkpoint.safetensors"


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    fit(make_settings(SETTINGS), folder / "nodes")
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"{k},{k // 2}\n" for k in range(1, 30)))
    rows = "".join(f"{k},{k / 3},{k % 5}\n" for k in range(30))
    (folder / "nodes.csv").write_text(f"id,label,x\n{rows}")
    named = {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv")}
    fit(make_settings({**SETTINGS, "data": named, "task": {"name": "regression"}}), folder / "regression")
    return folder


class Case:
    """A copy of a good run, the canary, and ways to change it."""

    def __init__(self, run: Path, mark: Path) -> None:
        self.run, self.mark = run, mark

    def json(self, name, change):
        path = self.run / name
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    def setting(self, path, value):
        def change(content):
            inner = content["settings"]
            *parents, last = path.split(".")
            for key in parents:
                inner = inner[key]
            inner[last] = value

        self.json("settings.json", change)

    def tensors(self, name, change=None, meta=None):
        path = self.run / name
        tensors, described = checkpoint.load(path, allow_gaps=True)
        if change is not None:
            change(tensors)
        if meta is not None:
            meta(described)
        checkpoint.save(path, tensors, described)

    def weight(self, name, value, ending):
        def change(tensors):
            key = next(key for key in tensors if key.endswith(ending))
            tensors[key] = torch.full_like(tensors[key], value)

        self.tensors(name, change)

    def pickled(self):
        mark = self.mark

        class Bomb:
            def __reduce__(self):
                return Path.touch, (mark,)

        return pickle.dumps(Bomb())

    def link(self, name, to):
        path = self.run / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        path.symlink_to(to)


def drop_optimiser(case):
    case.tensors(CHECKPOINT, lambda t: [t.pop(key) for key in list(t) if key.startswith("optimiser/")])


def fifo(case):
    (case.run / "settings.json").unlink()
    os.mkfifo(case.run / "settings.json")


def sparse_file(case):
    with (case.run / MODEL).open("r+b") as file:
        file.truncate(1 << 42)


def linked_seed(case):
    outside = case.run.parent / "outside"
    shutil.move(case.run / "seed-0", outside)
    (case.run / "seed-0").symlink_to(outside)


def big_header(case):
    path = case.run / MODEL
    path.write_bytes((1 << 60).to_bytes(8, "little") + path.read_bytes()[8:])


def set_meta(*path, value):
    def change(meta):
        inner = meta
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


def data(change):
    """The stored data set with something changed, hash and all."""

    def spoil(case):
        from hgde.data.store import load_dataset, save_dataset

        path = case.run / "data.safetensors"
        made = change(load_dataset(path))
        save_dataset(path, made)
        case.json("run.json", lambda facts: facts.update(data_hash=made.hash))

    return spoil


def replaced(**parts):
    from dataclasses import replace

    return data(lambda dataset: replace(dataset, **{name: make(dataset) for name, make in parts.items()}))


def infinite_weights(dataset):
    from hgde.graph import Graph

    return Graph(
        dataset.graph.indptr, dataset.graph.indices, torch.full((dataset.graph.num_edges,), torch.inf).double()
    )


KINDS = {
    # what would be executed
    "a pickle for settings": lambda c: (c.run / "settings.json").write_bytes(c.pickled()),
    "a pickle for weights": lambda c: (c.run / MODEL).write_bytes(c.pickled()),
    "a pickle for data": lambda c: (c.run / "data.safetensors").write_bytes(c.pickled()),
    "a torch archive for weights": lambda c: torch.save({"a": torch.ones(2)}, c.run / MODEL),
    "a model from a module": lambda c: c.setting("model.name", "canary_module:Thing"),
    "a data set from a module": lambda c: c.setting("data.name", "canary_module:Thing"),
    "a metric from a module": lambda c: c.setting("task.metric", "canary_module:Thing"),
    "a step from a module": lambda c: c.setting("preprocessing.normalise", "canary_module:Thing"),
    "a fitted step from a module": lambda c: c.tensors(
        MODEL, meta=set_meta("preprocessing", "steps", 0, "step", value="canary_module:Thing")
    ),
    "something installed that is no model": lambda c: c.setting("model.name", "os:system"),
    # what would take all memory or time
    "a width of a billion": lambda c: c.setting("model.width", 10**9),
    "a billion layers": lambda c: c.setting("model.encoder_layers", 10**9),
    "a billion nodes": lambda c: c.tensors(MODEL, meta=set_meta("shape", "num_nodes", value=10**9)),
    "a billion inputs": lambda c: c.tensors(MODEL, meta=set_meta("shape", "in_features", value=10**9)),
    "time without end": lambda c: c.setting("model.time", 1e15),
    "a pipe for settings": fifo,
    "a file of four terabytes": sparse_file,
    "a header of an exabyte": big_header,
    "JSON nested without end": lambda c: (c.run / "settings.json").write_text("[" * 200_000),
    "settings of 300 MiB": lambda c: (c.run / "settings.json").write_bytes(b" " * (300 << 20)),
    # what leads elsewhere
    "a link for settings": lambda c: c.link("settings.json", "/etc/passwd"),
    "a link for weights": lambda c: c.link(MODEL, "/dev/zero"),
    "a link for data": lambda c: c.link("data.safetensors", "/etc/passwd"),
    "a link for a folder": linked_seed,
    # what gives nonsense
    "weights that are NaN": lambda c: c.weight(MODEL, torch.nan, "weight"),
    "weights that are infinite": lambda c: c.weight(MODEL, torch.inf, "bias"),
    "a negative curvature": lambda c: c.weight(MODEL, -1.0, "curvature.initial"),
    "a curvature of zero": lambda c: c.weight(MODEL, 0.0, "curvature.initial"),
    "a temperature of zero": lambda c: c.weight(MODEL, 0.0, "temperature"),
    "a scale of zero": lambda c: c.weight(MODEL, 0.0, ".scale"),
    "points outside the ball": lambda c: c.weight(MODEL, 1e6, "bias"),
    "edges that point outside": replaced(
        graph=lambda d: type(d.graph)(d.graph.indptr, d.graph.indices + 1000, d.graph.weights)
    ),
    "edges that weigh infinitely": replaced(graph=infinite_weights),
    "features that are NaN": replaced(features=lambda d: torch.full_like(d.features, torch.nan)),
    "classes that are not there": replaced(labels=lambda d: d.labels + 10**12),
    "a class of the truth that is not there": lambda c: c.tensors(
        "problem.safetensors", lambda t: t.update({"test/truth": t["test/truth"] + 99})
    ),
    "parts beyond the nodes": lambda c: c.tensors(
        "problem.safetensors", lambda t: t.update({"val/items": t["val/items"] + 10**9})
    ),
    "another format": lambda c: c.json("settings.json", lambda s: s.update(format=99)),
    "a setting nobody knows": lambda c: c.setting("model.widht", 3),
    "a seed that is a text": lambda c: c.setting("run.seed", "abc"),
    "a split beyond all numbers": lambda c: c.setting("data.split", 10**400),
}
RESUMED = {
    "a checkpoint without optimiser state": drop_optimiser,
    "a checkpoint with weights that are NaN": lambda c: c.weight(CHECKPOINT, torch.nan, "weight"),
    "a checkpoint of another seed": lambda c: c.tensors(CHECKPOINT, meta=set_meta("seed", value=5)),
    "a checkpoint that is a pickle": lambda c: (c.run / CHECKPOINT).write_bytes(c.pickled()),
    "a checkpoint that is a link": lambda c: c.link(CHECKPOINT, "/dev/zero"),
    "a lock that is a link": lambda c: c.link(".lock", c.mark.parent / "precious"),
    "a generator without state": lambda c: c.tensors(CHECKPOINT, lambda t: t.update(generator=t["generator"][:5])),
    "progress that is a text": lambda c: c.tensors(CHECKPOINT, meta=set_meta("progress", "epoch", value="soon")),
    "steps that are negative": lambda c: c.tensors(
        CHECKPOINT, meta=lambda m: m["numbers"].update({key: -5 for key in m["numbers"] if key.endswith("step")})
    ),
}


@pytest.fixture
def case(originals, tmp_path, monkeypatch):
    (tmp_path / "canary_module.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\nThing = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "precious").write_text("not to be touched")
    return Case(shutil.copytree(originals / "nodes", tmp_path / "run"), tmp_path / "mark")


def refused(case, *arguments):
    """The one line that a command ends in."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    output = result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 2, output
    lines = [line for line in output.splitlines() if line.strip()]
    assert len(lines) == 1, output
    assert lines[0].startswith("error: ")
    assert len(lines[0]) < 600
    assert not case.mark.exists(), "code was executed"
    assert (case.mark.parent / "precious").read_text() == "not to be touched"
    return lines[0]


@pytest.mark.parametrize("kind", KINDS)
def test_refused_with_one_line(kind, case):
    KINDS[kind](case)
    refused(case, "evaluate", case.run)


@pytest.mark.parametrize("kind", RESUMED)
def test_not_gone_on_with(kind, case):
    RESUMED[kind](case)
    refused(case, "train", "--resume", case.run, "--epochs", 3, "--quiet")


def test_there_are_enough_kinds():
    assert len(KINDS) + len(RESUMED) >= 30


def test_a_scale_of_zero_for_values(originals, case):
    shutil.rmtree(case.run)
    shutil.copytree(originals / "regression", case.run)
    case.tensors(MODEL, meta=lambda m: m["task"]["fitted"].update(scale=[0.0]))
    assert "scale" in refused(case, "evaluate", case.run)


def test_the_user_says_what_may_be_imported(case, tmp_path):
    """``--import`` is the user's word, and nothing in the folder can stand for it."""
    (tmp_path / "mine_to_trust.py").write_text("from hgde.models import HGDE\n\nclass Mine(HGDE):\n    pass\n")
    case.setting("model.name", "mine_to_trust:Mine")
    assert "--import mine_to_trust" in refused(case, "evaluate", case.run)
    result = CliRunner().invoke(app, ["evaluate", str(case.run), "--import", "mine_to_trust"])
    assert result.exit_code == 0, result.output
    assert "accuracy" in result.output
    words = refused(case, "evaluate", case.run, "--import", "nobody_there")
    assert "cannot be imported" in words
    assert "PYTHONPATH" in words


def test_settings_files_name_no_code(case, tmp_path):
    (tmp_path / "s.toml").write_text('[model]\nname = "canary_module:Thing"\n')
    assert "names code that is not loaded" in refused(case, "train", "--settings", tmp_path / "s.toml")


def test_data_that_the_settings_name_elsewhere_is_not_waited_for(case, tmp_path):
    """A pipe that nobody writes to, and a simulated set of any size."""
    os.mkfifo(tmp_path / "pipe.csv")
    case.setting("data.edges", str(tmp_path / "pipe.csv"))
    assert CliRunner().invoke(app, ["evaluate", str(case.run)]).exit_code == 0
    case.setting("data.edges", None)
    case.setting("data.options", ["num_nodes=100000000000"])
    assert CliRunner().invoke(app, ["evaluate", str(case.run)]).exit_code == 0


def test_an_estimator_names_no_code(originals, case):
    from hgde.estimators import HGDEClassifier
    from hgde.registry import RegistryError

    content = {
        "estimator": "HGDEClassifier", "parameters": {"model": "canary_module:Thing"}, "fitted": {},
        "features": {"count": 1, "names": None}, "given_graph": True, "trained_on": "",
    }  # fmt: skip
    if "model" not in HGDEClassifier().get_params():
        content["parameters"] = {"method": "canary_module:Thing"}
    (case.run / "estimator.json").write_text(json.dumps(content))
    with pytest.raises(RegistryError, match="names code that is not loaded"):
        HGDEClassifier.load(case.run)
    assert not case.mark.exists()
