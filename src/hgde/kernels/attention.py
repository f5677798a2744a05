"""Graph-attention weights in compiled passes: the softmax of a row is worked out twice and never stored per head."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hgde.graph import Graph
from hgde.kernels.compiled import compiled
from hgde.kernels.layout import Array, Layout, layout_of
from hgde.kernels.pool import run_blocks
from hgde.kernels.weights import AttentionWeights


@compiled
def _softmax_blocks(
    first: int,
    last: int,
    blocks: Any,
    indptr: Any,
    indices: Any,
    target: Any,
    source: Any,
    slope: float,
    top: Any,
    total: Any,
    out: Any,
) -> None:
    """``out_e = mean_h softmax``; ``top, total [N, H]`` keep each row's maximum and normaliser."""
    heads = target.shape[1]
    for i in range(blocks[first], blocks[last]):
        begin, end = indptr[i], indptr[i + 1]
        for e in range(begin, end):
            out[e] = 0
        for h in range(heads):
            largest = -np.inf
            for e in range(begin, end):
                score = target[i, h] + source[indices[e], h]
                largest = max(largest, score if score > 0 else score * slope)
            mass = 0.0
            for e in range(begin, end):
                score = target[i, h] + source[indices[e], h]
                mass += np.exp((score if score > 0 else score * slope) - largest)
            top[i, h], total[i, h] = largest, mass
            for e in range(begin, end):
                score = target[i, h] + source[indices[e], h]
                out[e] += np.exp((score if score > 0 else score * slope) - largest) / (mass * heads)


@compiled
def _target_blocks(
    first: int,
    last: int,
    blocks: Any,
    indptr: Any,
    indices: Any,
    target: Any,
    source: Any,
    slope: float,
    top: Any,
    total: Any,
    grad: Any,
    mean: Any,
    gtarget: Any,
) -> None:
    """Gradient of the receiving scores; ``mean [N, H]`` is each row's mean of ``grad`` under its softmax."""
    heads = target.shape[1]
    for i in range(blocks[first], blocks[last]):
        for h in range(heads):
            average = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                score = target[i, h] + source[indices[e], h]
                p = np.exp((score if score > 0 else score * slope) - top[i, h]) / total[i, h]
                average += p * grad[e]
            mean[i, h] = average
            g = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                score = target[i, h] + source[indices[e], h]
                p = np.exp((score if score > 0 else score * slope) - top[i, h]) / total[i, h]
                g += p * (grad[e] - average) * (1.0 if score > 0 else slope)
            gtarget[i, h] = g / heads


@compiled
def _source_blocks(
    first: int,
    last: int,
    blocks: Any,
    around: Any,
    neighbours: Any,
    out_edge: Any,
    target: Any,
    source: Any,
    slope: float,
    top: Any,
    total: Any,
    grad: Any,
    mean: Any,
    gsource: Any,
) -> None:
    """Gradient of the sending scores, gathered over the edges that leave a node."""
    heads = target.shape[1]
    for j in range(blocks[first], blocks[last]):
        for h in range(heads):
            g = 0.0
            for place in range(around[j], around[j + 1]):
                e = out_edge[place]
                if e < 0:
                    continue
                i = neighbours[place]
                score = target[i, h] + source[j, h]
                p = np.exp((score if score > 0 else score * slope) - top[i, h]) / total[i, h]
                g += p * (grad[e] - mean[i, h]) * (1.0 if score > 0 else slope)
            gsource[j, h] = g / heads


def _array(tensor: Tensor) -> Array:
    return tensor.detach().contiguous().numpy()


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, target: Tensor, source: Tensor, slope: float, layout: Layout) -> Tensor:
        t, s = _array(target), _array(source)
        top, total, out = np.empty_like(t), np.empty_like(t), np.empty(len(layout.indices), t.dtype)
        args = (layout.blocks, layout.indptr, layout.indices, t, s, slope, top, total, out)
        run_blocks(_softmax_blocks, layout.num_blocks, _work(layout, t), args)
        ctx.save_for_backward(target, source)
        ctx.layout, ctx.slope, ctx.top, ctx.total = layout, slope, top, total
        return torch.from_numpy(out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        layout: Layout = ctx.layout
        t, s = (_array(tensor) for tensor in ctx.saved_tensors)
        g, mean, gtarget, gsource = _array(grad), np.empty_like(t), np.empty_like(t), np.empty_like(s)
        scores = (t, s, ctx.slope, ctx.top, ctx.total, g, mean)
        rows = (layout.blocks, layout.indptr, layout.indices, *scores, gtarget)
        run_blocks(_target_blocks, layout.num_blocks, _work(layout, t), rows)
        columns = (layout.around_blocks, layout.around, layout.neighbours, layout.out_edge, *scores, gsource)
        run_blocks(_source_blocks, len(layout.around_blocks) - 1, _work(layout, t), columns)
        return torch.from_numpy(gtarget), torch.from_numpy(gsource), None, None


def _work(layout: Layout, scores: Array) -> int:
    return 40 * len(layout.indices) * scores.shape[1]


def attention_values(graph: Graph, weights: AttentionWeights) -> Tensor:
    """The weight of every edge, ``[E]``, differentiable in both node scores. Cost ``E H``, memory ``E + N H``."""
    return _Attention.apply(weights.target, weights.source, weights.negative_slope, layout_of(graph))
