"""The operations in plain torch: any device, differentiable by autograd to any order; what the kernels must equal.

Per edge ``(i, j)`` with ``x = z_i``, ``y = z_j`` everything follows from ``delta = |x - y|^2``, ``B_x = 1 - c|x|^2``
and ``B_y``: ``D = B_x B_y + c delta``, ``w = c delta / D`` and

    log_x(y) = (B_x phi(w) / D) * (B_x (y - x) - c delta x),        phi(w) = artanh(sqrt w) / sqrt w.

Written in differences, nothing cancels where ``x`` and ``y`` are close; ``1 - w = B_x B_y / D`` needs no subtraction.
Scalars of edges and all that belongs to a row are in double precision whatever the dtype of the points, since
``1 - c|x|^2`` loses ``exp`` of the distance from the origin; tensors of size edges x width keep their dtype.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from hgde.geometry import ball, numerics
from hgde.graph import Graph
from hgde.kernels.weights import AttentionWeights, ChannelWeights, EdgeWeights, LocalWeights

Activation = str | Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda v: v,
    "relu": functional.relu,
    "leaky_relu": functional.leaky_relu,
    "tanh": torch.tanh,
    "elu": functional.elu,
}
SERIES_BELOW = 1e-2
_TERMS = 9
#: Pairs of nodes held at once.
PAIRS = 500_000
#: Below this ``1 - c|z|^2`` the sums over all pairs are taken in double precision.
NEAR_BOUNDARY = 0.05


def resolve_activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    """The function behind a name; a callable is returned as it is."""
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        known = ", ".join(sorted(ACTIVATIONS))
        raise ValueError(f"unknown activation {activation!r}: use one of {known}, or pass a callable")
    return ACTIVATIONS[activation]


def exact(x: Tensor) -> Tensor:
    """``x`` in double precision, where the device has it."""
    return x if x.device.type == "mps" else x.double()


def rows_of(graph: Graph) -> Tensor:
    """``graph.rows``, which remembers them behind a lock that ``torch.compile`` cannot trace."""
    if not torch.compiler.is_compiling():
        return graph.rows
    nodes = torch.arange(graph.num_nodes, device=graph.indptr.device)
    return nodes.repeat_interleave(graph.indptr.diff(), output_size=graph.indices.shape[0])


def artanh_ratio(w: Tensor, one_minus_w: Tensor) -> Tensor:
    """``artanh(sqrt w) / sqrt w`` for ``0 <= w < 1``, smooth through ``w = 0``."""
    small = w < SERIES_BELOW
    root = torch.where(small, torch.full_like(w, 0.25), w).sqrt()
    rest = torch.where(small, torch.full_like(w, 0.75), one_minus_w)
    large_value = ((1 + root) / rest.sqrt()).log() / root
    near = torch.where(small, w, torch.zeros_like(w))
    series = torch.zeros_like(w)
    for k in range(_TERMS, -1, -1):
        series = series * near + 1.0 / (2 * k + 1)
    return torch.where(small, series, large_value)


def conformal(z: Tensor, c: Tensor | float, dtype: torch.dtype | None = None) -> Tensor:
    """``B = 1 - c|z|^2 = 2 / lambda``, ``[..., 1]``, never below that of the dtype's limit."""
    return (1 - c * (z * z).sum(-1, keepdim=True)).clamp_min(numerics.limits(dtype or z.dtype).margin)


def attention_values(graph: Graph, weights: AttentionWeights) -> Tensor:
    """The weight of every edge, ``[E]``, see :class:`AttentionWeights`. Cost ``E H``."""
    receiver = rows_of(graph)
    score = functional.leaky_relu(weights.target[receiver] + weights.source[graph.indices], weights.negative_slope)
    if weights.edge is not None:
        score = score.masked_fill((weights.edge <= 0)[:, None], -torch.inf)
    rows = receiver[:, None].expand_as(score)
    top = torch.full_like(weights.target, -torch.inf).scatter_reduce(0, rows, score.detach(), "amax")
    top = torch.where(top.isfinite(), top, torch.zeros_like(top))
    share = (score - top[receiver]).exp()
    if weights.edge is not None:
        share = share * weights.edge[:, None]
    total = torch.zeros_like(weights.target).index_add(0, receiver, share)
    total = torch.where(total > 0, total, torch.ones_like(total))
    return (share / total[receiver]).mean(-1)


