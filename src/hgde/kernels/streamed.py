"""Diffusion between all pairs of nodes without a table of all pairs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hgde.kernels.backend import Backend
from hgde.kernels.reference import artanh_ratio, conformal

TILE = 512


def log_pairs(x: Tensor, y: Tensor, c: Tensor) -> Tensor:
    """``log_x(y)`` row by row."""
    difference = y - x
    delta = (difference * difference).sum(-1, keepdim=True)
    b_x, b_y = conformal(x, c), conformal(y, c)
    denominator = b_x * b_y + c * delta
    ratio = artanh_ratio(c * delta / denominator, b_x * b_y / denominator)
    return b_x * ratio / denominator * (b_x * difference - c * delta * x)


def global_rows(z: Tensor, q: Tensor, k: Tensor, c: Tensor, rows: Tensor, b: Tensor) -> Tensor:
    """The sum for some rows: ``rows [M, d]`` against all of ``z [N, d]``; ``q [M, H, dh]``, ``k [N, H, dh]``."""
    affinity = torch.einsum("ihd,jhd->hij", q, k).sigmoid()
    weight = (affinity / affinity.sum(-1, keepdim=True)).mean(0)
    difference = z[None] - rows[:, None]
    delta = (difference * difference).sum(-1)
    b_row = conformal(rows, c)
    denominator = b_row * b[None] + c * delta
    s = weight * b_row * artanh_ratio(c * delta / denominator, b_row * b[None] / denominator) / denominator
    pull = s @ z - s.sum(-1, keepdim=True) * rows
    return b_row * pull - c * (s * delta).sum(-1, keepdim=True) * rows


def tangent_sum_global(z: Tensor, q: Tensor, k: Tensor, c: Tensor | float, backend: Backend = "auto") -> Tensor:
    """``v_i = sum_j g_ij log_{z_i}(z_j)``, ``g_ij = mean_h sigmoid(q_ih · k_jh) / sum_j' sigmoid(q_ih · k_j'h)``.

    Shapes: ``z [N, d]``, ``q, k [N, H, dh]``; result ``[N, d]``.
    """
    c = torch.as_tensor(c, dtype=z.dtype, device=z.device)
    b = conformal(z, c).squeeze(-1)
    parts = [
        checkpoint(global_rows, z, q[a : a + TILE], k, c, z[a : a + TILE], b, use_reentrant=False)
        for a in range(0, z.shape[0], TILE)
    ]
    return torch.cat(parts) if parts else torch.zeros_like(z)


def tangent_sum_global_linear(z: Tensor, q: Tensor, k: Tensor, c: Tensor | float) -> Tensor:
    """A linear-cost stand-in for :func:`tangent_sum_global`: linear weights, points gathered as one centroid.

    ``sigmoid(s)`` is replaced by the line ``1/2 + b s``, with the slope ``b`` held so small that no weight is negative
    (``b max|q| max|k| <= 1/2``), and ``sum_j g_ij log_{z_i}(z_j)`` by ``log_{z_i}`` of the points' weighted
    Lorentz centroid. Both sums then factor over ``j``: cost ``N H dh d`` instead of ``N^2 d``.
    """
    c = torch.as_tensor(c, dtype=z.dtype, device=z.device)
    heads = q.shape[1]
    b = conformal(z, c)
    lift = torch.cat([2 / b - 1, 2 * z / b], -1)
    reach = q.norm(dim=-1).amax(0) * k.norm(dim=-1).amax(0)
    slope = torch.minimum(torch.full_like(reach, 0.25), 0.5 / reach.clamp_min(torch.finfo(z.dtype).tiny))[None, :, None]
    moved = 0.5 * lift.sum(0) + torch.einsum("ihe,hef->ihf", slope * q, torch.einsum("jhe,jf->hef", k, lift))
    total = 0.5 * z.shape[0] + torch.einsum("ihe,he->ih", slope * q, k.sum(0))
    centre = (moved / total[..., None]).sum(1) / heads
    squared = centre[:, 0] ** 2 - c * (centre[:, 1:] ** 2).sum(-1)
    target = centre[:, 1:] / (centre[:, :1] + squared.clamp_min(torch.finfo(z.dtype).tiny).sqrt()[:, None])
    return log_pairs(z, target, c)
