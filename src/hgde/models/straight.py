"""From features to scores in one node of autograd, for the form in which HGDE is mostly trained.

Encoder, steps and decoder are each one compiled pass. On a small graph what is done around them (nodes of autograd,
checks, layouts looked up, arguments packed, buffers asked for) takes longer than they do. So it is done once: a model's
:class:`Straight` remembers the last form that it was called in, and keeps the passes with their buffers for the next
call. Only parameters go in and scores come out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from hgde import randomness
from hgde.diffusion import GraphFlow
from hgde.geometry import Curvature, PoincareBall, counting_projections, record_projections
from hgde.geometry.numerics import is_eager
from hgde.graph import Features, Graph, SparseFeatures
from hgde.kernels import Reach
from hgde.kernels.backend import get_backend
from hgde.kernels.dispatch import use_fused
from hgde.kernels.ops.arguments import needs_gradient
from hgde.kernels.ops.attending import Attending
from hgde.kernels.ops.decoding import Decoding
from hgde.kernels.ops.diffusion import ACTIVATION_CODES, ALL, LAST, NOTHING, Steps, is_small
from hgde.kernels.ops.encoding import Encoding, keys_of
from hgde.kernels.ops.following import Following, shape_of
from hgde.kernels.ops.register import refuse_second, told, unpadded
from hgde.kernels.ops.sparse import draw_keys
from hgde.kernels.ops.trajectory import MOVED, NO_ETA, RESIDUAL, Three, Trajectory
from hgde.kernels.weights import AttentionRule, EdgeWeights
from hgde.models.block import HPDEBlock
from hgde.models.layers import Encoder, NodeDecoder

KEEP_BYTES = 1 << 27
"""Larger buffers are given back between epochs; their arrays come again (:mod:`hgde.kernels.cpu.pages`)."""


class _Path(Protocol):
    """From the encoded points to those at time ``T``, by one compiled pass each way.

    Both take curvature, weights of the residual and the scoring of attention, if any; backward gives their gradients.
    """

    gz: Tensor

    @property
    def end(self) -> Tensor: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def projected(self) -> int: ...

    @property
    def forward(self) -> Callable[..., None]: ...

    @property
    def backward(self) -> Callable[..., Any]: ...


@dataclass(frozen=True, eq=False)
class _Way:
    """What passes are made of, and those that are made and free."""

    features: SparseFeatures
    graph: Graph
    nodes: Tensor
    reach: Reach
    block: HPDEBlock
    source: Curvature
    target: Curvature
    weights: EdgeWeights | AttentionRule
    shapes: tuple[tuple[int, int], tuple[int, int]]
    """Of the first and the last matrix."""
    drops: bool
    dropout: float
    code: int
    learns: bool
    free: list[_Passes] = field(default_factory=list)

    def lend(self) -> _Loan:
        return _Loan(self.free.pop() if self.free else _Passes(self), self.free)

    def path(self, start: Tensor) -> _Path:
        """The block's pass from encoded points, padded, that lie at ``start``."""
        flow, weights, reach, counts = self.block.flow, self.weights, self.reach, self.reach.counts
        learns, steps = self.learns, len(counts) - 1
        small = learns and is_small(counts[0] * self.shapes[0][1], self.graph.num_edges)
        assert isinstance(flow.activation, str)
        form = MOVED if flow.eta is None else RESIDUAL, ACTIVATION_CODES[flow.activation]
        if isinstance(weights, AttentionRule):
            edge = None if weights.edge is None else reach.of_edges(weights.edge)
            path = Trajectory(start, None, start.new_empty(0), None, None, None, *reach.pattern, *form, counts)
            return Attending(path, steps, weights.scoring.shape[1] // 2, edge, weights.negative_slope, small)
        extra = None if weights.origin is None else weights.origin.index_select(0, reach.rows)
        values = reach.of_edges(weights.values)
        path = Trajectory(start, None, values, None, None, extra, *reach.pattern, *form, counts)
        if self.block.is_plain_iteration:
            return Steps(path, steps, (ALL if small else LAST) if learns else NOTHING)
        assert self.block.recipe is not None
        plan = self.block.recipe.plan if learns else self.block.recipe.plan_to_end
        return Following(path, shape_of(plan), (plan.forward, plan.backward, plan.numbers), small)


class _Passes:
    """Encoder, path and decoder, each working on what the one before leaves."""

    def __init__(self, way: _Way) -> None:
        features, (first, last) = way.features, way.shapes
        given = features.values, features.indptr, features.indices, way.reach.rows
        self.encoding = Encoding(*given, *first, way.drops, way.dropout, way.code)
        self.path = way.path(self.encoding.out)
        self.decoding = Decoding(self.path.end, *last)
        self.is_kept = self.path.nbytes + 2 * self.encoding.product.nbytes <= KEEP_BYTES


class _Loan:
    """Passes for as long as somebody may ask for their gradient; afterwards others may have them."""

    def __init__(self, passes: _Passes, free: list[_Passes]) -> None:
        self.passes, self._free = passes, free

    def __del__(self) -> None:
        if self.passes.is_kept:
            self._free.append(self.passes)


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, way: _Way, weight: Tensor, bias: Tensor, log_source: Tensor | None, log_target: Tensor | None,
        eta: Tensor | None, scoring: Tensor | None, matrix: Tensor, shift: Tensor,
    ) -> Tensor:  # fmt: skip
        ctx.loan = loan = way.lend()
        fixed = way.block.flow.eta
        (c, slope), (c_out, slope_out) = way.source.number(), way.target.number()
        keys = keys_of(draw_keys(randomness.generator()) if way.drops else None)
        numbers: Three = tuple(eta.tolist()) if eta is not None else NO_ETA if fixed is None else fixed  # type: ignore[assignment]  # three
        rest = () if scoring is None else (scoring,)
        passes = loan.passes
        passes.encoding.forward(keys, weight, bias, c, c_out)
        passes.path.forward(c_out, numbers, *rest)
        if counting_projections():
            record_projections(passes.encoding.projected + passes.path.projected)
        scores = passes.decoding.forward(matrix, shift, c_out)
        ctx.given = keys, c, c_out, slope, slope_out, numbers
        ctx.save_for_backward(weight, bias, log_source, log_target, eta, scoring, matrix, shift)
        return scores

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            refuse_second("encode")
        passes, (keys, c, c_out, slope, slope_out, numbers) = ctx.loan.passes, ctx.given
        weight, bias, log_source, log_target, eta, scoring, matrix, shift = ctx.saved_tensors
        gmatrix, gshift, gdecoder = passes.decoding.backward(grad, matrix, shift, c_out)
        rest = () if scoring is None else (scoring,)
        gflow, three, *more = passes.path.backward(passes.decoding.gz, c_out, numbers, *rest)
        gweight, gbias, gc, gc_out = passes.encoding.backward(passes.path.gz, keys, bias, c, c_out)
        found = (
            *(unpadded(gweight, weight.shape[1]), gbias),
            None if log_source is None else told(slope * gc, log_source),
            None if log_target is None else told(slope_out * (gc_out + gflow + gdecoder), log_target),
            None if eta is None else told(three, eta),
            *(more or (None,)),
            *(gmatrix, gshift),
        )
        return None, *(g if w else None for g, w in zip(found, ctx.needs_input_grad[1:], strict=True))


