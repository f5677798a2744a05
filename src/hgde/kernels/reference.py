"""One step of diffusion in plain torch: any device, differentiable by autograd; what the fused kernels must equal.

Per edge ``(i, j)`` with ``x = z_i``, ``y = z_j`` everything follows from ``delta = |x - y|^2``, ``B_x = 1 - c|x|^2``
and ``B_y``: ``D = B_x B_y + c delta``, ``w = c delta / D`` and

    log_x(y) = (B_x phi(w) / D) * (B_x (y - x) - c delta x),        phi(w) = artanh(sqrt w) / sqrt w.

Written in differences, nothing cancels where ``x`` and ``y`` are close; ``1 - w = B_x B_y / D`` needs no subtraction.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from hgde.graph import Graph
from hgde.kernels.limits import max_norm, record_pullbacks
from hgde.kernels.weights import AttentionWeights, ChannelWeights, LocalWeights

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


def resolve_activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    """The function behind a name; a callable is returned as it is."""
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        known = ", ".join(sorted(ACTIVATIONS))
        raise ValueError(f"unknown activation {activation!r}: use one of {known}, or pass a callable")
    return ACTIVATIONS[activation]


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


def tanh_ratio(rho: Tensor) -> Tensor:
    """``tanh(sqrt rho) / sqrt rho`` for ``rho >= 0``, smooth through ``rho = 0``."""
    small = rho < SERIES_BELOW
    root = torch.where(small, torch.ones_like(rho), rho).sqrt()
    near = torch.where(small, rho, torch.zeros_like(rho))
    series = torch.zeros_like(rho)
    for coefficient in reversed(TANH_SERIES):
        series = series * near + coefficient
    return torch.where(small, series, root.tanh() / root)


TANH_SERIES = (
    1.0,
    -1.0 / 3.0,
    2.0 / 15.0,
    -17.0 / 315.0,
    62.0 / 2835.0,
    -1382.0 / 155925.0,
    21844.0 / 6081075.0,
    -929569.0 / 638512875.0,
    6404582.0 / 10854718875.0,
)


def conformal(z: Tensor, c: Tensor | float) -> Tensor:
    """``B = 1 - c|z|^2 = 2 / lambda``, ``[..., 1]``."""
    return 1 - c * (z * z).sum(-1, keepdim=True)


def pull_back(z: Tensor, c: Tensor | float) -> Tensor:
    """Points beyond the dtype's limit moved to it along their ray; how many is recorded."""
    limit = max_norm(z.dtype)
    squared = c * (z * z).sum(-1, keepdim=True)
    outside = squared > limit * limit
    record_pullbacks(outside.detach().sum())
    return torch.where(outside, z * (limit / torch.where(outside, squared, torch.ones_like(squared)).sqrt()), z)


def attention_values(graph: Graph, weights: AttentionWeights) -> Tensor:
    """The weight of every edge, ``[E]``: ``mean_h softmax_j LeakyReLU(target_ih + source_jh)``. Cost ``E H``."""
    score = functional.leaky_relu(weights.target[graph.rows] + weights.source[graph.indices], weights.negative_slope)
    rows = graph.rows[:, None].expand_as(score)
    top = torch.full_like(weights.target, -torch.inf).scatter_reduce(0, rows, score.detach(), "amax")
    exponential = (score - top[graph.rows]).exp()
    total = torch.zeros_like(weights.target).index_add(0, graph.rows, exponential)
    return (exponential / total[graph.rows]).mean(-1)


def tangent_sum(z: Tensor, graph: Graph, weights: LocalWeights, c: Tensor | float) -> Tensor:
    """``v_i = sum_j a_ij log_{z_i}(z_j)``, ``[N, d]`` (paper eq. for the divergence of the gradient). Cost ``E d``."""
    difference = z[graph.indices] - z[graph.rows]
    delta = (difference * difference).sum(-1)
    b = conformal(z, c).squeeze(-1)
    b_row = b[graph.rows]
    denominator = torch.addcmul(c * delta, b_row, b[graph.indices])
    ratio = artanh_ratio(c * delta / denominator, b_row * b[graph.indices] / denominator)
    s = b_row * ratio / denominator
    zero = torch.zeros_like(z)
    if isinstance(weights, ChannelWeights):
        per_channel = weights.table[weights.index]
        pull = zero.index_add(0, graph.rows, s[:, None] * per_channel * difference)
        push = zero.index_add(0, graph.rows, (s * delta)[:, None] * per_channel)
        return weights.scale * (b[:, None] * pull - c * push * z)
    values = attention_values(graph, weights) if isinstance(weights, AttentionWeights) else weights.values
    s = s * values
    pull = zero.index_add(0, graph.rows, s[:, None] * difference)
    push = torch.zeros_like(b).index_add(0, graph.rows, s * delta)
    return b[:, None] * pull - (c * push)[:, None] * z


def exp_step(z: Tensor, v: Tensor, c: Tensor | float) -> Tensor:
    """``exp_z(v)`` from three inner products, pulled back into the ball."""
    b = conformal(z, c)
    rho = c * (v * v).sum(-1, keepdim=True) / (b * b)
    t = tanh_ratio(rho)
    cross = 1 + 2 * c * t * (z * v).sum(-1, keepdim=True) / b
    squared = rho * t * t
    return pull_back(((cross + squared) * z + t * v) / (cross + (1 - b) * squared), c)


def midpoint(points: tuple[Tensor, ...], eta: Tensor, c: Tensor | float) -> Tensor:
    """``gyromidpoint(points; eta) = 1/2 ⊗ (sum eta lambda z / sum |eta|(lambda - 1))`` without its cancellation.

    Lifted to the hyperboloid the weighted sum has Minkowski norm
    ``Q = (sum |eta|)^2 + 4c sum_{k<l} |eta_k eta_l| |±z_k ∓ z_l|^2 / (B_k B_l)``, a sum of positive terms, and the
    midpoint is ``sum eta lambda z / (sum |eta|(lambda - 1) + sqrt Q)``.
    """
    b = [conformal(point, c) for point in points]
    size, sign = eta.abs(), eta.detach().sign()
    top = sum((eta[k] * 2 / b[k]) * point for k, point in enumerate(points))
    bottom = sum(size[k] * (2 / b[k] - 1) for k in range(len(points)))
    q: Tensor = size.sum() ** 2 + torch.zeros_like(b[0])
    for k in range(len(points)):
        for m in range(k):
            gap = points[k] * sign[k] - points[m] * sign[m]
            q = q + 4 * c * size[k] * size[m] * (gap * gap).sum(-1, keepdim=True) / (b[k] * b[m])
    return pull_back(top / (bottom + q.sqrt()), c)


def advance(
    z: Tensor,
    v: Tensor,
    c: Tensor | float,
    z0: Tensor | None = None,
    eta: Tensor | None = None,
    activation: Activation = "identity",
) -> Tensor:
    """``F(z) = gyromidpoint({exp_z(act(v)), z, z0}; eta)``; without ``eta`` the exponential alone."""
    moved = exp_step(z, resolve_activation(activation)(v), c)
    if eta is None:
        return moved
    return midpoint((moved, z, z if z0 is None else z0), eta, c)
