"""Compiled parallel transport and inverse differential of exp; made as :mod:`hgde.kernels.fused_maps` is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.compiled import compiled, inlined
from hgde.kernels.row_maps import STRIP, Passes, apply
from hgde.kernels.scalars import exp_negative

(
    XX, YY, VV, SS, XV, XS, SV, GX, GS, GV, O1, O2, O3, O4, O5, O6, O7, O8, O9, GC,
) = tuple(STRIP * n for n in range(20))  # fmt: skip
SLOTS = 20 * STRIP


@compiled
def _transport_products(x: Any, y: Any, v: Any, first: int, n: int, w: Any) -> None:
    for r in range(n):
        i = first + r
        xx, yy, ss, xv, xs, sv = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(x.shape[1]):
            a, b, e = np.float64(x[i, k]), np.float64(y[i, k]), np.float64(v[i, k])
            s = b - a
            xx += a * a
            yy += b * b
            ss += s * s
            xv += a * e
            xs += a * s
            sv += s * e
        w[XX + r], w[YY + r], w[SS + r], w[XV + r], w[XS + r], w[SV + r] = xx, yy, ss, xv, xs, sv


@compiled
def _transport_rows(
    begin: int, end: int, blocks: Any, x: Any, y: Any, v: Any, c: float, margin: float, out: Any
) -> None:
    """``(B_y / B_x) (v + (2c/D) (along_s s - along_x x))`` with ``s = y - x``, ``D = B_x B_y + c|s|^2``."""
    w = np.zeros(SLOTS)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            _transport_products(x, y, v, first, n, w)
            for r in range(n):
                xx, ss, xv, xs, sv = w[XX + r], w[SS + r], w[XV + r], w[XS + r], w[SV + r]
                b_x, b_y = max(1 - c * xx, margin), max(1 - c * w[YY + r], margin)
                p = 1 - c * (xx + xs)
                ratio = b_y / b_x
                scale = 2 * c / (b_x * b_y + c * ss) * ratio
                w[O1 + r] = ratio
                w[O2 + r] = scale * (c * (xs * xv - xx * sv) - p * xv)
                w[O3 + r] = -scale * (c * (ss * xv - xs * sv) - p * sv)
            for r in range(n):
                i, along_v, along_s, along_x = first + r, w[O1 + r], w[O2 + r], w[O3 + r]
                for k in range(x.shape[1]):
                    a = np.float64(x[i, k])
                    out[i, k] = along_v * v[i, k] + along_s * (y[i, k] - a) + along_x * a


@compiled
def _transport_rows_backward(
    begin: int, end: int, blocks: Any, x: Any, y: Any, v: Any, c: float, margin: float, g: Any, gx: Any, gy: Any,
    gv: Any, partial: Any,
) -> None:  # fmt: skip
    """Gradients of ``x``, ``y`` and ``v``; ``partial[block]`` is that of ``c``."""
    d = x.shape[1]
    w = np.zeros(SLOTS)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            _transport_products(x, y, v, first, n, w)
            for r in range(n):
                i = first + r
                g_x, g_s, g_v = 0.0, 0.0, 0.0
                for k in range(d):
                    a, e = np.float64(x[i, k]), np.float64(g[i, k])
                    g_x += e * a
                    g_s += e * (y[i, k] - a)
                    g_v += e * v[i, k]
                w[GX + r], w[GS + r], w[GV + r] = g_x, g_s, g_v
            for r in range(n):
                xx, yy, ss, xv, xs, sv = w[XX + r], w[YY + r], w[SS + r], w[XV + r], w[XS + r], w[SV + r]
                b_x, b_y = max(1 - c * xx, margin), max(1 - c * yy, margin)
                p = 1 - c * (xx + xs)
                over = 1 / (b_x * b_y + c * ss)
                ratio, scale = b_y / b_x, 2 * c * over
                turn_s, turn_x = xs * xv - xx * sv, ss * xv - xs * sv
                along_s, along_x = c * turn_s - p * xv, c * turn_x - p * sv
                turned = along_s * w[GS + r] - along_x * w[GX + r]
                value = w[GV + r] + scale * turned
                g_as, g_ax = ratio * scale * w[GS + r], -ratio * scale * w[GX + r]
                g_den = -ratio * turned * scale * over
                g_p = -xv * g_as - sv * g_ax
                g_b = g_den * b_y - value * ratio / b_x
                g_b = g_b if 1 - c * xx >= margin else 0.0
                g_by = g_den * b_x + value / b_x if 1 - c * yy >= margin else 0.0
                w[O1 + r], w[O2 + r], w[O3 + r] = ratio, ratio * scale * along_s, -ratio * scale * along_x
                w[O4 + r] = -2 * c * (sv * g_as + g_p + g_b)
                w[O5 + r] = 2 * c * (xv * g_ax + g_den)
                w[O6 + r] = -2 * c * g_by
                w[O7 + r] = c * (xv * g_as - sv * g_ax - g_p)
                w[O8 + r] = (c * xs - p) * g_as + c * ss * g_ax
                w[O9 + r] = -c * xx * g_as - (c * xs + p) * g_ax
                from_scale = 2 * ratio * turned * over + turn_s * g_as + turn_x * g_ax - (xx + xs) * g_p
                w[GC + r] = from_scale + ss * g_den - xx * g_b - yy * g_by
            for r in range(n):
                i = first + r
                partial[block] += w[GC + r]
                v_g, s_g, x_g, x_x, s_s, y_y = w[O1 + r], w[O2 + r], w[O3 + r], w[O4 + r], w[O5 + r], w[O6 + r]
                x_s, x_v, s_v = w[O7 + r], w[O8 + r], w[O9 + r]
                for k in range(d):
                    a, b, e, h = np.float64(x[i, k]), np.float64(y[i, k]), np.float64(v[i, k]), np.float64(g[i, k])
                    s = b - a
                    g_s = s_g * h + s_s * s + x_s * a + s_v * e
                    gx[i, k] = x_g * h + x_x * a + x_s * s + x_v * e - g_s
                    gy[i, k] = g_s + y_y * b
                    gv[i, k] = v_g * h + x_v * a + s_v * s


def _eta(s: int) -> float:
    """Dirichlet's ``sum_j (-1)^(j-1) / j^s``."""
    return math.fsum((-1) ** (j - 1) / j**s for j in range(1, 40))


