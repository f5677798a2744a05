"""The public operations: each checks its arguments and is served by the compiled kernels or by plain torch.

``tangent_sum, advance, diffuse, diffuse_steps, attend_steps`` move points along the edges of a graph,
``follow`` takes them through a solver's stages, ``tangent_sum_global`` and ``tangent_sum_global_linear`` sum between
all pairs. What comes before and after, from features to points to scores, is in :mod:`~hgde.kernels.ops.layers`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hgde.compiler.load import prepare
from hgde.graph import Graph
from hgde.kernels import linear, reference
from hgde.kernels.backend import Backend
from hgde.kernels.dispatch import use_fused
from hgde.kernels.ops import attending, attention, diffusion, following, pairs, trajectory
from hgde.kernels.ops.arguments import curvature, needs_gradient, report
from hgde.kernels.ops.layers import log_origin
from hgde.kernels.plans import Recipe
from hgde.kernels.reach import Reach
from hgde.kernels.reference import Activation, resolve_activation
from hgde.kernels.weights import (
    AttentionRule,
    AttentionWeights,
    ChannelWeights,
    EdgeWeights,
    LocalWeights,
    weight_tensors,
)

Eta = Tensor | Sequence[float]


def _check(z: Tensor, graph: Graph, weights: LocalWeights, reach: Reach | None = None) -> None:
    rows = graph.num_nodes if reach is None else len(reach.rows)
    if z.dim() != 2 or z.shape[0] != rows:
        what = "num_nodes" if reach is None else "nodes within reach"
        raise ValueError(f"z must be [{what}, width] = [{rows}, width], got {list(z.shape)}")
    if isinstance(weights, ChannelWeights) and reach is not None:
        raise ValueError("channel weights are worked out for all nodes; leave out reach and select nodes afterwards")
    own = weights.values if isinstance(weights, EdgeWeights) else weights.edge
    if own is not None and own.shape != (graph.num_edges,):
        raise ValueError(
            f"edge weights must be [num_edges] = [{graph.num_edges}], got {list(own.shape)}; "
            "they follow the graph's edge order"
        )
    if isinstance(weights, EdgeWeights) and weights.origin is not None and weights.origin.shape != (graph.num_nodes,):
        found = list(weights.origin.shape)
        raise ValueError(f"the origin's weights must be [num_nodes] = [{graph.num_nodes}], got {found}")
    if isinstance(weights, ChannelWeights) and weights.scale.shape != z.shape:
        raise ValueError(
            f"the scale of channel weights must be {list(z.shape)} like z, got {list(weights.scale.shape)}"
        )


def _check_reach(reach: Reach | None, steps: int) -> None:
    if reach is not None and len(reach.counts) != steps + 1:
        raise ValueError(f"this reach is one of {len(reach.counts) - 1} steps, not of {steps}; give that of as many")


def _eta(eta: Eta | None, like: Tensor) -> Tensor | None:
    if eta is None:
        return None
    three = eta if isinstance(eta, Tensor) else torch.tensor(tuple(eta), dtype=torch.float64, device=like.device)
    if three.shape != (3,):
        raise ValueError(
            f"eta must be three numbers (moved point, present point, first point), got {list(three.shape)}"
        )
    return three


def _fused_steps(
    z: Tensor,
    graph: Graph,
    weights: LocalWeights,
    c: Tensor,
    steps: int,
    z0: Tensor | None,
    eta: Tensor | None,
    mode: int,
    code: int,
    reach: Reach | None = None,
) -> Tensor:
    index: Tensor | None = None
    scale: Tensor | None = None
    extra: Tensor | None = None
    if isinstance(weights, ChannelWeights):
        weight, scale, index, extra = weights.table, weights.scale, weights.index, weights.edge
    elif isinstance(weights, EdgeWeights):
        weight, extra = weights.values, weights.origin
    else:
        weight = edge_values(graph, weights, "fused")
    weight, extra, pattern, counts = _within(reach, graph, weight, extra)
    learns = needs_gradient(z, z0, c, eta, weight, scale, extra)
    keep = diffusion.what_to_keep(z, graph, index is not None) if learns else diffusion.NOTHING
    diffusion.prepare_for(z, graph, index is not None, learns)
    out, _, _, projected = diffusion.diffuse(
        z, z0, c, eta, weight, scale, index, extra, *pattern, steps, mode, code, keep, counts
    )
    report(projected)
    result: Tensor = out
    return result


def _within(
    reach: Reach | None, graph: Graph, weight: Tensor, extra: Tensor | None
) -> tuple[Tensor, Tensor | None, tuple[Tensor, Tensor], tuple[int, ...]]:
    """Weights of edges and of nodes, the pattern of the graph and counts of rows: all, or those within reach."""
    if reach is None:
        return weight, extra, (graph.indptr, graph.indices), ()
    near = None if extra is None else extra.index_select(0, reach.rows)
    return reach.of_edges(weight), near, reach.pattern, reach.counts


def tangent_sum(z: Tensor, graph: Graph, weights: LocalWeights, c: Tensor | float, backend: Backend = "auto") -> Tensor:
    """``v_i = sum_j a_ij log_{z_i}(z_j)`` over the edges that arrive at ``i``.

    Shapes: ``z [N, d]`` inside the ball of curvature ``-c``; result ``[N, d]``, in the tangent space of each point.
    Cost: one inner product and one scaled addition of width ``d`` per edge; the fused path stores nothing per edge but
    the weights themselves.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.kernels import EdgeWeights
    >>> z, pair = torch.tensor([[0.0, 0.0], [0.5, 0.0]]), Graph.from_edges([(0, 1)])
    >>> v = tangent_sum(z, pair, EdgeWeights(torch.tensor([0.5, 0.5])), c=1.0)
    >>> [round(number, 4) for number in v[0].tolist()]      # half of artanh 0.5
    [0.2747, 0.0]
    """
    _check(z, graph, weights)
    c = curvature(c, z)
    if use_fused(backend, z, *weight_tensors(weights)):
        return _fused_steps(z, graph, weights, c, 1, None, None, trajectory.SUMS, 0)
    return reference.tangent_sum(z, graph, weights, c).to(z.dtype)


def advance(
    z: Tensor,
    v: Tensor,
    c: Tensor | float,
    z0: Tensor | None = None,
    eta: Eta | None = None,
    activation: Activation = "identity",
    backend: Backend = "auto",
) -> Tensor:
    """``exp_z(act(v))`` and, with ``eta``, its hyperbolic residual ``gyromidpoint({exp_z(act(v)), z, z0}; eta)``.

    Shapes: ``z, v, z0 [N, d]``, ``eta`` three numbers or a tensor ``[3]`` (may be trained). Without ``z0`` the present
    point stands in for the first one.

    >>> import torch
    >>> z = torch.zeros(1, 2)
    >>> [round(number, 4) for number in advance(z, torch.tensor([[0.5, 0.0]]), c=1.0)[0].tolist()]      # tanh 0.5
    [0.4621, 0.0]
    """
    c, eta = curvature(c, z), _eta(eta, z)
    if isinstance(activation, str) and use_fused(backend, z, v, z0):
        resolve_activation(activation)
        mode = trajectory.MOVED if eta is None else trajectory.RESIDUAL
        code = diffusion.ACTIVATION_CODES[activation]
        if needs_gradient(z, v, z0, c, eta):
            prepare(("rows.advance", "rows.advance_backward"), z.dtype)
        out, projected = diffusion.advance(z, v, None if eta is None else z0, c, eta, mode, code)
        report(projected)
        result: Tensor = out
        return result
    return reference.advance(z, v, c, z0, eta, activation)


def diffuse(
    z: Tensor,
    graph: Graph,
    weights: LocalWeights,
    c: Tensor | float,
    z0: Tensor | None = None,
    eta: Eta | None = None,
    activation: Activation = "identity",
    backend: Backend = "auto",
) -> Tensor:
    """The flow ``F(z)``: :func:`tangent_sum`, activation, exponential and residual in one pass over the rows.

    Shapes as there. Saved for the backward pass: the points alone (and the weights); edge scalars are worked out again.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.kernels import EdgeWeights
    >>> z, pair = torch.tensor([[0.4, 0.0], [-0.4, 0.0]]), Graph.from_edges([(0, 1)])
    >>> moved = diffuse(z, pair, EdgeWeights(torch.tensor([0.5, 0.5])), c=1.0)      # each half of the way
    >>> bool(moved.abs().max() < 1e-6)
    True
    """
    return diffuse_steps(z, graph, weights, c, 1, z0, eta, activation, backend)


def diffuse_steps(
    z: Tensor,
    graph: Graph,
    weights: LocalWeights,
    c: Tensor | float,
    steps: int,
    z0: Tensor | None = None,
    eta: Eta | None = None,
    activation: Activation = "identity",
    backend: Backend = "auto",
    reach: Reach | None = None,
) -> Tensor:
    """``steps`` applications of :func:`diffuse` with weights that do not change: ``heuler`` at ``tau = 1``.

    ``z0`` defaults to the given ``z``. The fused path saves one state per step and passes through Python once.

    With ``reach`` (:func:`hgde.kernels.reach_of`, of as many steps) ``z`` and ``z0`` are the states of the nodes
    ``reach.rows`` alone, the result is that of the nodes asked for, and no step works on more than it takes.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.kernels import EdgeWeights, diffuse
    >>> z, pair = torch.tensor([[0.4, 0.0], [-0.4, 0.0]]), Graph.from_edges([(0, 1)])
    >>> weights = EdgeWeights(torch.tensor([0.25, 0.25]))
    >>> twice = diffuse(diffuse(z, pair, weights, 1.0), pair, weights, 1.0)
    >>> torch.allclose(diffuse_steps(z, pair, weights, 1.0, steps=2), twice)
    True
    """
    _check(z, graph, weights, reach)
    _check_reach(reach, steps)
    c, eta = curvature(c, z), _eta(eta, z)
    if eta is not None and z0 is None:
        z0 = z
    if isinstance(activation, str) and use_fused(backend, z, z0, *weight_tensors(weights)):
        resolve_activation(activation)
        if steps == 0:
            return z
        mode = trajectory.MOVED if eta is None else trajectory.RESIDUAL
        first = None if eta is None or z0 is z else z0
        code = diffusion.ACTIVATION_CODES[activation]
        return _fused_steps(z, graph, weights, c, steps, first, eta, mode, code, reach)
    if reach is not None:
        whole = (reach.among_all(z, graph), None if z0 is None else reach.among_all(z0, graph))
        moved = diffuse_steps(whole[0], graph, weights, c, steps, whole[1], eta, activation, backend)
        return moved.index_select(0, reach.rows[: reach.counts[-1]])
    if isinstance(weights, AttentionWeights):
        weights = EdgeWeights(reference.attention_values(graph, weights))
    for _ in range(steps):
        z = reference.advance(z, reference.tangent_sum(z, graph, weights, c), c, z0, eta, activation)
    return z


def follow(
    z: Tensor,
    graph: Graph,
    weights: EdgeWeights,
    c: Tensor | float,
    recipe: Recipe,
    z0: Tensor | None = None,
    eta: Eta | None = None,
    activation: str = "identity",
    reach: Reach | None = None,
) -> Tensor:
    """The last state of a solver's trajectory from ``z`` with weights that do not change, in one compiled call.

    Shapes as for :func:`diffuse`; ``recipe`` says what the solver does. Saved for the backward pass: what its maps were
    given, about three states for each evaluation, and on small graphs its sums. Where :func:`follows` is false, call
    the solver itself.

    ``reach``, of as many steps as ``recipe.plan`` has evaluations, as for :func:`diffuse_steps`.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.diffusion.recording import record
    >>> from hgde.kernels import EdgeWeights
    >>> from hgde.solvers.registry import resolve
    >>> z, pair = torch.tensor([[0.4, 0.0], [-0.4, 0.0]]), Graph.from_edges([(0, 1)])
    >>> recipe = record(resolve("hrk4"), 2.0, 1.0)      # two steps of one
    >>> end = follow(z, pair, EdgeWeights(torch.tensor([0.25, 0.25])), 1.0, recipe)
    >>> bool((end.norm(dim=1) < z.norm(dim=1)).all())      # the two have come closer
    True
    """
    _check(z, graph, weights, reach)
    c, eta = curvature(c, z), _eta(eta, z)
    first = None if eta is None or z0 is z else z0
    learns = needs_gradient(z, first, c, eta, *weight_tensors(weights))
    plan = recipe.plan if learns else recipe.plan_to_end
    _check_reach(reach, plan.evaluations)
    following.prepare_for(z, graph, learns)
    weight, extra, pattern, counts = _within(reach, graph, weights.values, weights.origin)
    given = (z, first, c, eta, weight, extra, *pattern)
    mode = trajectory.MOVED if eta is None else trajectory.RESIDUAL
    steps = (plan.forward, plan.backward, plan.numbers, following.shape_of(plan))
    code, keep = diffusion.ACTIVATION_CODES[activation], learns and following.keeps_sums(z, graph)
    out, _, _, projected = following.follow(*given, *steps, mode, code, counts, keep)
    report(projected)
    result: Tensor = out
    return result


def follows(z: Tensor, weights: EdgeWeights) -> bool:
    """Whether :func:`follow` serves these tensors: plain ones on the CPU.

    >>> import torch
    >>> from hgde.kernels import EdgeWeights
    >>> follows(torch.zeros(2, 3), EdgeWeights(torch.tensor([0.25, 0.25])))
    True
    """
    return z.numel() > 0 and use_fused("auto", z, *weight_tensors(weights))


def attend_steps(
    z: Tensor,
    graph: Graph,
    rule: AttentionRule,
    c: Tensor | float,
    steps: int,
    z0: Tensor | None = None,
    eta: Eta | None = None,
    activation: Activation = "identity",
    backend: Backend = "auto",
    reach: Reach | None = None,
) -> Tensor:
    """:func:`diffuse_steps` with attention worked out anew at every state: ``heuler`` at ``tau = 1``.

    ``reach`` as there.

    The fused path is one node of autograd and keeps one state per step. Scores, weights and their gradients are worked
    out where they are used, none of them is stored for each edge but one number a head in the backward pass.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.kernels import AttentionRule
    >>> z, pair = torch.tensor([[0.4, 0.0], [-0.4, 0.0]]), Graph.from_edges([(0, 1)])
    >>> attend_steps(z, pair, AttentionRule(torch.zeros(2, 2)), 1.0, steps=3, eta=(1.0, 0.6, 0.1)).shape
    torch.Size([2, 2])
    """
    _check_reach(reach, steps)
    c, eta = curvature(c, z), _eta(eta, z)
    if eta is not None and z0 is None:
        z0 = z
    if isinstance(activation, str) and use_fused(backend, z, z0, rule.scoring, rule.edge):
        resolve_activation(activation)
        if steps == 0:
            return z
        learns = needs_gradient(z, z0, c, eta, rule.scoring, rule.edge)
        keep = learns and diffusion.is_small(z.numel(), graph.num_edges)
        attending.prepare_for(z, learns)
        mode = trajectory.MOVED if eta is None else trajectory.RESIDUAL
        counts: tuple[int, ...] = ()
        edge, pattern = rule.edge, (graph.indptr, graph.indices)
        if reach is not None:
            edge = None if edge is None else reach.of_edges(edge)
            pattern, counts = reach.pattern, reach.counts
        given = (z, None if eta is None or z0 is z else z0, c, eta, rule.scoring, edge, *pattern)
        code = diffusion.ACTIVATION_CODES[activation]
        out, *_, projected = attending.attend(*given, steps, mode, code, rule.negative_slope, keep, counts)
        report(projected)
        result: Tensor = out
        return result
    if reach is not None:
        whole = (reach.among_all(z, graph), None if z0 is None else reach.among_all(z0, graph))
        moved = attend_steps(whole[0], graph, rule, c, steps, whole[1], eta, activation, backend)
        return moved.index_select(0, reach.rows[: reach.counts[-1]])
    for _ in range(steps):
        weights = rule.weights(log_origin(z, c, backend))
        z = reference.advance(z, reference.tangent_sum(z, graph, weights, c), c, z0, eta, activation)
    return z


def edge_values(graph: Graph, weights: LocalWeights, backend: Backend = "auto") -> Tensor:
    """The weight of every edge as numbers: ``[E]``, or ``[E, d]`` for channel weights (for reports and tests).

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.kernels import EdgeWeights
    >>> pair = Graph.from_edges([(0, 1)])
    >>> edge_values(pair, EdgeWeights(torch.tensor([0.5, 0.25]))).tolist()
    [0.5, 0.25]
    """
    if isinstance(weights, AttentionWeights) and use_fused(backend, *weight_tensors(weights)):
        if needs_gradient(weights.target, weights.source, weights.edge):
            prepare(tuple(f"attention.softmax{part}" for part in ("", "_target", "_source")), weights.target.dtype)
        given = (weights.target, weights.source, weights.edge, graph.indptr, graph.indices, weights.negative_slope)
        values: Tensor = attention.attention(*given)[0]
        return values
    return reference.edge_values(graph, weights)


def tangent_sum_global(z: Tensor, q: Tensor, k: Tensor, c: Tensor | float, backend: Backend = "auto") -> Tensor:
    """``v_i = sum_j g_ij log_{z_i}(z_j)``, ``g_ij = mean_h sigmoid(q_ih · k_jh) / sum_j' sigmoid(q_ih · k_j'h)``.

    Shapes: ``z [N, d]``, ``q, k [N, H, e]``; result ``[N, d]``. Exact. Cost ``N^2 (d + H e)``, memory ``N d`` and a
    fixed number of pairs: the ``N x N`` weights never exist, forward or backward.

    >>> import torch
    >>> z, q = torch.tensor([[0.4, 0.0], [-0.4, 0.0]]), torch.zeros(2, 1, 3)
    >>> v = tangent_sum_global(z, q, q, c=1.0)      # half of the way to each other
    >>> bool(v[0, 0] < 0 < v[1, 0])
    True
    """
    if q.shape != k.shape or q.dim() != 3 or q.shape[0] != z.shape[0]:
        raise ValueError(
            f"q and k must both be [num_nodes, heads, width] with {z.shape[0]} nodes, "
            f"got {list(q.shape)} and {list(k.shape)}"
        )
    c = curvature(c, z)
    if use_fused(backend, z, q, k):
        if needs_gradient(z, q, k, c):
            prepare(("pairs.forward", "pairs.backward"), z.dtype)
        out: Tensor = pairs.all_pairs(z, q, k, c)[0]
        return out
    return reference.tangent_sum_global(z, q, k, c.to(z.dtype))


def tangent_sum_global_linear(
    z: Tensor, q: Tensor, k: Tensor, c: Tensor | float, landmarks: int = linear.LANDMARKS, backend: Backend = "auto"
) -> Tensor:
    """:func:`tangent_sum_global` at linear cost, ``N (landmarks + H e) d``; see :mod:`hgde.kernels.linear`.

    Shapes as there. With no more nodes than landmarks it is the exact sum; beyond, its distance from it is in the page
    on performance, and is estimated at run time (:func:`hgde.kernels.watch_linear_errors`).

    >>> import torch
    >>> z, q = 0.1 * torch.eye(40, 4), torch.ones(40, 1, 4)
    >>> tangent_sum_global_linear(z, q, q, 1.0, landmarks=20).shape
    torch.Size([40, 4])
    """
    if len(z) <= landmarks:
        return tangent_sum_global(z, q, k, c, backend)
    c = curvature(c, z)
    slope, flat = linear.line_slope(q, k), c.to(z.dtype)

    def exact(y: Tensor, key: Tensor) -> Tensor:
        if use_fused(backend, z, q, k):
            if needs_gradient(z, q, k, c):
                prepare(("pairs.forward", "pairs.backward"), z.dtype)
            out: Tensor = pairs.some_pairs(z, q, y, key, c)[0]
            return out
        return reference.sum_over(z, q, y, key, flat)

    def cheap(y: Tensor, key: Tensor) -> Tensor:
        return linear.recomputed(linear.centroid_sum, z, q, y, key, flat, slope)

    return linear.with_landmarks(exact, cheap, z, k, landmarks, 2 / reference.conformal(z, flat))
