"""Sums over neighbours with weights of edges, inner products along edges, softmax over the edges that arrive.

``[E, H]`` numbers of edges, ``[N, H, d]`` rows of nodes. Nothing of size ``E d`` is kept. The gradient of a sum is an
inner product and another sum, and the other way round.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import layout_of
from hgde.kernels.cpu.threads import run
from hgde.kernels.ops.register import LANES, like, operation, padded, unpadded


def _save_sum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])
    ctx.transposed = inputs[4]


def _sum_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    weights, x, indptr, indices = ctx.saved_tensors
    ends = (x, grad) if ctx.transposed else (grad, x)
    to_weights = edge_dot(*ends, indptr, indices) if ctx.needs_input_grad[0] else None
    to_x = edge_sum(weights, grad, indptr, indices, not ctx.transposed) if ctx.needs_input_grad[1] else None
    return to_weights, to_x, None, None, None


@operation(
    "edge_sum(Tensor weights, Tensor x, Tensor indptr, Tensor indices, bool transposed) -> Tensor",
    fake=lambda weights, x, indptr, indices, transposed: like(x),
    backward=_sum_backward,
    save=_save_sum,
)
def edge_sum(weights: Tensor, x: Tensor, indptr: Tensor, indices: Tensor, transposed: bool) -> Tensor:
    """``y_ih = sum_j w_ijh x_jh``, or ``y_jh = sum_i w_ijh x_ih``; cost ``E H d``.

    ``[E, H], [N, H, d] -> [N, H, d]``.
    """
    layout, given = layout_of(indptr, indices), padded(x)
    if transposed:
        by = layout.transposed(len(x))
        pattern: tuple[Any, ...] = (by.blocks, by.start, by.rows, 1, by.order)
    else:
        pattern = (layout.blocks, layout.indptr, layout.indices, 0, 0)
    out = pages.empty(given.shape, given.dtype)
    args = (*pattern, *given.shape[1:], weights.contiguous(), given, out)
    work = layout.num_entries * given.shape[1] * given.shape[2]
    run("between.sums", x.dtype, pattern[0].numel() - 1, work, 0, args)
    return unpadded(out, x.shape[2])


def _save_dot(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _dot_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    a, b, indptr, indices = ctx.saved_tensors
    to_a = edge_sum(grad, b, indptr, indices, False) if ctx.needs_input_grad[0] else None
    to_b = edge_sum(grad, a, indptr, indices, True) if ctx.needs_input_grad[1] else None
    return to_a, to_b, None, None


@operation(
    "edge_dot(Tensor a, Tensor b, Tensor indptr, Tensor indices) -> Tensor",
    fake=lambda a, b, indptr, indices: a.new_empty(indices.shape[0], a.shape[1]),
    backward=_dot_backward,
    save=_save_dot,
)
def edge_dot(a: Tensor, b: Tensor, indptr: Tensor, indices: Tensor) -> Tensor:
    """``<a_ih, b_jh>`` of every edge from ``j`` to ``i``: ``[N, H, d], [N, H, d] -> [E, H]``. Cost ``E H d``."""
    layout, one, other = layout_of(indptr, indices), padded(a), padded(b)
    out = pages.empty((layout.num_entries, a.shape[1]), a.dtype)
    args = (layout.blocks, layout.indptr, layout.indices, *one.shape[1:], one, other, out)
    run("between.dots", a.dtype, layout.num_blocks, layout.num_entries * one.shape[1] * one.shape[2], 0, args)
    return out


def _save_softmax(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, *inputs[1:])


def _softmax_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    weights, indptr, indices = ctx.saved_tensors
    return edge_softmax_backward(grad, weights, indptr, indices), None, None


@operation(
    "edge_softmax(Tensor scores, Tensor indptr, Tensor indices) -> Tensor",
    fake=lambda scores, indptr, indices: like(scores),
    backward=_softmax_backward,
    save=_save_softmax,
)
def edge_softmax(scores: Tensor, indptr: Tensor, indices: Tensor) -> Tensor:
    """Softmax of ``scores [E, H]`` over the edges that arrive at the same node."""
    layout, given, out = layout_of(indptr, indices), scores.contiguous(), like(scores)
    heads = scores.shape[1]
    args = (layout.blocks, layout.indptr, heads, given, out)
    buffer = layout.most_in_strip(LANES) * heads + LANES
    run("between.softmax", scores.dtype, layout.num_blocks, 20 * scores.numel(), buffer, args)
    return out


@operation(
    "edge_softmax_backward(Tensor grad, Tensor weights, Tensor indptr, Tensor indices) -> Tensor",
    fake=lambda grad, weights, indptr, indices: like(weights),
)
def edge_softmax_backward(grad: Tensor, weights: Tensor, indptr: Tensor, indices: Tensor) -> Tensor:
    layout, out = layout_of(indptr, indices), like(weights)
    args = (layout.blocks, layout.indptr, weights.shape[1], weights.contiguous(), grad.contiguous(), out)
    run("between.softmax_backward", weights.dtype, layout.num_blocks, 4 * weights.numel(), 0, args)
    return out


def _save_add(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, *inputs[2:4])
    ctx.nodes, ctx.slope = len(inputs[0]), inputs[4]


def _add_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return *edge_add_backward(grad, *ctx.saved_tensors, ctx.nodes, ctx.slope), None, None, None


@operation(
    "edge_add(Tensor target, Tensor source, Tensor indptr, Tensor indices, float slope) -> Tensor",
    fake=lambda target, source, indptr, indices, slope: target.new_empty(indices.shape[0], target.shape[1]),
    backward=_add_backward,
    save=_save_add,
)
def edge_add(target: Tensor, source: Tensor, indptr: Tensor, indices: Tensor, slope: float) -> Tensor:
    """``LeakyReLU(target_ih + source_jh)`` of every edge from ``j`` to ``i``: ``[N, H], [N, H] -> [E, H]``."""
    layout = layout_of(indptr, indices)
    out = pages.empty((layout.num_entries, target.shape[1]), target.dtype)
    graph = (layout.blocks, layout.indptr, layout.indices, target.shape[1])
    args = (*graph, target.contiguous(), source.contiguous(), slope, out)
    run("between.additions", out.dtype, layout.num_blocks, out.numel(), 0, args)
    return out


def _add_shapes(grad: Tensor, out: Any, indptr: Any, indices: Any, nodes: int, slope: float) -> tuple[Tensor, Tensor]:
    return grad.new_empty(nodes, grad.shape[1]), grad.new_empty(nodes, grad.shape[1])


@operation(
    "edge_add_backward(Tensor grad, Tensor out, Tensor indptr, Tensor indices, int nodes, float slope) "
    "-> (Tensor, Tensor)",
    fake=_add_shapes,
)
def edge_add_backward(
    grad: Tensor, out: Tensor, indptr: Tensor, indices: Tensor, nodes: int, slope: float
) -> tuple[Tensor, Tensor]:
    layout, heads, each = layout_of(indptr, indices), out.shape[1], like(out)
    to_target, to_source = (torch.empty(nodes, heads, dtype=out.dtype) for _ in range(2))
    args = (layout.blocks, layout.indptr, heads, slope, out, grad.contiguous(), each, to_target)
    run("between.additions_backward", out.dtype, layout.num_blocks, 2 * out.numel(), 0, args)
    by = layout.transposed(nodes)
    columns = (by.blocks, by.start, by.order, heads, each, to_source)
    run("attention.softmax_source", out.dtype, by.blocks.numel() - 1, out.numel(), 0, columns)
    return to_target, to_source