# r / sinh r = 1 + 2 sum_n eta(2n) (-q / pi^2)^n with q = r^2.
_SHRINK = numerics.SHRINK_SERIES + tuple(2 * (-1) ** k * _eta(2 * k + 2) / math.pi ** (2 * k + 2) for k in range(8, 15))
_SERIES_BELOW = 0.5


@inlined
def shrink(q: float) -> tuple[float, float, float, float]:
    """``A = r / sinh r`` and ``S = (1 - A) / q`` of ``q = r^2``, each followed by its derivative in ``q``."""
    near, near_slope = 0.0, 0.0
    for k in range(len(_SHRINK) - 1, -1, -1):
        near_slope = near_slope * q + near
        near = near * q + _SHRINK[k]
    safe = max(q, _SERIES_BELOW)
    r = np.sqrt(safe)
    e = exp_negative(r)
    rest = 1 / (1 - e * e)
    a = 2 * r * e * rest
    a_slope = a * (1 - r * (1 + e * e) * rest) / (2 * safe)
    far = (1 - a) / safe
    far_slope = -(a_slope + far) / safe
    if q < _SERIES_BELOW:
        return 1 - q * near, -near - q * near_slope, near, near_slope
    return a, a_slope, far, far_slope


@compiled
def _shrink_products(x: Any, v: Any, u: Any, first: int, n: int, w: Any) -> None:
    for r in range(n):
        i = first + r
        xx, vv, uv = 0.0, 0.0, 0.0
        for k in range(x.shape[1]):
            a, b, e = np.float64(x[i, k]), np.float64(v[i, k]), np.float64(u[i, k])
            xx += a * a
            vv += b * b
            uv += e * b
        w[XX + r], w[VV + r], w[XV + r] = xx, vv, uv


