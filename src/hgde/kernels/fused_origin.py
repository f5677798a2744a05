"""Compiled maps at the origin: ``exp_o``, ``log_o`` and translation in its tangent space, each one pass a way."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hgde.geometry import numerics
from hgde.kernels.compiled import compiled
from hgde.kernels.layout import Array, even_blocks
from hgde.kernels.pool import run_blocks
from hgde.kernels.scalars import artanh_ratio, artanh_ratio_slope, tanh_ratio

EXP, LOG, TRANSLATE = 0, 1, 2
STRIP = 64
(NU, H, A, B, A_NU, A_H, B_NU, B_H, SC, SN) = tuple(STRIP * n for n in range(10))
SLOTS = 10 * STRIP


@compiled
def _coefficients(x: Any, first: int, n: int, point: Any, kind: int, c: float, margin: float, w: Any) -> int:
    """``out = A x + B b`` for a strip of rows: fills ``w[A], w[B]`` from ``w[NU] = |x|^2, w[H] = <x, b>``."""
    real = x.dtype.type
    pulled = 0
    for r in range(n):
        nu, h = real(0), real(0)
        for k in range(x.shape[1]):
            nu += x[first + r, k] * x[first + r, k]
            h += x[first + r, k] * point[k]
        w[NU + r], w[H + r] = nu, h
    limit = (1 - margin) * (1 - margin)
    if kind == EXP:
        for r in range(n):
            rho = c * w[NU + r]
            t, slope, _ = tanh_ratio(rho)
            out = t * t * rho > limit
            safe = max(rho, 1e-30)
            f = (1 - margin) / np.sqrt(safe)
            w[A + r] = f if out else t
            w[A_NU + r] = -0.5 * f / safe if out else slope
            pulled += 1 if out else 0
    elif kind == LOG:
        for r in range(n):
            rho = min(c * w[NU + r], limit)
            inverse_rest = 1 / (1 - rho)
            f = artanh_ratio(rho, inverse_rest)
            w[A + r], w[A_NU + r] = f, artanh_ratio_slope(rho, inverse_rest, f)
    return pulled


@compiled
def _translation(n: int, own: float, c: float, margin: float, w: Any, gradient: bool) -> None:
    """The two coefficients of a translation; with ``gradient``, from ``w[A_NU] = <g, x>, w[B_NU] = <g, b>`` also the
    derivatives in ``rho = c|x|^2`` (``w[A_NU]``), ``c <x, b>`` (``w[A_H]``) and ``c|b|^2`` (``w[SN]``)."""
    b_b = max(1 - own, margin)
    for r in range(n):
        rho, h = c * w[NU + r], c * w[H + r]
        t, t_slope, e = tanh_ratio(rho)
        spread = max(rho * t * t + 2 * t * h + own, 0.0)
        product = e * b_b
        den = product + spread
        over = 1 / den
        v = spread * over
        inverse_rest = min(den / product, 0.5 / margin)
        ratio = artanh_ratio(v, inverse_rest)
        a, b = ratio * (e + spread) * t * over, ratio * e * over
        w[A + r], w[B + r] = a, b
        if gradient:
            ga, gb = w[A_NU + r], w[B_NU + r]
            g_ratio = (ga * (e + spread) * t + gb * e) * over
            g_t = ga * ratio * (e + spread) * over
            g_e = (ga * t + gb) * ratio * over
            g_v = g_ratio * artanh_ratio_slope(v, inverse_rest, ratio)
            g_den = -(ga * a + gb * b + g_v * v) * over
            g_spread = (ga * ratio * t + g_v) * over + g_den
            g_e += g_den * b_b
            g_t += g_spread * (2 * rho * t + 2 * h)
            w[A_NU + r] = g_spread * t * t + g_t * t_slope - g_e * (t * t + 2 * rho * t * t_slope)
            w[A_H + r] = 2 * g_spread * t
            w[SN + r] = g_spread - g_den * e


@compiled
def _forward(
    begin: int, end: int, blocks: Any, x: Any, point: Any, kind: int, c: float, margin: float, out: Any, partial: Any
) -> None:
    w = np.zeros(SLOTS)
    own = 0.0
    for k in range(x.shape[1]):
        own += c * point[k] * point[k]
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            partial[block, 0] += _coefficients(x, first, n, point, kind, c, margin, w)
            if kind == TRANSLATE:
                _translation(n, own, c, margin, w, False)
            for r in range(n):
                a, b = x.dtype.type(w[A + r]), x.dtype.type(w[B + r])
                for k in range(x.shape[1]):
                    out[first + r, k] = a * x[first + r, k] + b * point[k]


@compiled
def _backward(
    begin: int, end: int, blocks: Any, x: Any, point: Any, kind: int, c: float, margin: float, grad: Any, gx: Any,
    partial: Any,
) -> None:  # fmt: skip
    """``gx``; ``partial[block] = (gradient of c, gradient of the point)``."""
    real = x.dtype.type
    d = x.shape[1]
    w = np.zeros(SLOTS)
    own = 0.0
    for k in range(d):
        own += c * point[k] * point[k]
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            _coefficients(x, first, n, point, kind, c, margin, w)
            for r in range(n):
                along, across = real(0), real(0)
                for k in range(d):
                    along += grad[first + r, k] * x[first + r, k]
                    across += grad[first + r, k] * point[k]
                if kind == TRANSLATE:
                    w[A_NU + r], w[B_NU + r] = along, across
                else:
                    w[A_NU + r] *= along
            if kind == TRANSLATE:
                _translation(n, own, c, margin, w, True)
            for r in range(n):
                partial[block, 0] += w[A_NU + r] * w[NU + r]
                a, twice, h = real(w[A + r]), real(2 * c * w[A_NU + r]), real(0)
                if kind == TRANSLATE:
                    partial[block, 0] += w[A_H + r] * w[H + r] + w[SN + r] * own / c
                    h, b, s = real(c * w[A_H + r]), real(w[B + r]), real(2 * c * w[SN + r])
                    for k in range(d):
                        partial[block, 1 + k] += b * grad[first + r, k] + h * x[first + r, k] + s * point[k]
                for k in range(d):
                    gx[first + r, k] = a * grad[first + r, k] + twice * x[first + r, k] + h * point[k]


def _array(tensor: Tensor) -> Array:
    return tensor.detach().contiguous().numpy()


class _AtOrigin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, c: Tensor, point: Tensor | None, kind: int) -> Tensor:
        ctx.save_for_backward(x, c, point)
        ctx.kind = kind
        rows = _array(x)
        args = (rows, _point(point, rows), kind, float(c), numerics.limits(x.dtype).margin)
        blocks, out = even_blocks(len(rows)), np.empty_like(rows)
        partial = np.zeros((len(blocks) - 1, 1))
        run_blocks(_forward, len(partial), 4 * rows.size, (blocks, *args, out, partial))
        if numerics.counting_projections():
            numerics.record_projections(torch.tensor(int(partial.sum())))
        return torch.from_numpy(out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, c, point = ctx.saved_tensors
        rows = _array(x)
        args = (rows, _point(point, rows), ctx.kind, float(c), numerics.limits(x.dtype).margin)
        blocks, gx = even_blocks(len(rows)), np.empty_like(rows)
        partial = np.zeros((len(blocks) - 1, 1 + rows.shape[1]))
        run_blocks(_backward, len(partial), 8 * rows.size, (blocks, *args, _array(grad), gx, partial))
        total = np.add.accumulate(partial, 0)[-1]
        grad_point = None if point is None else torch.from_numpy(total[1:]).to(point.dtype)
        return torch.from_numpy(gx), torch.tensor(total[0], dtype=c.dtype).reshape(c.shape), grad_point, None


def _point(point: Tensor | None, like: Array) -> Array:
    return np.zeros(like.shape[1], like.dtype) if point is None else _array(point)


def apply(x: Tensor, c: Tensor, point: Tensor | None, kind: int) -> Tensor:
    """One of the maps :data:`EXP`, :data:`LOG`, :data:`TRANSLATE` on the rows of ``x [N, d]``."""
    out: Tensor = _AtOrigin.apply(x, c, point, kind)
    return out