def edge_values(graph: Graph, weights: LocalWeights) -> Tensor:
    """The weight of every edge as numbers: ``[E]``, or ``[E, d]`` for channel weights."""
    if isinstance(weights, EdgeWeights):
        return weights.values
    if isinstance(weights, AttentionWeights):
        return attention_values(graph, weights)
    values = weights.scale[rows_of(graph)] * weights.table[weights.index]
    return values if weights.edge is None else values * weights.edge[:, None]


def tangent_sum(z: Tensor, graph: Graph, weights: LocalWeights, c: Tensor | float) -> Tensor:
    """``v_i = sum_j a_ij log_{z_i}(z_j)``, ``[N, d]`` (paper eq. for the divergence of the gradient), in doubles.

    Cost ``E d``.
    """
    points = exact(z)
    c = torch.as_tensor(c, dtype=points.dtype, device=z.device)
    rows = rows_of(graph)
    difference = z[graph.indices] - z[rows]
    delta = c * exact((difference * difference).sum(-1))
    b = conformal(points, c, z.dtype)
    b_row, b_column = b[rows, 0], b[graph.indices, 0]
    product = b_row * b_column
    denominator = product + delta
    s = b_row * artanh_ratio(delta / denominator, product / denominator) / denominator
    if isinstance(weights, ChannelWeights):
        if weights.edge is not None:
            s = s * weights.edge
        per_channel = weights.table[weights.index]
        pull = torch.zeros_like(z).index_add(0, rows, s.to(z.dtype)[:, None] * per_channel * difference)
        push = torch.zeros_like(points).index_add(0, rows, (s * delta)[:, None] * per_channel)
        return weights.scale * (b * pull - push * points)
    values = attention_values(graph, weights) if isinstance(weights, AttentionWeights) else weights.values
    s = s * values
    pull = torch.zeros_like(z).index_add(0, rows, s.to(z.dtype)[:, None] * difference)
    push = torch.zeros_like(b[:, 0]).index_add(0, rows, s * delta)
    if isinstance(weights, EdgeWeights) and weights.origin is not None:
        # log_z(o) = -B artanhc(c|z|^2) z
        push = push + weights.origin * (b * artanh_ratio(1 - b, b))[:, 0]
    return b * pull - push[:, None] * points


def advance(
    z: Tensor,
    v: Tensor,
    c: Tensor | float,
    z0: Tensor | None = None,
    eta: Tensor | None = None,
    activation: Activation = "identity",
) -> Tensor:
    """``F(z) = gyromidpoint({exp_z(act(v)), z, z0}; eta)``; without ``eta`` the exponential alone.

    The moved point is in double precision until the result is rounded.
    """
    points = exact(z)
    c = torch.as_tensor(c, dtype=points.dtype, device=z.device)
    act = resolve_activation(activation)
    moved = _exp(points, act(exact(v)) if isinstance(activation, str) else exact(act(v.to(z.dtype))), c)
    if eta is None:
        return ball.project(moved.to(z.dtype), c)
    first = points if z0 is None else exact(z0)
    middle = ball.gyromidpoint((ball.project(moved, c), points, first), eta.to(points.dtype), c)
    return middle if middle.dtype == z.dtype else ball.project(middle.to(z.dtype), c)


def _exp(x: Tensor, v: Tensor, c: Tensor) -> Tensor:
    """``exp_x(v)``, not projected: ``(B_x t + c|t|^2 x) / (B_x sech^2 + c|t|^2)`` with ``t = x + tanhc(q) v / B_x``."""
    b = conformal(x, c)
    half = v / b
    q = c * numerics.squared_norm(half)
    t = x + numerics.tanhc(q) * half
    spread = c * numerics.squared_norm(t)
    return (b * t + spread * x) / (b * numerics.sech2(q) + spread)