@compiled
def _shrink_rows(begin: int, end: int, blocks: Any, x: Any, v: Any, u: Any, c: float, margin: float, out: Any) -> None:
    """``A u + m S <u,v> v`` with ``m = 4c / B_x^2`` and ``A, S`` of ``q = m|v|^2``: the part across ``v`` shrinks."""
    w = np.zeros(SLOTS)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            _shrink_products(x, v, u, first, n, w)
            for r in range(n):
                b_x = max(1 - c * w[XX + r], margin)
                metric = 4 * c / (b_x * b_x)
                a, _, s, _ = shrink(metric * w[VV + r])
                w[O1 + r], w[O2 + r] = a, metric * s * w[XV + r]
            for r in range(n):
                i, along_u, along_v = first + r, w[O1 + r], w[O2 + r]
                for k in range(x.shape[1]):
                    out[i, k] = along_u * u[i, k] + along_v * v[i, k]


@compiled
def _shrink_rows_backward(
    begin: int, end: int, blocks: Any, x: Any, v: Any, u: Any, c: float, margin: float, g: Any, gx: Any, gv: Any,
    gu: Any, partial: Any,
) -> None:  # fmt: skip
    """Gradients of ``x``, ``v`` and ``u``; ``partial[block]`` is that of ``c``."""
    d = x.shape[1]
    w = np.zeros(SLOTS)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            _shrink_products(x, v, u, first, n, w)
            for r in range(n):
                i = first + r
                g_u, g_v = 0.0, 0.0
                for k in range(d):
                    e = np.float64(g[i, k])
                    g_u += e * u[i, k]
                    g_v += e * v[i, k]
                w[GX + r], w[GV + r] = g_u, g_v
            for r in range(n):
                xx, vv, uv, g_u, g_v = w[XX + r], w[VV + r], w[XV + r], w[GX + r], w[GV + r]
                b_x = max(1 - c * xx, margin)
                metric = 4 * c / (b_x * b_x)
                a, a_slope, s, s_slope = shrink(metric * vv)
                g_q = a_slope * g_u + metric * s_slope * uv * g_v
                g_metric = s * uv * g_v + g_q * vv
                g_b = -2 * g_metric * metric / b_x if 1 - c * xx >= margin else 0.0
                w[GC + r] = g_metric * metric / c - xx * g_b
                w[O1 + r], w[O2 + r], w[O3 + r] = a, metric * s * g_v, metric * s * uv
                w[O4 + r], w[O5 + r] = 2 * g_q * metric, -2 * c * g_b
            for r in range(n):
                i = first + r
                partial[block] += w[GC + r]
                u_g, u_v, v_g, v_v, x_x = w[O1 + r], w[O2 + r], w[O3 + r], w[O4 + r], w[O5 + r]
                for k in range(d):
                    b, e = np.float64(v[i, k]), np.float64(g[i, k])
                    gx[i, k] = x_x * x[i, k]
                    gv[i, k] = v_g * e + u_v * u[i, k] + v_v * b
                    gu[i, k] = u_g * e + u_v * b


TRANSPORT = Passes(_transport_rows, _transport_rows_backward)
SHRINK = Passes(_shrink_rows, _shrink_rows_backward)


def transport(x: Tensor, y: Tensor, v: Tensor, c: Tensor) -> Tensor:
    """Parallel transport of ``v`` from ``x`` to ``y``, ``(lambda_x / lambda_y) gyr[y, -x] v``, by rows ``[N, d]``."""
    return apply(TRANSPORT, c, x, y, v)


def dexp_inv(x: Tensor, v: Tensor, w: Tensor, y: Tensor, c: Tensor) -> Tensor:
    """``w`` at ``y = exp_x(v)`` taken to ``x`` by the inverse differential of exp: transport, then ``r / sinh r``
    times the part across ``v``; row by row ``[N, d]``, two passes."""
    return apply(SHRINK, c, x, v, transport(y, x, w, c))
