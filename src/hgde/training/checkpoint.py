"""Checkpoints: tensors plus JSON in one safetensors file, written so that a crash leaves the old one or the new one.

Loading one never executes code.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_META = "hgde"


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written or read; the message says what is intact and what to do."""


def save(path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
    """Write atomically: to a temporary file beside ``path``, flushed to disk, then renamed over it."""
    from safetensors.torch import save as to_bytes

    payload = to_bytes(
        {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}, {_META: json.dumps(meta)}
    )
    write_atomically(path, payload)


def write_atomically(path: Path, payload: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        # Not tempfile: its files are for the owner's eyes only, and this one becomes a result to be shared.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise CheckpointError(f"cannot write to {path.parent}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(payload)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        kept = "the previous one is intact" if path.exists() else "there is no earlier one"
        raise CheckpointError(
            f"could not write {path}: {error.strerror}; {kept}. Make room, then run the same command with --resume"
        ) from error


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and JSON of a checkpoint."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise CheckpointError(f"{path} does not exist; train first, or name the folder of a run")
    try:
        with safe_open(path, framework="pt") as file:
            meta = json.loads((file.metadata() or {})[_META])
            return {name: file.get_tensor(name) for name in file.keys()}, meta  # noqa: SIM118  # not a dict
    except (SafetensorError, KeyError, json.JSONDecodeError, OSError) as error:
        raise CheckpointError(
            f"{path} is not a checkpoint of this package ({type(error).__name__}: {error})"
        ) from error


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
    optimiser.load_state_dict({"state": states, "param_groups": optimiser.state_dict()["param_groups"]})
    # Loading turns a step counted as a number into a float32 tensor, whose powers round differently: back to a number.
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    for place, state in states.items():
        counted = {key: value for key, value in state.items() if not isinstance(value, Tensor)}
        optimiser.state[parameters[place]].update(counted)
