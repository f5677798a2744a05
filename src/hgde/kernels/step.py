"""The public face of the kernels: one step of graph diffusion, by whichever implementation serves the tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hgde.graph import Graph
from hgde.kernels import reference
from hgde.kernels.backend import Backend, use_fused
from hgde.kernels.reference import ACTIVATIONS, Activation
from hgde.kernels.weights import AttentionWeights, ChannelWeights, EdgeWeights, LocalWeights

Eta = Tensor | Sequence[float]


def weight_tensors(weights: LocalWeights) -> tuple[Tensor, ...]:
    if isinstance(weights, EdgeWeights):
        return (weights.values,)
    if isinstance(weights, AttentionWeights):
        return (weights.target, weights.source)
    return (weights.table, weights.scale)


def _check(z: Tensor, graph: Graph, weights: LocalWeights) -> None:
    if z.dim() != 2 or z.shape[0] != graph.num_nodes:
        raise ValueError(f"z must be [num_nodes, width] = [{graph.num_nodes}, width], got {list(z.shape)}")
    if isinstance(weights, EdgeWeights) and weights.values.shape != (graph.num_edges,):
        raise ValueError(
            f"edge weights must be [num_edges] = [{graph.num_edges}], got {list(weights.values.shape)}; "
            "they follow the graph's edge order"
        )
    if isinstance(weights, ChannelWeights) and weights.scale.shape != z.shape:
        raise ValueError(
            f"the scale of channel weights must be {list(z.shape)} like z, got {list(weights.scale.shape)}"
        )


def _eta(eta: Eta | None, like: Tensor) -> Tensor | None:
    if eta is None:
        return None
    found = torch.as_tensor(eta, dtype=like.dtype, device=like.device)
    if found.shape != (3,):
        raise ValueError(
            f"eta must be three numbers (moved point, present point, first point), got {list(found.shape)}"
        )
    return found


def _curvature(c: Tensor | float, like: Tensor) -> Tensor:
    return torch.as_tensor(c, dtype=like.dtype, device=like.device)


def tangent_sum(z: Tensor, graph: Graph, weights: LocalWeights, c: Tensor | float, backend: Backend = "auto") -> Tensor:
    """``v_i = sum_j a_ij log_{z_i}(z_j)`` over the edges that arrive at ``i``.

    Shapes: ``z [N, d]`` inside the ball of curvature ``-c``; result ``[N, d]``, in the tangent space of each point.
    Cost: one inner product and one scaled addition of width ``d`` per edge; the fused path stores nothing per edge but
    the weights themselves.
    """
    _check(z, graph, weights)
    c = _curvature(c, z)
    if use_fused(backend, z, c, *weight_tensors(weights)):
        from hgde.kernels import fused

        return fused.tangent_sum(z, graph, weights, c)
    return reference.tangent_sum(z, graph, weights, c)


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
    """
    c, eta = _curvature(c, z), _eta(eta, z)
    if isinstance(activation, str) and use_fused(backend, z, v, c, z0, eta):
        from hgde.kernels import fused

        return fused.advance(z, v, c, z0, eta, activation)
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
) -> Tensor:
    """``steps`` applications of :func:`diffuse` with weights that do not change: ``heuler`` at ``tau = 1``.

    ``z0`` defaults to the given ``z``. The fused path saves one state per step and passes through Python once.
    """
    _check(z, graph, weights)
    c, eta = _curvature(c, z), _eta(eta, z)
    if eta is not None and z0 is None:
        z0 = z
    if isinstance(activation, str) and use_fused(backend, z, c, z0, eta, *weight_tensors(weights)):
        from hgde.kernels import fused

        return fused.diffuse_steps(z, graph, weights, c, steps, z0, eta, activation)
    if isinstance(weights, AttentionWeights):
        weights = EdgeWeights(reference.attention_values(graph, weights))
    for _ in range(steps):
        z = reference.advance(z, reference.tangent_sum(z, graph, weights, c), c, z0, eta, activation)
    return z


def edge_values(graph: Graph, weights: LocalWeights, backend: Backend = "auto") -> Tensor:
    """The weight of every edge as numbers: ``[E]``, or ``[E, d]`` for channel weights (for pictures and tests)."""
    if isinstance(weights, EdgeWeights):
        return weights.values
    if isinstance(weights, ChannelWeights):
        return weights.scale[graph.rows] * weights.table[weights.index]
    if use_fused(backend, *weight_tensors(weights)):
        from hgde.kernels import fused

        return fused.attention_values(graph, weights)
    return reference.attention_values(graph, weights)


__all__ = ["ACTIVATIONS", "advance", "diffuse", "diffuse_steps", "edge_values", "tangent_sum"]
