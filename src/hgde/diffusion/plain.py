"""Sums of log maps in plain torch, on any manifold with exp and log; what the ball's fused kernels specialise."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hgde.diffusion.frames import in_frame, log_to_origin
from hgde.geometry import Euclidean, Lorentz, Manifold, PoincareBall, Product, ball
from hgde.graph import Graph, SparseFeatures
from hgde.kernels import EdgeWeights, LocalWeights, edge_values, linear, sparse_matmul, tangent_sum_global_linear

#: Coordinates of pairs held at once: 64 MB in float64.
COORDINATES = 8_000_000


def edge_sum(z: Tensor, graph: Graph, weights: LocalWeights, manifold: Manifold) -> Tensor:
    """``v_i = sum_j a_ij log_{z_i}(z_j)`` over edges, ``[N, d]``; a log map and ``d`` stored numbers per edge.

    In flat space with constant weights it is ``A z - diag(A 1) z``, a sparse product that stores nothing.
    """
    if isinstance(manifold, Euclidean) and isinstance(weights, EdgeWeights) and not weights.values.requires_grad:
        return _flat_sum(z, graph, weights)
    # index_select, not z[...]: its gradient is summed in a fixed order, so that a seed gives the same bits.
    base = z.index_select(0, graph.rows)
    logs = manifold.logmap(base, z.index_select(0, graph.indices))
    values = edge_values(graph, weights)
    weighted = values[:, None] * logs if values.dim() == 1 else in_frame(manifold, base, logs, lambda u: values * u)
    total = torch.zeros_like(z).index_add(0, graph.rows, weighted)
    if isinstance(weights, EdgeWeights) and weights.origin is not None:
        total = total + weights.origin[:, None] * log_to_origin(manifold, z)
    return total


def _flat_sum(z: Tensor, graph: Graph, weights: EdgeWeights) -> Tensor:
    values = weights.values.to(z.dtype)
    matrix = SparseFeatures(graph.indptr, graph.indices, values, (graph.num_nodes, graph.num_nodes))
    pull = z.new_zeros(graph.num_nodes).index_add(0, graph.rows, values)
    if weights.origin is not None:
        pull = pull + weights.origin
    return sparse_matmul(matrix, z) - pull[:, None] * z


def pair_weights(query: Tensor, key: Tensor) -> Tensor:
    """``g_ij = mean_h sigmoid(q_ih . k_jh) / sum_j' sigmoid(q_ih . k_j'h)``: ``[M, H, e], [N, H, e] -> [M, N]``."""
    affinity = torch.einsum("ihe,jhe->hij", query, key).sigmoid()
    return (affinity / affinity.sum(-1, keepdim=True)).mean(0)


def pair_sum(z: Tensor, query: Tensor, key: Tensor, manifold: Manifold, sources: Tensor | None = None) -> Tensor:
    """``v_i = sum_j g_ij log_{z_i}(z_j)`` over all pairs, ``[N, d]``. Cost ``N^2 d``, a tile of rows at a time.

    With ``sources [M, ..]``, whose keys are given, the sum is over these.
    """
    y = z if sources is None else sources

    def rows(y: Tensor, key: Tensor, some: Tensor, query: Tensor) -> Tensor:
        logs = manifold.logmap(some[:, None].expand(-1, len(y), -1), y[None].expand(len(some), -1, -1))
        return (pair_weights(query, key)[..., None] * logs).sum(1)

    tile = max(1, COORDINATES // max(y.numel(), 1))
    parts = [
        checkpoint(rows, y, key, z[a : a + tile], query[a : a + tile], use_reentrant=False)
        for a in range(0, len(z), tile)
    ]
    return torch.cat(parts)


def linear_pair_sum(
    z: Tensor, query: Tensor, key: Tensor, manifold: Manifold, landmarks: int = linear.LANDMARKS
) -> Tensor:
    """The linear-cost form of :func:`pair_sum`, see :mod:`hgde.kernels.linear`.

    For what landmarks leave out a model of hyperbolic space goes by the ball's centroid, flat space by weighted means,
    a product part by part; on other spaces landmarks are all there is.
    """
    if isinstance(manifold, PoincareBall):
        return tangent_sum_global_linear(z, query, key, manifold.c, landmarks)
    if len(z) <= landmarks:
        return pair_sum(z, query, key, manifold)
    slope = linear.line_slope(query, key)

    def exact(y: Tensor, k: Tensor) -> Tensor:
        return pair_sum(z, query, k, manifold, y)

    def cheap(y: Tensor, k: Tensor) -> Tensor:
        return linear.recomputed(_cheap, z, query, y, k, manifold, slope)

    return linear.with_landmarks(exact, cheap, z, key, landmarks, torch.ones_like(z[:, :1]))


def _cheap(z: Tensor, query: Tensor, y: Tensor, key: Tensor, manifold: Manifold, slope: Tensor) -> Tensor:
    if isinstance(manifold, Euclidean):
        return linear.line_mean(y, query, key, slope) - z
    if isinstance(manifold, Product):
        pieces = zip(manifold.split(z), manifold.split(y), manifold.factors, strict=True)
        return torch.cat([_cheap(one, query, other, key, part, slope) for one, other, part in pieces], dim=-1)
    if isinstance(manifold, PoincareBall):
        return linear.centroid_sum(z, query, y, key, manifold.c.to(z.dtype), slope)
    if not isinstance(manifold, Lorentz):
        return torch.zeros_like(z)
    c = manifold.c.to(z.dtype)
    x, sources = (ball.expmap0(manifold.logmap0(points), c) for points in (z, y))
    target = ball.expmap(x, linear.centroid_sum(x, query, sources, key, c, slope), c)
    return manifold.logmap(z, manifold.expmap0(ball.logmap0(target, c)))
