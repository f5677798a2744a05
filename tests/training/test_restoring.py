"""Checkpoints that fit in form but not in kind are refused: types of tensors, states of optimisers."""

import os

import pytest
import torch

from hgde.training import checkpoint
from hgde.training.checkpoint import CheckpointError, load, load_weights, restore_optimiser


def test_tensors_of_types_that_no_model_has_are_refused(tmp_path):
    path = tmp_path / "file"
    kinds = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64)
    checkpoint.save(path, {str(kind): torch.ones(2, dtype=kind) for kind in kinds}, {})
    assert set(load(path)[0]) == set(map(str, kinds))
    for kind in (torch.complex64, torch.uint16):
        checkpoint.save(path, {"odd": torch.ones(2).to(kind)}, {})
        with pytest.raises(CheckpointError, match=f"tensor 'odd' is of type {kind}"):
            load(path)


def test_what_is_no_file_is_not_opened(tmp_path):
    """A folder; a pipe without a writer, which would hang."""
    with pytest.raises(CheckpointError, match="not a checkpoint of this package: it is a folder"):
        load(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(CheckpointError, match="not a regular file"):
            load(tmp_path / "pipe")
    (tmp_path / "text").write_text("weights")
    with pytest.raises(CheckpointError, match=r"not a checkpoint of this package \(SafetensorError"):
        load(tmp_path / "text")


def test_weights_of_another_type_are_named():
    module = torch.nn.Linear(2, 3)
    weights = {name: value.double() for name, value in module.state_dict().items()}
    with pytest.raises(CheckpointError, match=r"weights 'weight' are torch.float64, the model's are torch.float32"):
        load_weights(module, weights, "file")


def optimiser():
    weights = [torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(2, 2))]
    return torch.optim.Adam(weights, lr=0.1)


def states(prefix="adam"):
    tensors = {}
    for place, shape in enumerate([(3,), (2, 2)]):
        for key in ("exp_avg", "exp_avg_sq"):
            tensors[f"{prefix}/{place}/{key}"] = torch.ones(shape)
        tensors[f"{prefix}/{place}/step"] = torch.tensor(4.0)
    return tensors


def test_states_that_fit_are_taken():
    made = optimiser()
    restore_optimiser("adam", made, states() | {"other/0/exp_avg": torch.ones(9)}, {})
    for state in made.state.values():
        assert float(state["step"]) == 4.0
        assert bool((state["exp_avg"] == 1).all())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: {k: v for k, v in s.items() if "/1/" not in k}, "state of 1 parameters, there are 2"),
        (lambda s: s | {"adam/2/exp_avg": torch.ones(3)}, "state of 3 parameters, there are 2"),
        (lambda s: {k.replace("/1/", "/5/"): v for k, v in s.items()}, "state of 2 parameters"),
        (lambda s: s | {"adam/1/exp_avg": torch.ones(3)}, r"adam/1/exp_avg is \[3\], the parameter is \[2, 2\]"),
        (lambda s: s | {"adam/0/step": torch.tensor(-1.0)}, "adam/0/step is -1"),
        (lambda s: s | {"adam/0/step": torch.tensor(float("nan"))}, "adam/0/step is nan"),
    ],
)
def test_states_that_do_not_fit_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        restore_optimiser("adam", optimiser(), change(states()), {})
    restore_optimiser("adam", optimiser(), states() | {"adam/0/step": torch.tensor(0.0)}, {})
