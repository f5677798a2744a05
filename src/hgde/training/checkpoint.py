"""Checkpoints: tensors plus JSON in one safetensors file, written so that a crash leaves the old one or the new one.

Loading one never executes code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from hgde.files import read_problem, write_atomically

T = TypeVar("T")

_META = "hgde"
_ADAM = ("step", "exp_avg", "exp_avg_sq")
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read or used; the message says what to do."""


def save(path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
    """Write tensors and a description that JSON can hold, in one step.

    Raises:
        WriteError: if the disk does not allow it.
    """
    from safetensors.torch import save as to_bytes

    payload = to_bytes(
        {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}, {_META: json.dumps(meta)}
    )
    write_atomically(path, payload)


def load(path: Path, *, allow_gaps: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and JSON of a checkpoint. Numbers that are not finite are refused unless gaps (NaN) are allowed."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise CheckpointError(f"{path} does not exist; train first, or name the folder of a run")
    try:
        problem = read_problem(path)
        if problem is not None:
            raise CheckpointError(f"{path} is not a checkpoint of this package: {problem}")
        with safe_open(path, framework="pt") as file:
            meta = json.loads((file.metadata() or {})[_META])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
    except (SafetensorError, KeyError, ValueError, RecursionError, OSError, MemoryError) as error:
        reason = next(iter(str(error).splitlines()), "")[:200]
        raise CheckpointError(
            f"{path} is not a checkpoint of this package ({type(error).__name__}: {reason})"
        ) from None
    if not isinstance(meta, dict):
        raise CheckpointError(f"{path} is damaged: its description is {type(meta).__name__}, not an object")
    for name, value in tensors.items():
        if value.is_complex() or not (value.is_floating_point() or value.dtype in _WHOLE):
            raise CheckpointError(f"{path} is damaged: tensor {name!r} is of type {value.dtype}")
        if not allow_gaps and value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise CheckpointError(f"{path} is damaged: tensor {name!r} holds values that are infinite or not a number")
    return tensors, meta


def read_field(path: Path, values: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """A field of a checkpoint's description, refused by name where it is missing or of another type."""
    value = values.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        actual = type(value).__name__ if name in values else "nothing"
        raise CheckpointError(f"{path} is damaged: field {name!r} should be {kind.__name__}, it is {actual}")
    return value


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with ``prefix``, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def load_weights(module: torch.nn.Module, weights: Mapping[str, Tensor], source: str) -> None:
    """``load_state_dict`` with words: what is missing, left over or of another shape is refused by name."""
    wanted = module.state_dict()
    missing, unknown = sorted(set(wanted) - set(weights)), sorted(set(weights) - set(wanted))
    if missing or unknown:
        what = f"has no weights {missing[0]!r}" if missing else f"has weights {unknown[0]!r}, which the model lacks"
        raise CheckpointError(f"{source} does not fit the model: it {what}")
    for name, value in wanted.items():
        if value.shape != weights[name].shape:
            shapes = f"{list(weights[name].shape)}, the model's are {list(value.shape)}"
            raise CheckpointError(f"{source} does not fit the model: weights {name!r} are of shape {shapes}")
        if value.dtype != weights[name].dtype:
            types = f"{weights[name].dtype}, the model's are {value.dtype}"
            raise CheckpointError(f"{source} does not fit the model: weights {name!r} are {types}")
    module.load_state_dict(dict(weights))
    for name, value in module.state_dict().items():
        # Parts that share a weight, such as the curvature of one space, each store it: they must agree.
        if not torch.equal(value, weights[name].to(value.device)):
            raise CheckpointError(f"{source} does not fit the model: weights {name!r} are stored twice, and differ")


def flatten_optimiser(prefix: str, optimiser: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of an optimiser as named tensors and plain numbers."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for index, state in optimiser.state_dict()["state"].items():
        for key, value in state.items():
            name = f"{prefix}/{index}/{key}"
            if isinstance(value, Tensor):
                tensors[name] = value
            else:
                numbers[name] = value
    return tensors, numbers


def restore_optimiser(
    prefix: str, optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor], numbers: dict[str, Any]
) -> None:
    states: dict[int, dict[str, Any]] = {}
    for name, value in {**tensors, **numbers}.items():
        owner, _, rest = name.partition("/")
        if owner == prefix:
            index, _, key = rest.partition("/")
            states.setdefault(int(index), {})[key] = value
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    _check_states(prefix, states, parameters, _ADAM if "Adam" in type(optimiser).__name__ else ())
    optimiser.load_state_dict({"state": states, "param_groups": optimiser.state_dict()["param_groups"]})
    # Loading turns a step counted as a number into a float32 tensor, whose powers round differently: back to a number.
    for place, state in states.items():
        counted = {key: value for key, value in state.items() if not isinstance(value, Tensor)}
        optimiser.state[parameters[place]].update(counted)


def _check_states(
    prefix: str, states: Mapping[int, Mapping[str, Any]], parameters: list[Any], needed: tuple[str, ...]
) -> None:
    """Refuse a state that is not one for each parameter, of its shape: without it training would go on otherwise."""
    if sorted(states) != list(range(len(parameters))):
        raise ValueError(f"{prefix} has the state of {len(states)} parameters, there are {len(parameters)}")
    for place, state in states.items():
        missing = next((key for key in needed if key not in state), None)
        if missing is not None:
            raise ValueError(f"{prefix}/{place} has no {missing!r}")
        for key, value in state.items():
            if (
                isinstance(value, Tensor)
                and value.shape != parameters[place].shape
                and (value.dim() or key != "step")
                and value.shape != parameters[place].shape
            ):
                shapes = f"{list(value.shape)}, the parameter is {list(parameters[place].shape)}"
                raise ValueError(f"{prefix}/{place}/{key} is {shapes}")
            if key == "step" and not float(value) >= 0:
                raise ValueError(f"{prefix}/{place}/step is {float(value):g}")
