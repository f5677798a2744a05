"""Sums of log maps in plain torch, on any manifold with exp and log; what the ball's fused kernels specialise."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hgde.diffusion.frames import in_frame, log_to_origin
from hgde.geometry import Euclidean, Lorentz, Manifold, PoincareBall, Product, ball
from hgde.graph import Graph
from hgde.kernels import EdgeWeights, LocalWeights, edge_values, tangent_sum_global_linear

#: Coordinates of pairs held at once: 64 MB in float64.
COORDINATES = 8_000_000


def edge_sum(z: Tensor, graph: Graph, weights: LocalWeights, manifold: Manifold) -> Tensor:
    """``v_i = sum_j a_ij log_{z_i}(z_j)`` over edges, ``[N, d]``; a log map and ``d`` stored numbers per edge."""
    # index_select, not z[...]: its gradient is summed in a fixed order, so that a seed gives the same bits.
    base = z.index_select(0, graph.rows)
    logs = manifold.logmap(base, z.index_select(0, graph.indices))
    values = edge_values(graph, weights)
    weighted = values[:, None] * logs if values.dim() == 1 else in_frame(manifold, base, logs, lambda u: values * u)
    total = torch.zeros_like(z).index_add(0, graph.rows, weighted)
    if isinstance(weights, EdgeWeights) and weights.origin is not None:
        total = total + weights.origin[:, None] * log_to_origin(manifold, z)
    return total


def pair_weights(query: Tensor, key: Tensor) -> Tensor:
    """``g_ij = mean_h sigmoid(q_ih . k_jh) / sum_j' sigmoid(q_ih . k_j'h)``: ``[M, H, e], [N, H, e] -> [M, N]``."""
    affinity = torch.einsum("ihe,jhe->hij", query, key).sigmoid()
    return (affinity / affinity.sum(-1, keepdim=True)).mean(0)


def pair_sum(z: Tensor, query: Tensor, key: Tensor, manifold: Manifold) -> Tensor:
    """``v_i = sum_j g_ij log_{z_i}(z_j)`` over all pairs, ``[N, d]``. Cost ``N^2 d``, a tile of rows at a time."""

    def rows(z: Tensor, key: Tensor, some: Tensor, query: Tensor) -> Tensor:
        logs = manifold.logmap(some[:, None].expand(-1, len(z), -1), z[None].expand(len(some), -1, -1))
        return (pair_weights(query, key)[..., None] * logs).sum(1)

    tile = max(1, COORDINATES // max(z.numel(), 1))
    parts = [
        checkpoint(rows, z, key, z[a : a + tile], query[a : a + tile], use_reentrant=False)
        for a in range(0, len(z), tile)
    ]
    return torch.cat(parts)


def linear_pair_sum(z: Tensor, query: Tensor, key: Tensor, manifold: Manifold) -> Tensor:
    """The linear-cost form of :func:`pair_sum`, see :func:`hgde.kernels.tangent_sum_global_linear`.

    A model of hyperbolic space goes by the ball's form, flat space by weighted means, a product part by part.
    """
    if isinstance(manifold, Euclidean):
        return linear_mean(z, query, key) - z
    if isinstance(manifold, Product):
        pieces = zip(manifold.split(z), manifold.factors, strict=True)
        return torch.cat([linear_pair_sum(piece, query, key, part) for piece, part in pieces], dim=-1)
    if isinstance(manifold, PoincareBall):
        return tangent_sum_global_linear(z, query, key, manifold.c)
    if not isinstance(manifold, Lorentz):
        raise TypeError(
            f"linear-global needs means that factor over the nodes, which {type(manifold).__name__} has none of; use "
            "global, or a ball, lorentz, euclidean or product space"
        )
    x = ball.expmap0(manifold.logmap0(z), manifold.c)
    target = ball.expmap(x, tangent_sum_global_linear(x, query, key, manifold.c), manifold.c)
    return manifold.logmap(z, manifold.expmap0(ball.logmap0(target, manifold.c)))


def linear_slope(query: Tensor, key: Tensor) -> Tensor:
    """The slope ``b <= 1/4`` of ``1/2 + b s`` that leaves no weight negative, ``b max|q| max|k| <= 1/2``. ``[H, 1]``"""
    reach = query.norm(dim=-1).amax(0) * key.norm(dim=-1).amax(0)
    return (0.5 / reach.clamp_min(torch.finfo(query.dtype).tiny)).clamp_max(0.25).unsqueeze(-1)


def linear_mean(values: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """``sum_j g_ij values_j`` with ``g_ij`` proportional to ``1/2 + b q_i . k_j``, heads averaged. Cost ``N H e d``."""
    scaled = linear_slope(query, key) * query
    moved = 0.5 * values.sum(0) + torch.einsum("ihe,hef->ihf", scaled, torch.einsum("jhe,jf->hef", key, values))
    total = 0.5 * len(values) + torch.einsum("ihe,he->ih", scaled, key.sum(0))
    return (moved / total[..., None]).mean(1)


def linear_weights(query: Tensor, key: Tensor, nodes: Tensor) -> Tensor:
    """``g_ij`` of the linear form for the rows ``nodes [M]``: ``[N, H, e], [N, H, e] -> [M, N]``."""
    raw = 0.5 + torch.einsum("ihe,jhe->hij", linear_slope(query, key) * query[nodes], key)
    return (raw / raw.sum(-1, keepdim=True)).mean(0)
