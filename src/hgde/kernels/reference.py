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

from hgde.geometry import ball, numerics
from hgde.graph import Graph
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


def conformal(z: Tensor, c: Tensor | float) -> Tensor:
    """``B = 1 - c|z|^2 = 2 / lambda``, ``[..., 1]``, never below that of the dtype's limit."""
    return (1 - c * (z * z).sum(-1, keepdim=True)).clamp_min(numerics.limits(z.dtype).margin)


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


def advance(
    z: Tensor,
    v: Tensor,
    c: Tensor | float,
    z0: Tensor | None = None,
    eta: Tensor | None = None,
    activation: Activation = "identity",
) -> Tensor:
    """``F(z) = gyromidpoint({exp_z(act(v)), z, z0}; eta)``; without ``eta`` the exponential alone."""
    moved = ball.expmap(z, resolve_activation(activation)(v), c)
    if eta is None:
        return moved
    return ball.gyromidpoint((moved, z, z if z0 is None else z0), eta, c)