class Straight:
    """A model's short way from features to scores, ready for the next call. A copy of a model has its own."""

    def __init__(self) -> None:
        self._known: tuple[Any, _Way | None, Any] = (None, None, None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Straight:
        return Straight()

    def __reduce__(self) -> tuple[Any, ...]:
        return Straight, ()

    def scores(
        self, encoder: Encoder, block: HPDEBlock, decoder: NodeDecoder, features: Features, graph: Graph, nodes: Tensor
    ) -> Tensor | None:
        """Scores of some nodes, ``[n, outputs]``; none where the model has another form."""
        if not isinstance(features, SparseFeatures):
            return None
        flow, linear, last = block.flow, encoder.linear, decoder.linear
        weight, bias, matrix, shift = linear.weight, linear.bias, last.weight, last.bias
        modules = encoder, linear, block, flow, flow.diffusivity, decoder, last
        tensors = features.values, weight, bias, matrix, shift
        form = (
            *(id(features), id(graph), id(nodes), nodes._version, graph.indices._version, features.indices._version),
            *(encoder.training, decoder.training, encoder.dropout, encoder.state_dropout, decoder.dropout),
            *(encoder.activation, encoder.bends_last, flow.activation, flow.eta is None, block.time, block.step),
            *(id(linear.manifold), id(encoder.target), id(block.method), block.gradient),
            *(torch.is_grad_enabled(), is_eager(), get_backend()),
            *(any(map(_is_watched, modules)), *map(_kind, tensors)),
        )
        known, way, _ = self._known
        weights = None if way is None or form != known else _weights(flow, graph, weight)
        if form != known or (way is not None and not _is_same(weights, way.weights)):
            way = _find(encoder, block, decoder, features, graph, nodes)
            weights = None if way is None else way.weights
            # Held, so that no other object has their place in memory.
            self._known = form, way, (features, graph, nodes, linear.manifold, encoder.target, block.method)
        if way is None or weights is None:
            return None
        logs = (curvature.log_scale if curvature.learnable else None for curvature in (way.source, way.target))
        eta = flow.eta if isinstance(flow.eta, Tensor) else None
        scoring = weights.scoring if isinstance(weights, AttentionRule) else None
        result: Tensor = _Scores.apply(  # type: ignore[no-untyped-call]  # torch leaves it untyped
            way, weight, bias, *logs, eta, scoring, matrix, shift
        )
        return result


def _find(
    encoder: Encoder, block: HPDEBlock, decoder: NodeDecoder, features: SparseFeatures, graph: Graph, nodes: Tensor
) -> _Way | None:
    flow, linear, last, values = block.flow, encoder.linear, decoder.linear, features.values
    source, target = linear.manifold, encoder.target
    if (
        values.requires_grad
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
    reach = block.reach(graph, nodes, linear.weight)
    weights = None if reach is None else _weights(flow, graph, linear.weight)
    if reach is None or weights is None:
        return None
    block.check(linear.weight, graph)
    bent = encoder.activation if encoder.bends_last else "identity"
    first, second = linear.weight.shape, last.weight.shape
    drops = encoder.training and encoder.dropout > 0
    return _Way(
        features, graph, nodes, reach, block, source.curvature, target.curvature, weights,
        ((first[0], first[1]), (second[0], second[1])), drops, encoder.dropout, ACTIVATION_CODES[bent],
        torch.is_grad_enabled(),
    )  # fmt: skip


def _weights(flow: GraphFlow, graph: Graph, like: Tensor) -> EdgeWeights | AttentionRule | None:
    """The flow's weights of edges; none where they are trained."""
    diffusivity = flow.diffusivity
    rule: AttentionRule | None = diffusivity.rule(graph, like.dtype)
    if rule is not None:
        return rule
    weights = diffusivity(like, graph, flow.manifold).edges_alone
    trained = not isinstance(weights, EdgeWeights) or needs_gradient(weights.values, weights.origin)
    return None if trained else weights


def _is_same(weights: EdgeWeights | AttentionRule | None, known: EdgeWeights | AttentionRule) -> bool:
    """Whether passes that were made for the known weights serve these; the scoring of attention comes with a call."""
    if isinstance(weights, EdgeWeights) and isinstance(known, EdgeWeights):
        return weights.values is known.values and weights.origin is known.origin
    if not isinstance(weights, AttentionRule) or not isinstance(known, AttentionRule):
        return False
    is_alike = weights.scoring.shape == known.scoring.shape and weights.negative_slope == known.negative_slope
    return is_alike and weights.edge is known.edge


def _kind(tensor: Tensor | None) -> tuple[Any, ...] | None:
    return None if tensor is None else (tensor.shape, tensor.dtype, tensor.is_cpu)


def _is_watched(module: nn.Module) -> bool:
    """Whether somebody wants to see what goes in or out."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )
