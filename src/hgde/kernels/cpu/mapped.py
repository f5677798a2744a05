"""What is known of a graph, moved elsewhere: into memory-mapped files, for graphs beyond memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from torch import Tensor

from hgde.kernels.cpu.layout import layout_of


def move_layout(indptr: Tensor, indices: Tensor, move: Callable[[Tensor], Tensor], *, learns: bool = True) -> None:
    """Work out the layout of a graph, for gradients too if it ``learns``, and put its tensors where ``move`` does."""
    layout = layout_of(indptr, indices)
    if learns:
        _ = layout.transposed(indptr.numel() - 1)
    held = vars(layout)
    for name, value in held.items():
        held[name] = moved(value, move)


def moved(value: Any, move: Callable[[Tensor], Tensor]) -> Any:
    """A value with every tensor in it moved: tensors themselves, tuples and dataclasses of them."""
    if isinstance(value, Tensor):
        return value if value.is_sparse else move(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(part, move) for part in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {spec.name: moved(getattr(value, spec.name), move) for spec in dataclasses.fields(value)}
        return dataclasses.replace(value, **changes)
    return value
