"""Compiled exponential, logarithm and parallel transport at any point, each one pass over the rows a way.

Every map is a combination of its arguments whose coefficients depend on a few inner products of them, so a pass takes
the inner products of a row, works out the coefficients, and combines; the backward pass takes the inner products with
the gradient besides, and needs nothing saved but the arguments. Inner products and coefficients are in double
precision whatever the dtype. The formulas are those of :mod:`hgde.geometry.ball`, with differences of points where
sums of products would cancel. Scalars of up to 64 rows lie in one flat buffer ``w`` at fixed distances, by which the
compiler knows that they do not overlap and works on several rows at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from hgde.kernels.compiled import compiled
from hgde.kernels.row_maps import STRIP, Passes, apply
from hgde.kernels.scalars import artanh_ratio, artanh_ratio_slope, tanh_ratio

(
    XX, YY, VV, SS, XV, TT, TX, TV, BX, Q, T, T_SLOPE, SECH, F, SPREAD, DEN, SCALE,
    GV, GX, GS, GT, O1, O2, O3, O4, O5, O6, O7, GC,
) = tuple(STRIP * n for n in range(29))  # fmt: skip
SLOTS = 29 * STRIP


@compiled
def _exp_coefficients(x: Any, v: Any, first: int, n: int, c: float, margin: float, w: Any) -> None:
    """``exp_x(v) = SCALE (B_x t + SPREAD x) / DEN`` with ``t = x + F v``, ``F = tanhc(Q) / B_x``, ``SPREAD = c|t|^2``.

    ``DEN = B_x SECH + SPREAD``; ``SCALE`` pulls the point back to the limit. ``|t|^2`` is taken from ``t`` itself: on a
    long way inwards from near the boundary ``|x|^2 + 2F<x,v> + F^2|v|^2`` would cancel.
    """
    d = x.shape[1]
    for r in range(n):
        i = first + r
        xx, vv, xv = 0.0, 0.0, 0.0
        for k in range(d):
            a, b = np.float64(x[i, k]), np.float64(v[i, k])
            xx += a * a
            vv += b * b
            xv += a * b
        w[XX + r], w[VV + r], w[XV + r] = xx, vv, xv
    for r in range(n):
        b_x = max(1 - c * w[XX + r], margin)
        q = c * w[VV + r] / (b_x * b_x)
        t, t_slope, sech = tanh_ratio(q)
        w[BX + r], w[Q + r], w[T + r], w[T_SLOPE + r], w[SECH + r], w[F + r] = b_x, q, t, t_slope, sech, t / b_x
    for r in range(n):
        i, f = first + r, w[F + r]
        tt, tx = 0.0, 0.0
        for k in range(d):
            a = np.float64(x[i, k])
            t = a + f * v[i, k]
            tt += t * t
            tx += t * a
        w[TT + r], w[TX + r] = tt, tx
    limit = (1 - margin) * (1 - margin)
    for r in range(n):
        b_x, spread = w[BX + r], c * w[TT + r]
        den = b_x * w[SECH + r] + spread
        size = b_x * b_x * w[TT + r] + 2 * b_x * spread * w[TX + r] + spread * spread * w[XX + r]
        size *= c / (den * den)
        w[SPREAD + r], w[DEN + r] = spread, den
        w[SCALE + r] = (1 - margin) / np.sqrt(max(size, limit)) if size > limit else 1.0


@compiled
def _exp_rows(
    begin: int, end: int, blocks: Any, x: Any, v: Any, c: float, margin: float, out: Any, partial: Any
) -> None:
    """``partial[block]`` counts the points pulled back; one at the limit, moved by rounding alone, is not one."""
    w = np.zeros(SLOTS)
    unmoved = 1 - 4 * np.float64(np.finfo(out.dtype).eps)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            _exp_coefficients(x, v, first, n, c, margin, w)
            for r in range(n):
                i, f = first + r, w[F + r]
                over = w[SCALE + r] / w[DEN + r]
                along, rest = over * w[BX + r], over * w[SPREAD + r]
                partial[block] += w[SCALE + r] < unmoved
                for k in range(x.shape[1]):
                    a = np.float64(x[i, k])
                    out[i, k] = along * (a + f * v[i, k]) + rest * a


@compiled
def _exp_rows_backward(
    begin: int, end: int, blocks: Any, x: Any, v: Any, c: float, margin: float, g: Any, gx: Any, gv: Any, partial: Any
) -> None:
    """Gradients of ``x`` and ``v``; ``partial[block]`` is that of ``c``.

    With ``L = <g, out>`` and ``m = (<g,t> - SECH <g,x>) / DEN^2``, ``dL/dSPREAD = -B_x m`` and ``dL/dB_x = SPREAD m``,
    differences that stay accurate when ``out`` is near ``x``. A point pulled back to the limit takes no gradient along
    its radius, so ``g`` is first freed of that part.
    """
    d = x.shape[1]
    w = np.zeros(SLOTS)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            _exp_coefficients(x, v, first, n, c, margin, w)
            for r in range(n):
                i, f = first + r, w[F + r]
                g_x, g_v, g_t, tv = 0.0, 0.0, 0.0, 0.0
                for k in range(d):
                    a, b, e = np.float64(x[i, k]), np.float64(v[i, k]), np.float64(g[i, k])
                    t = a + f * b
                    g_x += e * a
                    g_v += e * b
                    g_t += e * t
                    tv += t * b
                w[GX + r], w[GV + r], w[GT + r], w[TV + r] = g_x, g_v, g_t, tv
            for r in range(n):
                b_x, spread, sech, f, q = w[BX + r], w[SPREAD + r], w[SECH + r], w[F + r], w[Q + r]
                tt, tx, tv, xx, scale = w[TT + r], w[TX + r], w[TV + r], w[XX + r], w[SCALE + r]
                over = 1 / w[DEN + r]
                out_t, out_x = (b_x * tt + spread * tx) * over, (b_x * tx + spread * xx) * over
                out_v = (b_x * tv + spread * w[XV + r]) * over
                value = (b_x * w[GT + r] + spread * w[GX + r]) * over
                pulled = scale != 1
                radial = value / max((b_x * out_t + spread * out_x) * over, 1e-30) if pulled else 0.0
                g_t, g_x = scale * (w[GT + r] - radial * out_t), scale * (w[GX + r] - radial * out_x)
                g_v = scale * (w[GV + r] - radial * out_v)
                g_c = -0.5 * scale * value / c if pulled else 0.0
                value = 0.0 if pulled else value
                m = (g_t - sech * g_x) * over * over
                g_spread, g_b, g_sech = -b_x * m, spread * m, -value * b_x * over
                g_f = b_x * over * g_v + 2 * c * g_spread * tv
                g_q = g_f / b_x * w[T_SLOPE + r] - g_sech * w[T + r] * sech
                g_b -= (g_f * f + 2 * g_q * q) / b_x
                g_b = g_b if 1 - c * xx >= margin else 0.0
                w[GC + r] = g_c + tt * g_spread + g_q * w[VV + r] / (b_x * b_x) - xx * g_b
                scaled, cut = scale * over, -scale * radial * over * over
                w[O1 + r] = scaled * b_x
                w[O2 + r] = cut * b_x * b_x + 2 * c * g_spread
                w[O3 + r] = cut * b_x * spread
                w[O4 + r] = scaled * spread
                w[O5 + r] = cut * b_x * spread
                w[O6 + r] = cut * spread * spread - 2 * c * g_b
                w[O7 + r] = 2 * c * g_q / (b_x * b_x)
            for r in range(n):
                i, f = first + r, w[F + r]
                partial[block] += w[GC + r]
                t_g, t_t, t_x, x_g, x_t, x_x = w[O1 + r], w[O2 + r], w[O3 + r], w[O4 + r], w[O5 + r], w[O6 + r]
                v_v = w[O7 + r]
                for k in range(d):
                    a, b, e = np.float64(x[i, k]), np.float64(v[i, k]), np.float64(g[i, k])
                    t = a + f * b
                    g_t = t_g * e + t_t * t + t_x * a
                    gx[i, k] = g_t + x_g * e + x_t * t + x_x * a
                    gv[i, k] = f * g_t + v_v * b


@compiled
def _log_rows(begin: int, end: int, blocks: Any, x: Any, y: Any, c: float, margin: float, out: Any) -> None:
    """``log_x(y) = (B_x R / D) (B_x s - c|s|^2 x)``, ``R = artanhc(c|s|^2 / D)``, ``D = B_x B_y + c|s|^2``."""
    d = x.shape[1]
    w = np.zeros(SLOTS)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            _log_products(x, y, first, n, w)
            for r in range(n):
                b_x, b_y = max(1 - c * w[XX + r], margin), max(1 - c * w[YY + r], margin)
                spread = c * w[SS + r]
                product = b_x * b_y
                den = product + spread
                factor = b_x * artanh_ratio(spread / den, den / product) / den
                w[O1 + r], w[O2 + r] = factor * b_x, -factor * spread
            for r in range(n):
                i, along, back = first + r, w[O1 + r], w[O2 + r]
                for k in range(d):
                    a = np.float64(x[i, k])
                    out[i, k] = along * (y[i, k] - a) + back * a


@compiled
def _log_products(x: Any, y: Any, first: int, n: int, w: Any) -> None:
    for r in range(n):
        i = first + r
        xx, yy, ss = 0.0, 0.0, 0.0
        for k in range(x.shape[1]):
            a, b = np.float64(x[i, k]), np.float64(y[i, k])
            s = b - a
            xx += a * a
            yy += b * b
            ss += s * s
        w[XX + r], w[YY + r], w[SS + r] = xx, yy, ss


@compiled
def _log_rows_backward(
    begin: int, end: int, blocks: Any, x: Any, y: Any, c: float, margin: float, g: Any, gx: Any, gy: Any, partial: Any
) -> None:
    """Gradients of ``x`` and ``y``; ``partial[block]`` is that of ``c``. ``d(c|s|^2/D)`` is written without the ``1 -``
    that would cancel for far points."""
    d = x.shape[1]
    w = np.zeros(SLOTS)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            _log_products(x, y, first, n, w)
            for r in range(n):
                i = first + r
                g_x, g_s = 0.0, 0.0
                for k in range(d):
                    a, e = np.float64(x[i, k]), np.float64(g[i, k])
                    g_x += e * a
                    g_s += e * (y[i, k] - a)
                w[GX + r], w[GS + r] = g_x, g_s
            for r in range(n):
                xx, yy, ss, g_x, g_s = w[XX + r], w[YY + r], w[SS + r], w[GX + r], w[GS + r]
                b_x, b_y = max(1 - c * xx, margin), max(1 - c * yy, margin)
                spread = c * ss
                product = b_x * b_y
                den = product + spread
                over, inverse_rest = 1 / den, den / product
                ratio = artanh_ratio(spread * over, inverse_rest)
                slope = artanh_ratio_slope(spread * over, inverse_rest, ratio)
                scale = ratio * over
                both = b_x * g_s - spread * g_x
                g_w = b_x * both * over * slope * over * over
                g_den = -b_x * both * scale * over
                g_product = g_den - g_w * spread
                g_spread = g_den + g_w * product - scale * b_x * g_x
                g_b = scale * (both + b_x * g_s) + g_product * b_y
                g_b = g_b if 1 - c * xx >= margin else 0.0
                g_by = g_product * b_x if 1 - c * yy >= margin else 0.0
                w[GC + r] = ss * g_spread - xx * g_b - yy * g_by
                w[O1 + r], w[O2 + r] = scale * b_x * b_x, -scale * b_x * spread
                w[O3 + r], w[O4 + r], w[O5 + r] = 2 * c * g_spread, -2 * c * g_b, -2 * c * g_by
            for r in range(n):
                i = first + r
                partial[block] += w[GC + r]
                s_g, x_g, s_s, x_x, y_y = w[O1 + r], w[O2 + r], w[O3 + r], w[O4 + r], w[O5 + r]
                for k in range(d):
                    a, b, e = np.float64(x[i, k]), np.float64(y[i, k]), np.float64(g[i, k])
                    g_s = s_g * e + s_s * (b - a)
                    gx[i, k] = x_g * e + x_x * a - g_s
                    gy[i, k] = g_s + y_y * b


EXP = Passes(_exp_rows, _exp_rows_backward, pulls_back=True)
LOG = Passes(_log_rows, _log_rows_backward)


def expmap(x: Tensor, v: Tensor, c: Tensor) -> Tensor:
    """``exp_x(v)`` (eq:expmap) for the rows of ``x, v [N, d]``, pulled back into the ball; ``c`` is 0-d."""
    return apply(EXP, c, x, v)


def logmap(x: Tensor, y: Tensor, c: Tensor) -> Tensor:
    """``log_x(y)`` for the rows of ``x, y [N, d]``; ``c`` is 0-d."""
    return apply(LOG, c, x, y)