def tile_rows(sources: int) -> int:
    """Rows worked on together in sums over so many points: :data:`PAIRS` pairs, whatever the number of threads."""
    return max(1, PAIRS // max(sources, 1))


def global_rows(z: Tensor, k: Tensor, c: Tensor, rows: Tensor, q: Tensor) -> Tensor:
    """The sum over all pairs for some rows, ``rows [M, d]``, ``q [M, H, e]``; ``z [N, d]``, ``k [N, H, e]`` are all."""
    if _leaves_single_precision(z, c):
        return global_rows(z.double(), k.double(), c.double(), rows.double(), q.double()).to(z.dtype)
    affinity = torch.einsum("ihe,jhe->hij", q, k).sigmoid()
    weight = (affinity / affinity.sum(-1, keepdim=True)).mean(0)
    # Distances from differences: inner products would cancel for pairs close together near the boundary.
    spread = c * torch.cdist(rows, z, compute_mode="donot_use_mm_for_euclid_dist").square()
    b_row = conformal(rows, c)
    product = b_row * conformal(z, c).T
    denominator = product + spread
    s = weight * b_row * artanh_ratio(spread / denominator, product / denominator) / denominator
    pull = s @ z - s.sum(-1, keepdim=True) * rows
    return b_row * pull - (s * spread).sum(-1, keepdim=True) * rows


def _leaves_single_precision(z: Tensor, c: Tensor) -> bool:
    if z.dtype != torch.float32 or z.device.type == "mps":  # which has no float64
        return False
    if torch.compiler.is_compiling():  # a traced program cannot look at the points
        return True
    return bool((conformal(z, c) < NEAR_BOUNDARY).any())


def sum_over(z: Tensor, q: Tensor, y: Tensor, k: Tensor, c: Tensor) -> Tensor:
    """``v_i`` of rows ``z, q`` summed over points ``y, k``, tile by tile, worked out again for gradients."""
    tile = tile_rows(len(y))
    parts = [
        checkpoint(global_rows, y, k, c, z[a : a + tile], q[a : a + tile], use_reentrant=False)
        for a in range(0, len(z), tile)
    ]
    return torch.cat(parts) if parts else torch.zeros_like(z)


def tangent_sum_global(z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> Tensor:
    """:func:`hgde.kernels.tangent_sum_global`."""
    return sum_over(z, q, z, k, c)


def link_logits(z: Tensor, pairs: Tensor, c: Tensor, r: Tensor | float, t: Tensor | float) -> Tensor:
    """:func:`hgde.kernels.link_logits`."""
    # index_select, not z[pairs]: its gradient is summed in a fixed order, so that a seed gives the same bits.
    x, y = (z.index_select(0, end) for end in pairs)
    return ((r - ball.dist(x, y, c).square()) / t).to(z.dtype)


def pair_squares(z: Tensor, pairs: Tensor) -> Tensor:
    """:func:`hgde.kernels.pair_squares`."""
    x, y = (z.index_select(0, end) for end in pairs)
    return (x - y).square().sum(-1)


def translate_tangent(u: Tensor, point: Tensor, c: Tensor) -> Tensor:
    """:func:`hgde.kernels.translate_tangent`."""
    margin = numerics.limits(u.dtype).margin
    squared = c * numerics.squared_norm(u)
    ratio, b_e = numerics.tanhc(squared), numerics.sech2(squared)
    own = c * (point * point).sum()
    # c|e + b|^2, no less than zero where e is about -b.
    spread = (squared * ratio * ratio + 2 * c * ratio * (u @ point)[:, None] + own).clamp_min(0.0)
    product = b_e * (1 - own).clamp_min(margin)
    denominator = product + spread
    scale = artanh_ratio(spread / denominator, (product / denominator).clamp_min(2 * margin)) / denominator
    return (scale * (b_e + spread) * ratio) * u + (scale * b_e) * point
