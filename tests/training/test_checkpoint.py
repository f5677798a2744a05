"""Checkpoints: what is written is read, what is damaged is refused with words, optimisers go on to the bit."""

import json
import os

import pytest
import torch
from safetensors.torch import save_file

from hgde.files import WriteError
from hgde.training import checkpoint
from hgde.training.checkpoint import CheckpointError, flatten_optimiser, load, part_of, read_field, restore_optimiser


def test_tensors_and_description_come_back(tmp_path):
    path = tmp_path / "new" / "folder" / "file.safetensors"
    tensors = {"a": torch.randn(3, 2), "b": torch.arange(4), "view": torch.randn(3, 2).T}
    checkpoint.save(path, tensors, {"epoch": 3, "words": ["x"]})
    again, meta = load(path)
    assert meta == {"epoch": 3, "words": ["x"]}
    assert again.keys() == tensors.keys()
    assert all(torch.equal(again[name], tensors[name]) for name in tensors)
    assert [file.name for file in path.parent.iterdir()] == ["file.safetensors"], "no temporary file is left"
    checkpoint.save(path, {"a": torch.zeros(1)}, {})
    assert load(path)[0].keys() == {"a"}, "written over"


def test_tensors_that_share_memory_can_be_stored(tmp_path):
    one = torch.randn(4, requires_grad=True)
    checkpoint.save(tmp_path / "file", {"a": one, "b": one}, {})
    tensors, _ = load(tmp_path / "file")
    assert torch.equal(tensors["a"], one)
    assert torch.equal(tensors["b"], one)


def test_a_full_disk_says_what_is_intact(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="No space left on device; there is no earlier one"):
        checkpoint.save(tmp_path / "file", {"a": torch.zeros(1)}, {})


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(CheckpointError, match="does not exist"):
        load(path)
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match="not a checkpoint of this package"):
        load(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match="not a checkpoint of this package"):
        load(path)
    save_file({"a": torch.zeros(1)}, path, {"hgde": json.dumps([1])})
    with pytest.raises(CheckpointError, match="its description is list, not an object"):
        load(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused_unless_allowed(tmp_path, value):
    path = tmp_path / "file"
    checkpoint.save(path, {"fine": torch.arange(3), "bad": torch.tensor([1.0, value])}, {})
    with pytest.raises(CheckpointError, match="tensor 'bad' holds values"):
        load(path)
    assert load(path, allow_gaps=True)[0]["bad"].shape == (2,)


def test_fields_are_read_by_type(tmp_path):
    values = {"count": 3, "flag": True, "name": "x"}
    assert read_field(tmp_path, values, "count", int) == 3
    assert read_field(tmp_path, values, "flag", bool) is True
    for name, kind, words in (
        ("flag", int, "field 'flag' should be int, it is bool"),
        ("count", str, "field 'count' should be str, it is int"),
        ("absent", int, "field 'absent' should be int, it is nothing"),
    ):
        with pytest.raises(CheckpointError, match=words):
            read_field(tmp_path, values, name, kind)


def test_parts_are_taken_by_prefix():
    one, two = torch.zeros(1), torch.ones(1)
    assert part_of({"best/a": one, "model/best/a": two}, "best/") == {"a": one}


def test_weights_that_do_not_fit_are_named():
    module = torch.nn.Linear(2, 3)
    good = {name: torch.randn_like(value) for name, value in module.state_dict().items()}
    checkpoint.load_weights(module, good, "file")
    assert all(torch.equal(module.state_dict()[name], good[name]) for name in good)
    for wrong, words in (
        ({"weight": good["weight"]}, "has no weights 'bias'"),
        (good | {"more": torch.zeros(1)}, "has weights 'more', which the model lacks"),
        (good | {"bias": torch.zeros(2)}, r"weights 'bias' are of shape \[2\], the model's are \[3\]"),
    ):
        with pytest.raises(CheckpointError, match=words):
            checkpoint.load_weights(module, wrong, "file")


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD])
def test_a_restored_optimiser_goes_on_to_the_bit(kind):
    def problem():
        torch.manual_seed(1)
        weights = [torch.nn.Parameter(torch.randn(3)), torch.nn.Parameter(torch.randn(2, 2))]
        options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
        return weights, kind(weights, lr=0.1, **options)

    def descend(weights, optimiser, steps):
        for _ in range(steps):
            optimiser.zero_grad()
            sum(w.pow(4).sum() for w in weights).backward()
            optimiser.step()

    weights, optimiser = problem()
    descend(weights, optimiser, 3)
    tensors, numbers = flatten_optimiser("adam", optimiser)
    copies, other = problem()
    for copy, weight in zip(copies, weights, strict=True):
        copy.data.copy_(weight.data)
    others = {f"radam/{k}": torch.ones(7) for k in range(2)}
    restore_optimiser("adam", other, {k: v.clone() for k, v in tensors.items()} | others, numbers)
    for pair in ((weights, optimiser), (copies, other)):
        descend(*pair, 3)
    assert all(torch.equal(a, b) for a, b in zip(weights, copies, strict=True))


def test_a_step_counted_as_a_number_stays_one():
    weight = torch.nn.Parameter(torch.zeros(2))
    optimiser = torch.optim.SGD([weight], lr=0.1)
    restore_optimiser("points", optimiser, {"points/0/exp_avg": torch.ones(2)}, {"points/0/step": 7})
    assert optimiser.state[weight]["step"] == 7
    assert type(optimiser.state[weight]["step"]) is int
    assert torch.equal(optimiser.state[weight]["exp_avg"], torch.ones(2))
    assert flatten_optimiser("points", optimiser)[1] == {"points/0/step": 7}
