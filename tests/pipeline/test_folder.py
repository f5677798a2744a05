"""A run folder is self-contained and untrusted: moved it works, damaged it is refused with file and field."""

import json
import math
import shutil

import pytest
import torch

from hgde.data import DataError
from hgde.pipeline import RunError, RunFolder, fit, load, make_settings, resume
from hgde.training import checkpoint
from hgde.training.checkpoint import CheckpointError

SETTINGS = make_settings(
    {
        "preset": "none",
        "data": {"options": ["num_nodes=60"]},
        "task": {"name": "links"},
        "model": {"width": 3, "time": 1.0},
        "training": {"epochs": 2},
        "run": {"threads": 1},
    }
)
REFUSED = (RunError, CheckpointError, DataError)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original") / "run"
    fit(SETTINGS, folder)
    return folder


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original, tmp_path / "copy")


def use(run):
    fitted = load(run)
    fitted.predict()
    fitted.evaluate()
    resume(run, epochs=3)


def test_a_copy_is_used(run):
    use(run)


FILES = {
    "settings.json": "settings.json",
    "run.json": "run.json",
    "data.safetensors": "data.safetensors",
    "problem.safetensors": "problem.safetensors",
    "model.safetensors": "seed-0/model.safetensors",
    "checkpoint.safetensors": "seed-0/checkpoint.safetensors",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["gone", "empty", "half", "noise", "one byte", "folder"])
def test_damaged_files_are_named(name, damage, run):
    path = run / FILES[name]
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "gone":
        middle = len(content) // 2
        spoilt = {
            "empty": b"",
            "half": content[:middle],
            "noise": bytes(range(256)) * 4,
            "one byte": b"\xff" + content[1:],
        }[damage]
        path.write_bytes(spoilt)
    if damage == "gone" and name == "checkpoint.safetensors":
        use(run)  # trained anew
        return
    with pytest.raises(REFUSED) as refused:
        use(run)
    assert name in str(refused.value) or "no finished model" in str(refused.value)


def rewritten(path, tensors=None, meta=None):
    old_tensors, old_meta = checkpoint.load(path, allow_gaps=True)
    checkpoint.save(path, {**old_tensors, **(tensors or {})}, old_meta if meta is None else meta)


@pytest.mark.parametrize(("file", "part"), [("model", "learner/"), ("checkpoint", "model/"), ("checkpoint", "best/")])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_weights_that_are_not_finite(file, part, value, run):
    path = run / "seed-0" / f"{file}.safetensors"
    name, weight = next((n, v) for n, v in checkpoint.load(path)[0].items() if n.startswith(part) and v.dim() == 2)
    rewritten(path, {name: torch.full_like(weight, value)})
    with pytest.raises(CheckpointError, match=rf"{file}\.safetensors is damaged: tensor '{name}'"):
        use(run)


@pytest.mark.parametrize(("file", "part"), [("model", "learner/"), ("checkpoint", "model/"), ("checkpoint", "best/")])
def test_weights_that_do_not_fit(file, part, run):
    path = run / "seed-0" / f"{file}.safetensors"
    tensors, meta = checkpoint.load(path)
    name, weight = next((n, v) for n, v in tensors.items() if n.startswith(part) and v.dim() == 2)
    short = name.removeprefix(part)
    for spoilt, words in (
        ({k: v for k, v in tensors.items() if k != name}, f"it has no weights '{short}'"),
        ({**tensors, f"{part}extra": weight}, "weights 'extra', which the model lacks"),
        ({**tensors, name: weight[:-1]}, f"weights '{short}' are of shape"),
    ):
        checkpoint.save(path, spoilt, meta)
        with pytest.raises(CheckpointError, match=words):
            use(run)


def leaves(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))


@pytest.mark.parametrize("file", ["model", "checkpoint"])
@pytest.mark.parametrize("spoilt", [None, "text", [1], {"a": 1}], ids=["null", "text", "list", "object"])
def test_descriptions_with_a_spoilt_field(file, spoilt, run):
    """Every field of the description in turn is something else; nothing but our own errors comes out."""
    path = run / "seed-0" / f"{file}.safetensors"
    tensors, meta = checkpoint.load(path)
    for place in leaves(meta):
        changed = json.loads(json.dumps(meta))
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        if place:
            inner[place[-1]] = spoilt
        else:
            changed = spoilt
        checkpoint.save(path, tensors, changed)
        message = file
        try:
            if file == "checkpoint":  # which is read to go on, and by nothing else
                resume(run, epochs=3)
            else:
                use(run)  # a field that only informs may be anything
        except REFUSED as error:
            message = str(error)
        assert file in message
        RunFolder(run).write_settings(SETTINGS)


@pytest.mark.parametrize("file", ["model", "checkpoint"])
def test_descriptions_with_a_field_missing(file, run):
    path = run / "seed-0" / f"{file}.safetensors"
    tensors, meta = checkpoint.load(path)
    needed = {"model": ("task", "preprocessing", "shape"), "checkpoint": ("seed", "numbers", "progress")}[file]
    for name in needed:
        checkpoint.save(path, tensors, {key: value for key, value in meta.items() if key != name})
        with pytest.raises(CheckpointError, match=f"field '{name}'"):
            use(run)


@pytest.mark.parametrize("content", ["[]", "null", "{", '{"format": 2}', '{"format": 2, "settings": [], "given": {}}'])
def test_settings_that_are_none(content, run):
    (run / "settings.json").write_text(content)
    with pytest.raises(RunError, match="settings"):
        load(run)


def test_an_unknown_setting_and_an_older_format(run):
    stored = json.loads((run / "settings.json").read_text())
    stored["settings"]["model"]["widht"] = 3
    (run / "settings.json").write_text(json.dumps(stored))
    with pytest.raises(RunError, match="did you mean 'width'"):
        load(run)
    (run / "settings.json").write_text(json.dumps({"width": 3}))
    with pytest.raises(RunError, match="was written in format 1"):
        load(run)


@pytest.mark.parametrize(
    "place", ["model.name", "task.metric", "task.decoder", "preprocessing.steps", "model.space.name"]
)
def test_a_folder_names_no_code_to_be_loaded(place, run, tmp_path, monkeypatch):
    """A run from elsewhere must not get a module imported that nobody asked for."""
    evil = f"evil_{place.replace('.', '_')}"
    (tmp_path / f"{evil}.py").write_text(f"open({str(tmp_path / 'was here')!r}, 'w')\nthing = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    stored = json.loads((run / "settings.json").read_text())
    inner = stored["settings"]
    *parents, last = place.split(".")
    for key in parents:
        inner = inner[key]
    inner[last] = [f"{evil}:thing"] if last == "steps" else f"{evil}:thing"
    (run / "settings.json").write_text(json.dumps(stored))
    path = run / "seed-0" / "model.safetensors"
    if last == "steps":
        meta = checkpoint.load(path)[1]
        meta["preprocessing"]["steps"][0]["step"] = f"{evil}:thing"
        rewritten(path, meta=meta)
    for what in (load, resume):
        with pytest.raises((RunError, ValueError), match="names code that is not loaded"):
            what(run)
    assert not (tmp_path / "was here").exists()


def test_graphs_that_point_outside_are_refused(run):
    """Compiled kernels trust the arrays of a graph."""
    path = run / "problem.safetensors"
    tensors, meta = checkpoint.load(path)
    original = tensors["graph/indices"]
    for spoilt in (original + 1000, original - 1000, original[:-3]):
        checkpoint.save(path, {**tensors, "graph/indices": spoilt}, meta)
        with pytest.raises(CheckpointError, match=r"problem\.safetensors is damaged"):
            load(run).evaluate()
    checkpoint.save(path, {**tensors, "test/items": tensors["test/items"] + 1000}, meta)
    with pytest.raises(CheckpointError, match="part 'test'"):
        load(run).evaluate()


def test_data_of_another_run_is_refused(run, tmp_path):
    fit(SETTINGS.replace({"data.options": ["num_nodes=61"]}), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "data.safetensors", run / "data.safetensors")
    with pytest.raises(RunError, match=r"data\.safetensors is not the data"):
        load(run).evaluate()
    with pytest.raises(RunError, match=r"data\.safetensors is not the data"):
        resume(run)


def test_what_a_killed_start_left_is_written_over(tmp_path):
    """A folder without settings is no run: its data may be of another one."""
    fit(SETTINGS.replace({"data.options": ["num_nodes=61"]}), tmp_path)
    (tmp_path / "settings.json").unlink()
    fit(SETTINGS, tmp_path)
    assert load(tmp_path).training_data().dataset.num_nodes == 60


def test_other_things_in_the_folder_are_let_be(run):
    (run / "seed-abc").mkdir()
    (run / "seed-99999999999999999999999").mkdir()
    (run / "notes.txt").write_text("mine")
    use(run)
    with pytest.raises(RunError, match="no finished seed 7"):
        load(run, seed=7)


def test_a_second_hand_on_the_folder_is_refused(run):
    with RunFolder(run).locked(), pytest.raises(RunError, match="another process is working"):
        resume(run)
    resume(run)


def test_data_given_in_memory_is_not_looked_for(tmp_path):
    """The settings' own name stands for nothing then."""
    from hgde.data.sets.disease_sim import simulate_disease

    fit(SETTINGS, tmp_path, dataset=simulate_disease(seed=5, num_nodes=50))
    assert resume(tmp_path, epochs=3).summary.outcomes[0].epochs == 3


def test_an_error_inside_a_held_folder_is_not_blamed_on_it(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(PermissionError, match="elsewhere"), folder.locked():
        raise PermissionError("elsewhere")
    with folder.locked():
        pass
