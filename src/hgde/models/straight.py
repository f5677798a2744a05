"""From features to scores in one node of autograd, for the form in which HGDE is mostly trained.

Encoder, steps and decoder are each one compiled operation. On a small graph what torch does between them (a node of
autograd for each, and two for every use of a curvature) takes longer than they do. Here the same operations are called
one after the other, forward and backward, and only parameters go in and scores come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from hgde import randomness
from hgde.diffusion import GraphFlow
from hgde.geometry import Curvature, PoincareBall
from hgde.graph import Features, Graph, SparseFeatures
from hgde.kernels import Reach
from hgde.kernels.backend import use_fused
from hgde.kernels.ops import attending, decoding, diffusion, encoding
from hgde.kernels.ops.arguments import report
from hgde.kernels.ops.register import itself, refuse_second
from hgde.kernels.ops.sparse import draw_keys
from hgde.kernels.weights import AttentionRule, EdgeWeights
from hgde.models.block import HPDEBlock
from hgde.models.layers import Encoder, NodeDecoder

_encode, _encode_backward = itself(encoding.encode), itself(encoding.encode_backward)
_decode, _decode_backward = itself(decoding.decode), itself(decoding.decode_backward)
_diffuse, _diffuse_backward = itself(diffusion.diffuse), itself(diffusion.diffuse_backward)
_attend, _attend_backward = itself(attending.attend), itself(attending.attend_backward)


@dataclass(frozen=True)
class _Way:
    """What does not depend on parameters."""

    features: tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]
    encoding: tuple[float, int]
    source: Curvature
    target: Curvature
    pattern: tuple[Tensor, Tensor]
    edge: Tensor | None
    extra: Tensor | None
    steps: tuple[int, int, int]
    keep: Any
    slope: float
    counts: tuple[int, ...]


class _Straight(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, way: _Way, weight: Tensor, bias: Tensor, log_source: Tensor | None, log_target: Tensor | None,
        eta: Tensor | None, scoring: Tensor | None, matrix: Tensor, shift: Tensor,
    ) -> Tensor:  # fmt: skip
        c, c_out = way.source(), way.target()
        start, product, projected = _encode(*way.features, weight, bias, c, c_out, *way.encoding)
        report(projected)
        given: tuple[Any, ...]
        if scoring is None:
            given = (start, None, c_out, eta, way.edge, None, None, way.extra, *way.pattern)
            end, states, kept, projected = _diffuse(*given, *way.steps, way.keep, way.counts)
        else:
            given = (start, None, c_out, eta, scoring, way.edge, *way.pattern)
            end, states, kept, projected = _attend(*given, *way.steps, way.slope, way.keep, way.counts)
        report(projected)
        scores, decoded = _decode(end, matrix, shift, c_out)
        ctx.way, ctx.curvatures = way, (c, c_out)
        ctx.save_for_backward(weight, bias, eta, scoring, matrix, shift, start, product, end, states, kept, decoded)
        result: Tensor = scores
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            refuse_second("encode")
        way, (c, c_out) = ctx.way, ctx.curvatures
        weight, bias, eta, scoring, matrix, shift, start, product, end, states, kept, decoded = ctx.saved_tensors
        gend, gmatrix, gshift, gdecoder = _decode_backward(grad, end, matrix, shift, c_out, decoded)
        gscoring: Tensor | None = None
        if scoring is None:
            given = (start, None, c_out, eta, way.edge, None, None, way.extra, *way.pattern, states, kept)
            gstart, _, gflow, geta, *_ = _diffuse_backward(gend, *given, *way.steps, way.counts, False)
        else:
            given = (start, None, c_out, eta, scoring, way.edge, *way.pattern, states, kept)
            found = _attend_backward(gend, *given, *way.steps, way.slope, way.counts, False)
            gstart, _, gflow, geta, gscoring, _ = found
        found = _encode_backward(gstart, *way.features, weight, bias, c, c_out, product, *way.encoding)
        gweight, gbias, gsource, gtarget = found
        slopes = way.source.slope(c, gsource), way.target.slope(c_out, gtarget + gflow + gdecoder)
        each = (gweight, gbias, *slopes, geta, gscoring, gmatrix, gshift)
        wanted = ctx.needs_input_grad[1:]
        return None, *(g if w else None for g, w in zip(each, wanted, strict=True))


def straight_scores(
    encoder: Encoder, block: HPDEBlock, decoder: NodeDecoder, features: Features, graph: Graph, reach: Reach
) -> Tensor | None:
    """Scores of the nodes that are asked for, ``[n, outputs]``; none where the model has another form."""
    flow, linear, last = block.flow, encoder.linear, decoder.linear
    source, target, values = linear.manifold, encoder.target, getattr(features, "values", None)
    drops = encoder.training and encoder.dropout > 0
    if (
        not isinstance(features, SparseFeatures)
        or values is None
        or values.requires_grad
        or encoder.hidden
        or (encoder.training and encoder.state_dropout > 0)
        or (decoder.training and decoder.dropout > 0)
        or linear.bias is None
        or last.bias is None
        or not isinstance(source, PoincareBall)
        or not isinstance(target, PoincareBall)
        or last.manifold is not target
        or flow.manifold is not target
        or any(_is_watched(part) for part in (encoder, linear, block, flow, flow.diffusivity, decoder, last))
        or not use_fused("auto", values, linear.weight, linear.bias, last.weight, last.bias)
    ):
        return None
    weighed = _weights(flow, graph, reach, linear.weight)
    if weighed is None:
        return None
    block.check(linear.weight, graph)
    edge, extra, scoring, slope, keep = weighed
    assert isinstance(flow.activation, str)
    bent = encoder.activation if encoder.bends_last else "identity"
    codes, mode = diffusion.ACTIVATION_CODES, diffusion.MOVED if flow.eta is None else diffusion.RESIDUAL
    keys = draw_keys(randomness.generator()) if drops else None
    way = _Way(
        (values, keys, features.indptr, features.indices, reach.rows),
        (encoder.dropout, codes[bent]),
        source.curvature,
        target.curvature,
        (reach.layout.indptr, reach.layout.indices),
        edge,
        extra,
        (len(reach.counts) - 1, mode, codes[flow.activation]),
        keep,
        slope,
        reach.counts,
    )
    logs = (getattr(space.curvature, "log_scale", None) for space in (source, target))
    eta = flow.eta if flow.eta is None or isinstance(flow.eta, Tensor) else _three(flow.eta)
    result: Tensor = _Straight.apply(way, linear.weight, linear.bias, *logs, eta, scoring, last.weight, last.bias)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return result


@lru_cache(maxsize=8)
def _three(eta: tuple[float, ...]) -> Tensor:
    return torch.tensor(eta, dtype=torch.float64)


def _weights(
    flow: GraphFlow, graph: Graph, reach: Reach, like: Tensor
) -> tuple[Tensor | None, Tensor | None, Tensor | None, float, Any] | None:
    """Weights of edges and of the origin, scoring and slope of attention, and what the steps keep for the gradient;
    none where weights of edges are trained."""
    size, learns = reach.counts[0] * like.shape[1], torch.is_grad_enabled()
    rule: AttentionRule | None = flow.diffusivity.rule(graph, like.dtype)
    if rule is not None:
        keep = learns and diffusion.is_small(size, graph.num_edges)
        return None if rule.edge is None else reach.of_edges(rule.edge), None, rule.scoring, rule.negative_slope, keep
    operator = flow.diffusivity(like, graph, flow.manifold)
    weights = operator.edges_alone
    if not isinstance(weights, EdgeWeights) or weights.values.requires_grad:
        return None
    if weights.origin is not None and weights.origin.requires_grad:
        return None
    keeps = diffusion.ALL if diffusion.is_small(size, graph.num_edges) else diffusion.LAST
    extra = None if weights.origin is None else weights.origin.index_select(0, reach.rows)
    return reach.of_edges(weights.values), extra, None, 0.0, keeps if learns else diffusion.NOTHING


def _is_watched(module: nn.Module) -> bool:
    """Whether somebody wants to see what goes in or out."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )
