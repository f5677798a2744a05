"""From features to scores in one node of autograd, for the form in which HGDE is mostly trained.

Encoder, steps and decoder are each one compiled operation. On a small graph what torch does between them (a node of
autograd for each, and two for every use of a curvature) takes longer than they do. Here the same operations are called
one after the other, forward and backward, and only parameters go in and scores come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from hgde import randomness
from hgde.geometry import Curvature, PoincareBall
from hgde.graph import Features, Graph, SparseFeatures
from hgde.kernels import Reach
from hgde.kernels.backend import use_fused
from hgde.kernels.ops import attending, decoding, diffusion, encoding, following, trajectory
from hgde.kernels.ops.arguments import needs_gradient, report
from hgde.kernels.ops.register import itself, refuse_second
from hgde.kernels.ops.sparse import draw_keys
from hgde.kernels.weights import AttentionRule, EdgeWeights
from hgde.models.block import HPDEBlock
from hgde.models.layers import Encoder, NodeDecoder

_encode, _encode_backward = itself(encoding.encode), itself(encoding.encode_backward)
_decode, _decode_backward = itself(decoding.decode), itself(decoding.decode_backward)
_diffuse, _diffuse_backward = itself(diffusion.diffuse), itself(diffusion.diffuse_backward)
_attend, _attend_backward = itself(attending.attend), itself(attending.attend_backward)
_follow, _follow_backward = itself(following.follow), itself(following.follow_backward)


class _Path(Protocol):
    """From the encoded points to those at time ``T``, by one compiled operation."""

    def forward(
        self, start: Tensor, c: Tensor, eta: Tensor | None, scoring: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """The last state, what is kept for the gradient, and how many points were projected."""

    def backward(
        self, grad: Tensor, start: Tensor, c: Tensor, eta: Tensor | None, scoring: Tensor | None, kept: list[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Gradients of the other arguments of :meth:`forward`."""


@dataclass(frozen=True)
class _Iterated:
    """Steps of ``heuler`` with constant weights."""

    weights: tuple[Tensor, None, None, Tensor | None, Tensor, Tensor]
    steps: tuple[int, int, int]
    keep: int
    counts: tuple[int, ...]

    def forward(self, start: Tensor, c: Tensor, eta: Tensor | None, scoring: Tensor | None) -> Any:
        end, states, sums, projected = _diffuse(start, None, c, eta, *self.weights, *self.steps, self.keep, self.counts)
        return end, (states, sums), projected

    def backward(
        self, grad: Tensor, start: Tensor, c: Tensor, eta: Tensor | None, scoring: Tensor | None, kept: list[Tensor]
    ) -> Any:
        given = (grad, start, None, c, eta, *self.weights, *kept, *self.steps, self.counts, False)
        gstart, _, gc, geta, *_ = _diffuse_backward(*given)
        return gstart, gc, geta, None


@dataclass(frozen=True)
class _Attended:
    """Steps of ``heuler`` with attention."""

    weights: tuple[Tensor | None, Tensor, Tensor]
    steps: tuple[int, int, int, float]
    keep: bool
    counts: tuple[int, ...]

    def forward(self, start: Tensor, c: Tensor, eta: Tensor | None, scoring: Tensor | None) -> Any:
        given = (start, None, c, eta, scoring, *self.weights, *self.steps, self.keep, self.counts)
        end, states, sums, projected = _attend(*given)
        return end, (states, sums), projected

    def backward(
        self, grad: Tensor, start: Tensor, c: Tensor, eta: Tensor | None, scoring: Tensor | None, kept: list[Tensor]
    ) -> Any:
        given = (grad, start, None, c, eta, scoring, *self.weights, *kept, *self.steps, self.counts, False)
        gstart, _, gc, geta, gscoring, _ = _attend_backward(*given)
        return gstart, gc, geta, gscoring


@dataclass(frozen=True)
class _Followed:
    """A solver's stages with constant weights."""

    weights: tuple[Tensor, Tensor | None, Tensor, Tensor]
    plan: tuple[Tensor, Tensor, Tensor]
    steps: tuple[list[int], int, int]
    counts: tuple[int, ...]
    keep: bool

    def forward(self, start: Tensor, c: Tensor, eta: Tensor | None, scoring: Tensor | None) -> Any:
        given = (start, None, c, eta, *self.weights, *self.plan, *self.steps, self.counts, self.keep)
        end, slots, sums, projected = _follow(*given)
        return end, (slots, sums), projected

    def backward(
        self, grad: Tensor, start: Tensor, c: Tensor, eta: Tensor | None, scoring: Tensor | None, kept: list[Tensor]
    ) -> Any:
        given = (grad, start, None, c, eta, *self.weights, *self.plan, *kept, *self.steps, self.counts, False)
        gstart, _, gc, geta, *_ = _follow_backward(*given)
        return gstart, gc, geta, None


@dataclass(frozen=True)
class _Way:
    """What does not depend on parameters."""

    features: tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]
    encoding: tuple[float, int]
    source: Curvature
    target: Curvature
    path: _Path


class _Straight(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, way: _Way, weight: Tensor, bias: Tensor, log_source: Tensor | None, log_target: Tensor | None,
        eta: Tensor | None, scoring: Tensor | None, matrix: Tensor, shift: Tensor,
    ) -> Tensor:  # fmt: skip
        c, c_out = way.source(), way.target()
        start, product, projected = _encode(*way.features, weight, bias, c, c_out, *way.encoding)
        report(projected)
        end, kept, projected = way.path.forward(start, c_out, eta, scoring)
        report(projected)
        scores, decoded = _decode(end, matrix, shift, c_out)
        ctx.way, ctx.curvatures = way, (c, c_out)
        ctx.save_for_backward(weight, bias, eta, scoring, matrix, shift, start, product, end, decoded, *kept)
        result: Tensor = scores
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            refuse_second("encode")
        way, (c, c_out) = ctx.way, ctx.curvatures
        weight, bias, eta, scoring, matrix, shift, start, product, end, decoded, *kept = ctx.saved_tensors
        gend, gmatrix, gshift, gdecoder = _decode_backward(grad, end, matrix, shift, c_out, decoded)
        gstart, gflow, geta, gscoring = way.path.backward(gend, start, c_out, eta, scoring, kept)
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
    chosen = _path(block, graph, reach, linear.weight)
    if chosen is None:
        return None
    block.check(linear.weight, graph)
    path, scoring = chosen
    bent = encoder.activation if encoder.bends_last else "identity"
    keys = draw_keys(randomness.generator()) if drops else None
    way = _Way(
        (values, keys, features.indptr, features.indices, reach.rows),
        (encoder.dropout, diffusion.ACTIVATION_CODES[bent]),
        source.curvature,
        target.curvature,
        path,
    )
    logs = (getattr(space.curvature, "log_scale", None) for space in (source, target))
    eta = flow.eta if flow.eta is None or isinstance(flow.eta, Tensor) else _three(flow.eta)
    result: Tensor = _Straight.apply(way, linear.weight, linear.bias, *logs, eta, scoring, last.weight, last.bias)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return result


@lru_cache(maxsize=8)
def _three(eta: tuple[float, ...]) -> Tensor:
    return torch.tensor(eta, dtype=torch.float64)


def _path(block: HPDEBlock, graph: Graph, reach: Reach, like: Tensor) -> tuple[_Path, Tensor | None] | None:
    """The block's operation with the scoring of its attention; none where weights of edges are trained."""
    flow, learns, counts = block.flow, torch.is_grad_enabled(), reach.counts
    is_small = diffusion.is_small(counts[0] * like.shape[1], graph.num_edges)
    assert isinstance(flow.activation, str)
    mode = trajectory.MOVED if flow.eta is None else trajectory.RESIDUAL
    form = mode, diffusion.ACTIVATION_CODES[flow.activation]
    rule: AttentionRule | None = flow.diffusivity.rule(graph, like.dtype)
    if rule is not None:
        edge = None if rule.edge is None else reach.of_edges(rule.edge)
        heard = (len(counts) - 1, *form, rule.negative_slope)
        return _Attended((edge, *reach.pattern), heard, learns and is_small, counts), rule.scoring
    weights = flow.diffusivity(like, graph, flow.manifold).edges_alone
    if not isinstance(weights, EdgeWeights) or needs_gradient(weights.values, weights.origin):
        return None
    extra = None if weights.origin is None else weights.origin.index_select(0, reach.rows)
    values = reach.of_edges(weights.values)
    if block.is_plain_iteration:
        keep = (diffusion.ALL if is_small else diffusion.LAST) if learns else diffusion.NOTHING
        return _Iterated((values, None, None, extra, *reach.pattern), (len(counts) - 1, *form), keep, counts), None
    assert block.recipe is not None
    plan = block.recipe.plan
    stages = plan.forward, plan.backward, plan.numbers
    steps = following.shape_of(plan), *form
    return _Followed((values, extra, *reach.pattern), stages, steps, counts, learns and is_small), None


def _is_watched(module: nn.Module) -> bool:
    """Whether somebody wants to see what goes in or out."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )
