"""Maps that act on rows alone: log, transport and inverse differential of exp at any point, and maps at the origin."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import even_blocks
from hgde.kernels.cpu.sizes import TRANSLATE, scratch
from hgde.kernels.cpu.threads import run
from hgde.kernels.ops.register import like, operation, ordered_sum, padded, unpadded


def _arguments(c: Tensor, points: list[Tensor]) -> tuple[Any, ...]:
    rows = [padded(point) for point in points]
    margin = numerics.limits(points[0].dtype).margin
    return even_blocks(len(rows[0])), rows[0].shape[1], *rows, float(c), margin


def _run(kernel: str, like_rows: Tensor, blocks: int, args: tuple[Any, ...]) -> None:
    run(kernel, like_rows.dtype, blocks, 8 * like_rows.numel(), scratch(args[1]), args)


def _row_map(kernel: str, c: Tensor, *points: Tensor) -> Tensor:
    args = _arguments(c, list(points))
    out = pages.empty_like(args[2])
    _run(kernel, points[0], args[0].numel() - 1, (*args, out))
    return unpadded(out, points[0].shape[1])


def _row_map_backward(kernel: str, grad: Tensor, c: Tensor, *points: Tensor) -> tuple[Tensor, ...]:
    args = _arguments(c, list(points))
    grads = [pages.empty_like(args[2]) for _ in points]
    partial = torch.zeros(args[0].numel() - 1, dtype=torch.float64)
    _run(kernel, points[0], len(partial), (*args, padded(grad), *grads, partial))
    total = ordered_sum(partial).to(c.dtype).reshape(c.shape)
    return total, *(unpadded(g, points[0].shape[1]) for g in grads)


def _define(name: str, kernel: str, count: int) -> Any:
    """A map of ``c`` and ``count`` matrices of one shape, with its gradient."""
    names = ("x", "y", "v")[:count]
    given = "Tensor c, " + ", ".join(f"Tensor {n}" for n in names)
    results = ", ".join(["Tensor"] * (count + 1))

    @operation(
        f"{name}_backward(Tensor grad, {given}) -> ({results})",
        fake=lambda grad, c, *points: (like(c), *(like(point) for point in points)),
    )
    def gradient(grad: Tensor, c: Tensor, *points: Tensor) -> tuple[Tensor, ...]:
        return _row_map_backward(f"{kernel}_backward", grad, c, *points)

    @operation(
        f"{name}({given}) -> Tensor",
        fake=lambda c, x, *_: like(x),
        backward=lambda ctx, grad: gradient(grad, *ctx.saved_tensors),
        save=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    def value(c: Tensor, *points: Tensor) -> Tensor:
        return _row_map(kernel, c, *points)

    return value


logmap = _define("logmap", "maps.log", 2)
"""``log_x(y)`` for the rows of ``x, y [N, d]``: ``(c, x, y)``."""
transport = _define("transport", "maps.transport", 3)
"""Parallel transport of ``v`` from ``x`` to ``y``, ``(lambda_x / lambda_y) gyr[y, -x] v``: ``(c, x, y, v)``."""
shrink = _define("shrink", "maps.shrink", 3)
"""``w`` at ``x``, its part across ``v`` times ``r / sinh r`` with ``r = sqrt(c) lambda_x |v|``: ``(c, x, v, w)``."""


def origin_forward(x: Tensor, c: float, point: Tensor | None, kind: int) -> tuple[Tensor, Tensor]:
    """A map at the origin and, for each block of rows, how many points were projected."""
    args = _origin_arguments(x, c, point, kind)
    out, partial = pages.empty_like(args[2]), torch.zeros(args[0].numel() - 1, dtype=torch.float64)
    _run("origin.forward", x, len(partial), (*args, out, partial))
    return unpadded(out, x.shape[1]), partial


def origin_backward(
    grad: Tensor, x: Tensor, c: float, point: Tensor | None, kind: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of ``x``, of ``c`` (a double) and of the point (doubles, none where there is none)."""
    args = _origin_arguments(x, c, point, kind)
    blocks, gx = args[0].numel() - 1, pages.empty_like(args[2])
    partial = torch.zeros(blocks, dtype=torch.float64)
    points = torch.zeros(blocks if kind == TRANSLATE else 0, args[1], dtype=torch.float64)
    _run("origin.backward", x, blocks, (*args, padded(grad), gx, partial, points))
    gpoint = points if point is None else ordered_sum(points)[: len(point)]
    return unpadded(gx, x.shape[1]), ordered_sum(partial), gpoint


def _origin_arguments(x: Tensor, c: float, point: Tensor | None, kind: int) -> tuple[Any, ...]:
    rows = padded(x)
    b = rows.new_zeros(rows.shape[1]) if point is None else padded(point)
    return even_blocks(len(rows)), rows.shape[1], rows, b, kind, c, numerics.limits(x.dtype).margin


def _origin_save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.kind = inputs[3]


def _origin_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    gx, gc, gpoint = at_origin_backward(grad, *ctx.saved_tensors, ctx.kind)
    return gx, gc, gpoint if ctx.needs_input_grad[2] else None, None


@operation(
    "at_origin(Tensor x, Tensor c, Tensor? point, int kind) -> (Tensor, Tensor)",
    fake=lambda x, c, point, kind: (like(x), x.new_empty((), dtype=torch.int64)),
    backward=_origin_gradient,
    save=_origin_save,
)
def at_origin(x: Tensor, c: Tensor, point: Tensor | None, kind: int) -> tuple[Tensor, Tensor]:
    """A map at the origin (``EXP``, ``LOG``, ``TRANSLATE`` of :mod:`hgde.kernels.cpu.sizes`) and how many points were
    projected."""
    out, partial = origin_forward(x, float(c), point, kind)
    return out, partial.sum().to(torch.int64)


@operation(
    "at_origin_backward(Tensor grad, Tensor x, Tensor c, Tensor? point, int kind) -> (Tensor, Tensor, Tensor)",
    fake=lambda grad, x, c, point, kind: (like(x), like(c), x.new_empty(0) if point is None else like(point)),
)
def at_origin_backward(
    grad: Tensor, x: Tensor, c: Tensor, point: Tensor | None, kind: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of ``x, c, point``."""
    gx, gc, gpoint = origin_backward(grad, x, float(c), point, kind)
    return gx, gc.to(c.dtype).reshape(c.shape), x.new_empty(0) if point is None else gpoint.to(point.dtype)
