"""Diffusion between all pairs of nodes without a table of all pairs: exact in tiles, or at linear cost by two sums."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from hgde.geometry import ball
from hgde.kernels.backend import Backend, use_fused
from hgde.kernels.reference import artanh_ratio, conformal

#: Below this ``1 - c|z|^2`` the quotients of a pair, and their gradients still more, leave the range of float32.
NEAR_BOUNDARY = 1e-3

#: Pairs held at once by the reference path, and by the backward pass of both.
PAIRS = 1_000_000


def _tile(nodes: int) -> int:
    return max(1, min(nodes, PAIRS // max(nodes, 1)))


def global_rows(z: Tensor, k: Tensor, c: Tensor, rows: Tensor, q: Tensor) -> Tensor:
    """The sum for some rows: ``rows [M, d]``, ``q [M, H, e]`` against all of ``z [N, d]``, ``k [N, H, e]``."""
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
    return bool((conformal(z, c) < NEAR_BOUNDARY).any())


class _Streamed(torch.autograd.Function):
    """Forward by compiled tiles; backward works out one tile of rows at a time again. Saved: the inputs."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> Tensor:
        from hgde.kernels import fused_pairs

        ctx.save_for_backward(z, q, k, c)
        return fused_pairs.forward(z, q, k, float(c))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, q, k, c = (tensor.detach().requires_grad_() for tensor in ctx.saved_tensors)
        totals = [torch.zeros_like(tensor) for tensor in (z, q, k, c)]
        tile = _tile(z.shape[0])
        for a in range(0, z.shape[0], tile):
            with torch.enable_grad():
                rows, queries = z[a : a + tile].detach().requires_grad_(), q[a : a + tile].detach().requires_grad_()
                out = global_rows(z, k, c, rows, queries)
            parts = torch.autograd.grad(out, (z, k, c, rows, queries), grad[a : a + tile])
            totals[0] += parts[0]
            totals[0][a : a + tile] += parts[3]
            totals[1][a : a + tile] += parts[4]
            totals[2] += parts[1]
            totals[3] += parts[2]
        return tuple(totals)


def tangent_sum_global(z: Tensor, q: Tensor, k: Tensor, c: Tensor | float, backend: Backend = "auto") -> Tensor:
    """``v_i = sum_j g_ij log_{z_i}(z_j)``, ``g_ij = mean_h sigmoid(q_ih · k_jh) / sum_j' sigmoid(q_ih · k_j'h)``.

    Shapes: ``z [N, d]``, ``q, k [N, H, e]``; result ``[N, d]``. Exact. Cost ``N^2 (d + H e)``, memory ``N d`` and a
    fixed number of pairs: the ``N x N`` weights never exist, forward or backward.
    """
    if q.shape != k.shape or q.dim() != 3 or q.shape[0] != z.shape[0]:
        raise ValueError(
            f"q and k must both be [num_nodes, heads, width] with {z.shape[0]} nodes, "
            f"got {list(q.shape)} and {list(k.shape)}"
        )
    c = torch.as_tensor(c, dtype=z.dtype, device=z.device)
    if use_fused(backend, z, q, k, c):
        out: Tensor = _Streamed.apply(z, q, k, c)
        return out
    tile = _tile(z.shape[0])
    parts = [
        checkpoint(global_rows, z, k, c, z[a : a + tile], q[a : a + tile], use_reentrant=False)
        for a in range(0, z.shape[0], tile)
    ]
    return torch.cat(parts) if parts else torch.zeros_like(z)


def tangent_sum_global_linear(z: Tensor, q: Tensor, k: Tensor, c: Tensor | float) -> Tensor:
    """A linear-cost stand-in for :func:`tangent_sum_global`: linear weights, points gathered as one centroid.

    ``sigmoid(s)`` is replaced by the line ``1/2 + b s``, with the slope ``b <= 1/4`` held so small that no weight is
    negative (``b max|q| max|k| <= 1/2``), and ``sum_j g_ij log_{z_i}(z_j)`` by ``log_{z_i}`` of the points' weighted
    Lorentz centroid. Both sums then factor over ``j``: cost ``N H e d`` instead of ``N^2 (d + H e)``, plain torch.
    Exact where all points coincide; its distance from the exact sum elsewhere is in the page on performance.
    """
    c = torch.as_tensor(c, dtype=z.dtype, device=z.device)
    if z.shape[0] == 0:
        return torch.zeros_like(z)
    b = conformal(z, c)
    lift = torch.cat([2 / b - 1, 2 * z / b], -1)
    with torch.no_grad():
        reach = (q.norm(dim=-1).amax(0) * k.norm(dim=-1).amax(0)).clamp_min(torch.finfo(z.dtype).tiny)
        slope = (0.5 / reach).clamp_max(0.25)[None, :, None]
    moved = 0.5 * lift.sum(0) + torch.einsum("ihe,hef->ihf", slope * q, torch.einsum("jhe,jf->hef", k, lift))
    total = 0.5 * z.shape[0] + torch.einsum("ihe,he->ih", slope * q, k.sum(0))
    centre = (moved / total[..., None]).mean(1)
    squared = centre[:, :1].square() - c * centre[:, 1:].square().sum(-1, keepdim=True)
    target = centre[:, 1:] / (centre[:, :1] + squared.clamp_min(torch.finfo(z.dtype).eps).sqrt())
    return ball.logmap(z, ball.project(target, c), c)
