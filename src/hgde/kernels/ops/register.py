"""The one way an operation is written: a function on CPU tensors, its shapes, its gradient, registered with torch.

torch then knows it by name: autograd, ``torch.compile`` and ``torch.export`` treat it as they treat their own.
A gradient is an operation of its own, and refuses to be differentiated again unless it says how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from hgde.geometry.numerics import is_eager

Implementation = Callable[..., Any]
Array = np.ndarray[Any, Any]
LANES = 8
_library = torch.library.Library("hgde", "DEF")
_NO_DISPATCH = Tensor.__torch_dispatch__


def operation(
    schema: str,
    fake: Implementation,
    backward: Callable[..., tuple[Tensor | None, ...]] | None = None,
    save: Callable[..., None] | None = None,
    devices: Sequence[str] = ("CPU",),
) -> Callable[[Implementation], Any]:
    """Register the decorated function as ``torch.ops.hgde.<name>``, and give it back with its gradient.

    Args:
        schema: name, arguments and results, as torch writes them; no defaults.
        fake: results with the right shapes and dtypes from arguments without values.
        backward: gradients of the arguments from ``ctx`` and the gradient of the first result (the others have none);
            without it, differentiating raises.
        save: ``(ctx, inputs, output)``, keeps what ``backward`` needs.
        devices: whose tensors the function takes, as torch's dispatcher names them.
    """
    name = schema.partition("(")[0]

    def decorate(function: Implementation) -> Any:
        operators = []
        for own in (name, f"{name}_raw"):
            _library.define(schema.replace(name, own, 1))
            for device in devices:
                _library.impl(own, function, device)
            torch.library.register_fake(f"hgde::{own}", fake, lib=_library)
            operators.append(getattr(torch.ops.hgde, own).default)
        operator, raw = operators
        # The raw twin has no gradient: calling it is how one gets past the other's.
        _library.impl(name, _differentiable(name, raw, backward, save), "Autograd")
        direct = _differentiable(name, function, backward, save)
        takes_cpu = "CPU" in devices

        # torch's dispatcher would come to the same, at several times the cost of a small operation.
        @wraps(function)
        def call(*args: Any) -> Any:
            return direct(*args) if takes_cpu and is_eager() and _is_at_hand(args) else operator(*args)

        call.__name__ = name
        return call

    return decorate


def registered(call: Implementation) -> Any:
    """What torch knows such a function by."""
    return getattr(torch.ops.hgde, call.__name__).default


def itself(call: Implementation) -> Any:
    """The function that was registered: no gradient, no dispatcher, ordinary tensors on the CPU."""
    return call.__wrapped__  # type: ignore[attr-defined]  # set by functools.wraps


def refuse_second(name: str) -> NoReturn:
    """Say that a compiled operation differentiates once."""
    raise RuntimeError(
        f"no second derivative: hgde::{name} is compiled and differentiates once; choose plain torch with "
        "hgde.kernels.set_backend('reference') or HGDE_BACKEND=reference"
    )


def _is_at_hand(args: tuple[Any, ...]) -> bool:
    """Whether all tensors are ordinary ones on the CPU."""
    return all(a.is_cpu and type(a).__torch_dispatch__ is _NO_DISPATCH for a in args if isinstance(a, Tensor))


def _differentiable(name: str, function: Any, backward: Any, save: Any) -> Implementation:
    """The function as a node of autograd where one of its arguments asks for a gradient."""
    node = _node(name, function, backward or _refusal(name), save)

    def differentiable(*args: Any) -> Any:
        if torch.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return node.apply(*args)
        return function(*args)

    return differentiable


def _node(name: str, function: Any, backward: Any, save: Any) -> Any:
    def forward(ctx: Any, *args: Any) -> Any:
        result = function(*args)
        ctx.set_materialize_grads(False)
        if save is not None:
            save(ctx, args, result)
            if isinstance(result, tuple):
                ctx.mark_non_differentiable(*result[1:])
        return result

    def gradients(ctx: Any, *grads: Tensor | None) -> Any:
        if all(grad is None for grad in grads):
            return (None,) * len(ctx.needs_input_grad)
        return backward(ctx, grads[0])

    return type(
        name, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(gradients)}
    )


def _refusal(name: str) -> Callable[..., tuple[Tensor | None, ...]]:
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second(name)

    return backward


def padded(rows: Tensor) -> Tensor:
    """Rows lengthened by zeros to a multiple of eight, contiguous; every map here leaves those zeros."""
    missing = -rows.shape[-1] % LANES
    return rows.contiguous() if missing == 0 else functional.pad(rows, (0, missing))


def unpadded(rows: Tensor, width: int) -> Tensor:
    return rows if rows.shape[-1] == width else rows[..., :width].contiguous()


def ordered_sum(lines: Tensor) -> Tensor:
    """Lines ``[B, ...]`` added one after the other: the same bits however they were computed."""
    return lines.cumsum(0)[-1] if len(lines) else lines.new_zeros(lines.shape[1:])


def ordered_total(lines: Array) -> Array:
    """:func:`ordered_sum` of numpy's array: small sums and what follows from them are quicker there."""
    if len(lines) == 1:
        return lines[0]
    total: Array = lines.cumsum(0)[-1] if len(lines) else np.zeros(lines.shape[1:])
    return total


def counted(partial: Tensor, place: int) -> Tensor:
    """How many points were projected, from the counts that blocks have at a place."""
    return torch.from_numpy(np.array(partial.numpy()[:, place].sum(), np.int64))


def told(values: Any, to: Tensor) -> Tensor:
    """A gradient, numpy's array or number, as a tensor of its own with shape and dtype of what it is for."""
    return torch.from_numpy(np.array(values, _NUMPY[to.dtype], order="C").reshape(to.shape))


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def like(tensor: Tensor) -> Tensor:
    """A contiguous tensor of the same shape and dtype."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)
