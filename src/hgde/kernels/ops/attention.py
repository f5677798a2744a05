"""Graph-attention weights of all edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import Layout, layout_of
from hgde.kernels.cpu.threads import run
from hgde.kernels.ops.register import LANES, like, operation


def _work(layout: Layout, scores: Tensor) -> int:
    return 20 * layout.num_entries * scores.shape[1]


def _buffer(layout: Layout, scores: Tensor) -> int:
    """Doubles for the scores of a strip's edges, brought up to whole vectors."""
    return layout.most_in_strip(LANES) * scores.shape[1] + LANES


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    target, source, edge, indptr, indices, ctx.slope = inputs
    ctx.save_for_backward(target, source, edge, indptr, indices, output[1], output[2])


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    wanted = ctx.needs_input_grad
    found = attention_backward(grad, *ctx.saved_tensors, ctx.slope, wanted[2])
    return tuple(g if w else None for g, w in zip(found, wanted, strict=False)) + (None,) * 3


def _shapes(target: Tensor, source: Any, edge: Any, indptr: Any, indices: Tensor, slope: float) -> tuple[Tensor, ...]:
    doubles = target.new_empty(target.shape, dtype=torch.float64)
    return target.new_empty(indices.shape[0]), doubles, torch.empty_like(doubles)


@operation(
    "attention(Tensor target, Tensor source, Tensor? edge, Tensor indptr, Tensor indices, float slope) "
    "-> (Tensor, Tensor, Tensor)",
    fake=_shapes,
    backward=_backward,
    save=_save,
)
def attention(
    target: Tensor, source: Tensor, edge: Tensor | None, indptr: Tensor, indices: Tensor, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """``a_ij = mean_h m_ij exp(l_ijh) / sum_k m_ik exp(l_ikh)`` of every edge, ``[E]``.

    Also each row's largest score and normaliser, ``[N, H]``. Cost ``E H``, memory ``E + N H``.
    """
    layout = layout_of(indptr, indices)
    top, mass = (pages.empty(target.shape, torch.float64) for _ in range(2))
    out = pages.empty(indices.shape[0], target.dtype)
    args = (*_scores(layout, target, source, edge, slope), top, mass, out)
    run("attention.softmax", target.dtype, layout.num_blocks, _work(layout, target), _buffer(layout, target), args)
    return out, top, mass


def _scores(layout: Layout, target: Tensor, source: Tensor, edge: Tensor | None, slope: float) -> tuple[Any, ...]:
    given = (0, 0) if edge is None else (1, edge.contiguous())
    graph = (layout.blocks, layout.indptr, layout.indices, target.shape[1])
    return *graph, target.contiguous(), source.contiguous(), slope, *given


def _gradient_shapes(
    grad: Any, target: Tensor, source: Tensor, edge: Tensor | None, indptr: Any, indices: Any, top: Any, mass: Any,
    slope: float, wanted: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    return like(target), like(source), like(edge) if edge is not None and wanted else target.new_empty(0)


@operation(
    "attention_backward(Tensor grad, Tensor target, Tensor source, Tensor? edge, Tensor indptr, Tensor indices, "
    "Tensor top, Tensor mass, float slope, bool wanted) -> (Tensor, Tensor, Tensor)",
    fake=_gradient_shapes,
)
def attention_backward(
    grad: Tensor, target: Tensor, source: Tensor, edge: Tensor | None, indptr: Tensor, indices: Tensor, top: Tensor,
    mass: Tensor, slope: float, wanted: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of both scores and, if ``wanted``, of the edges' own weights."""
    layout = layout_of(indptr, indices)
    g, each = grad.contiguous(), pages.empty((indices.shape[0], target.shape[1]), target.dtype)
    gtarget, gsource = like(target), like(source)
    gedge = torch.zeros_like(edge) if edge is not None and wanted else target.new_empty(0)
    given = _scores(layout, target, source, edge, slope)
    args = (*given, top, mass, g, gtarget, int(gedge.numel() > 0), gedge, each)
    work, buffer = _work(layout, target), _buffer(layout, target)
    run("attention.softmax_target", target.dtype, layout.num_blocks, work, buffer, args)
    by = layout.transposed(len(target))
    columns = (by.blocks, by.start, by.order, target.shape[1], each, gsource)
    run("attention.softmax_source", target.dtype, by.blocks.numel() - 1, each.numel(), 0, columns)
    return gtarget, gsource, gedge
