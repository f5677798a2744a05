"""Rows that lie well inside the ball: their flow, their exponential and the gradients, in two visits of a strip's rows.

Everything from a tangent vector ``v`` at ``x`` to the residual with ``o`` is a combination of ``x``, ``v`` and ``o``,
and of the gradient ``g`` on the way back, with factors that follow from the inner products of these. So rows are
visited once for those and once for the results. What :mod:`~hgde.kernels.cpu.exponential` and
:mod:`~hgde.kernels.cpu.residual` take from differences of rows comes out of inner products here, and cancels as points
come near the boundary: single precision only, and only where all points of a strip, before and after, have ``1 -
c|x|^2`` of at least :data:`WELL_INSIDE`.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import block, inlined
from hgde.kernels.cpu.exponential import (
    B0,
    B2,
    BOTTOM,
    DEN,
    F0,
    F1,
    F2,
    G01,
    G02,
    G12,
    GC,
    GE0,
    GE1,
    GE2,
    GV,
    GX,
    H0,
    H1,
    H2,
    O1,
    O2,
    O3,
    O4,
    ROOT,
    SECH,
    SIZE,
    SLOPE,
    SPREAD,
    VV,
    XV,
    XX,
    B,
    F,
    Q,
    T,
    rounded,
    sign,
)  # fmt: skip
from hgde.kernels.cpu.lanes import LANES, fma, larger, load, most, root, smaller, spread, store, total, wide
from hgde.kernels.cpu.maps import put
from hgde.kernels.cpu.scalars import SERIES_BELOW, tanh_ratio, tanh_ratio_near

WELL_INSIDE = 0.03
"""At distance 4 from the origin, 0.07, gradients keep nine digits and more; at 8, 0.0013, three would be left."""
OO, XO, VO, GO, LOW, ALONG_X, ALONG_V = H0, H1, H2, SIZE, O1, O2, O3
"""Inner products, the least ``1 - c|x|^2`` of a row, and the moved point ``ALONG_X x + ALONG_V v``."""
Z_G, Z_X, Z_V, Z_O, U_G, U_X, U_V, U_O, S_G, S_X, S_V, S_O = (
    O1, O4, Q, DEN, B0, B2, BOTTOM, ROOT, F2, G01, G02, G12,
)  # fmt: skip
"""Factors of ``g, x, v, o`` in the gradients at the point, at the tangent vector and at the start."""


@inlined
def inner_products(z: Any, first: int, n: int, d: int, z0: Any, s: Any, v: int) -> None:
    for r in range(n):
        xx, vv, xv, oo, xo, vo = spread(0.0), spread(0.0), spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            x, u, o = wide(z, (first + r) * d + k), load(s, v + r * d + k), wide(z0, (first + r) * d + k)
            xx = fma(x, x, xx)
            vv = fma(u, u, vv)
            xv = fma(x, u, xv)
            oo = fma(o, o, oo)
            xo = fma(x, o, xo)
            vo = fma(u, o, vo)
        s[XX + r], s[VV + r], s[XV + r] = total(xx), total(vv), total(xv)
        s[OO + r], s[XO + r], s[VO + r] = total(oo), total(xo), total(vo)


@inlined
def tanh_ratios(n: int, s: Any, c: float) -> None:
    """``B``, ``Q = c|v|^2 / B^2`` and its functions. Where no row goes far a short series does."""
    for r in range(rounded(n)):
        b = 1 - c * s[XX + r]
        s[B + r], s[Q + r] = b, c * s[VV + r] / (b * b)
    farthest = load(s, Q)
    for r in range(LANES, rounded(n), LANES):
        farthest = larger(load(s, Q + r), farthest)
    if most(farthest) < SERIES_BELOW:
        for r in range(rounded(n)):
            s[T + r], s[SLOPE + r], s[SECH + r] = tanh_ratio_near(s[Q + r])
    else:
        for r in range(rounded(n)):
            s[T + r], s[SLOPE + r], s[SECH + r] = tanh_ratio(s[Q + r])


@inlined
def exp_factors(r: int, s: Any, c: float) -> tuple[float, float, float]:
    """The moved point's ``ALONG_X x + ALONG_V v``, and its ``1 - c|x|^2``; follows :func:`tanh_ratios`."""
    b, sech = s[B + r], s[SECH + r]
    f = s[T + r] / b
    across = c * (s[XX + r] + f * (2 * s[XV + r] + f * s[VV + r]))
    den = b * sech + across
    over = 1 / den
    s[F + r], s[SPREAD + r], s[DEN + r] = f, across, den
    # Of a moved point 1 - c|x|^2 is a product, and does not cancel.
    return over * (b + across), over * b * f, b * sech * over


@inlined
def exp_factors_backward(
    r: int, s: Any, c: float, g_x: float, g_v: float
) -> tuple[float, float, float, float, float, float]:
    """From inner products of ``x`` and ``v`` with the gradient ``g`` at the moved point: that at ``x`` is ``here g +
    x_x x + x_v v``, at ``v`` it is ``F to_t g + x_v x + v_v v``. Returns ``here, to_t, x_x, x_v, v_v`` and the
    curvature's."""
    b, f, sech, across, over = s[B + r], s[F + r], s[SECH + r], s[SPREAD + r], 1 / s[DEN + r]
    vv, l1 = s[VV + r], 1 / b
    g_t, tv = g_x + f * g_v, s[XV + r] + f * vv
    m = (g_t - sech * g_x) * over * over
    g_spread, g_b = -b * m, across * m
    g_sech = -(b * g_t + across * g_x) * over * b * over
    g_f = b * over * g_v + 2 * c * g_spread * tv
    g_q = g_f * l1 * s[SLOPE + r] - g_sech * s[T + r] * sech
    g_b -= (g_f * f + 2 * g_q * s[Q + r]) * l1
    g_c = across / c * g_spread + g_q * vv * l1 * l1 - s[XX + r] * g_b
    to_t, t_t = over * b, 2 * c * g_spread
    return to_t + over * across, to_t, t_t - 2 * c * g_b, t_t * f, 2 * c * g_q * l1 * l1 + f * t_t * f, g_c


@inlined
def exp_products(x: Any, v: Any, first: int, n: int, d: int, s: Any, c: float) -> float:
    """Inner products and factors of ``exp_x(v)``; returns the least ``1 - c|x|^2`` of all points."""
    for r in range(n):
        xx, vv, xv = spread(0.0), spread(0.0), spread(0.0)
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a, u = wide(x, k), wide(v, k)
            xx = fma(a, a, xx)
            vv = fma(u, u, vv)
            xv = fma(a, u, xv)
        s[XX + r], s[VV + r], s[XV + r] = total(xx), total(vv), total(xv)
    tanh_ratios(n, s, c)
    for r in range(rounded(n)):
        s[ALONG_X + r], s[ALONG_V + r], s[LOW + r] = exp_factors(r, s, c)
        s[LOW + r] = smaller(s[LOW + r], s[B + r])
    low = 1.0
    for r in range(n):
        low = smaller(s[LOW + r], low)
    return low


@block
def exp_inside(x: Any, v: Any, first: int, n: int, d: int, s: Any, c: float, out: Any) -> int:
    """``out = exp_x(v)`` of a strip; 0 if that is left to the careful way."""
    if not exp_products(x, v, first, n, d, s, c) >= WELL_INSIDE:
        return 0
    for r in range(n):
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            store(out, k, fma(s[ALONG_X + r], wide(x, k), s[ALONG_V + r] * wide(v, k)))
    return 1


@block
def exp_inside_backward(
    x: Any, v: Any, first: int, n: int, d: int, s: Any, c: float, g: Any, gx: Any, gv: Any, add_x: int, add_v: int,
    partial: Any, line: int,
) -> int:  # fmt: skip
    """Gradients of ``x``, ``v`` and, in ``partial[line]``, of ``c``; 0 if that is left to the careful way."""
    if not exp_products(x, v, first, n, d, s, c) >= WELL_INSIDE:
        return 0
    for r in range(n):
        along_x, along_v = spread(0.0), spread(0.0)
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            along_x = fma(wide(g, k), wide(x, k), along_x)
            along_v = fma(wide(g, k), wide(v, k), along_v)
        s[GX + r], s[GV + r] = total(along_x), total(along_v)
    for r in range(rounded(n)):
        here, to_t, s[Z_X + r], s[Z_V + r], s[U_V + r], s[GC + r] = exp_factors_backward(r, s, c, s[GX + r], s[GV + r])
        s[Z_G + r], s[U_G + r] = here, s[F + r] * to_t
    for r in range(n):
        partial[line] += s[GC + r]
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            e, a, u = wide(g, k), wide(x, k), wide(v, k)
            put(gx, k, fma(s[Z_G + r], e, fma(s[Z_X + r], a, s[Z_V + r] * u)), add_x)
            put(gv, k, fma(s[U_G + r], e, fma(s[Z_V + r], a, s[U_V + r] * u)), add_v)
    return 1


@inlined
def factors(n: int, s: Any, e0: float, e1: float, e2: float, c: float) -> float:
    """The residual's ``F0 moved + F1 x + F2 o``; returns the least ``1 - c|x|^2`` of all points."""
    a0, a1, a2 = abs(e0), abs(e1), abs(e2)
    s0, s1, s2 = sign(e0), sign(e1), sign(e2)
    whole = a0 + a1 + a2
    tanh_ratios(n, s, c)
    for r in range(rounded(n)):
        xx, vv, xv, oo, xo, vo = s[XX + r], s[VV + r], s[XV + r], s[OO + r], s[XO + r], s[VO + r]
        b, b2, (x, v, b0) = s[B + r], 1 - c * oo, exp_factors(r, s, c)
        l0, l1, l2 = 1 / b0, 1 / b, 1 / b2
        from_x = x - s0 * s1
        square = x * (x * xx + 2 * v * xv) + v * v * vv
        r01 = (from_x * (from_x * xx + 2 * v * xv) + v * v * vv) * l0 * l1
        r02 = (square - 2 * s0 * s2 * (x * xo + v * vo) + oo) * l0 * l2
        r12 = (xx - 2 * s1 * s2 * xo + oo) * l1 * l2
        between = root(whole * whole + 4 * c * (a0 * a1 * r01 + a0 * a2 * r02 + a1 * a2 * r12))
        bottom = 2 * (a0 * l0 + a1 * l1 + a2 * l2) - whole + between
        half = 2 / bottom
        f0, f1, f2 = half * e0 * l0, half * e1 * l1, half * e2 * l2
        x_out, v_out = f0 * x + f1, f0 * v
        size = x_out * (x_out * xx + 2 * v_out * xv) + v_out * v_out * vv
        size += f2 * (f2 * oo + 2 * (x_out * xo + v_out * vo))
        s[LOW + r] = smaller(smaller(b, b0), smaller(b2, 1 - c * size))
        s[ALONG_X + r], s[ALONG_V + r] = x, v
        s[B0 + r], s[B2 + r], s[G01 + r], s[G02 + r], s[G12 + r] = b0, b2, r01, r02, r12
        s[F0 + r], s[F1 + r], s[F2 + r], s[BOTTOM + r], s[ROOT + r] = f0, f1, f2, bottom, between
    low = 1.0
    for r in range(n):
        low = smaller(s[LOW + r], low)
    return low


@block
def combine_strip(
    z: Any, first: int, n: int, d: int, z0: Any, s: Any, v: int, e0: float, e1: float, e2: float, c: float, out: Any
) -> int:
    """``out``, the residual of a strip, from tangent vectors at ``v``; 0 if that is left to the careful way."""
    inner_products(z, first, n, d, z0, s, v)
    if not factors(n, s, e0, e1, e2, c) >= WELL_INSIDE:
        return 0
    for r in range(n):
        along_x, along_v, along_o = fma(s[F0 + r], s[ALONG_X + r], s[F1 + r]), s[F0 + r] * s[ALONG_V + r], s[F2 + r]
        for k in range(0, d, LANES):
            at = (first + r) * d + k
            rest = fma(along_v, load(s, v + r * d + k), along_o * wide(z0, at))
            store(out, at, fma(along_x, wide(z, at), rest))
    return 1


@inlined
def factors_backward(n: int, s: Any, e0: float, e1: float, e2: float, c: float) -> None:
    """Factors of the gradients, and the parts of curvature and ``eta``; follows :func:`factors`."""
    a0, a1, a2 = abs(e0), abs(e1), abs(e2)
    s0, s1, s2 = sign(e0), sign(e1), sign(e2)
    whole, over_c = a0 + a1 + a2, 1 / c
    for r in range(rounded(n)):
        b0, b, b2, r01, r02, r12 = s[B0 + r], s[B + r], s[B2 + r], s[G01 + r], s[G02 + r], s[G12 + r]
        xx, vv, xv, xo, vo = s[XX + r], s[VV + r], s[XV + r], s[XO + r], s[VO + r]
        x, v, f0, f1, f2 = s[ALONG_X + r], s[ALONG_V + r], s[F0 + r], s[F1 + r], s[F2 + r]
        l0, l1, l2, under = 1 / b0, 1 / b, 1 / b2, 1 / s[BOTTOM + r]
        h0, h1, h2 = x * s[GX + r] + v * s[GV + r], s[GX + r], s[GO + r]
        g_bottom = -(f0 * h0 + f1 * h1 + f2 * h2) * under
        g_q = 0.5 * g_bottom / s[ROOT + r]
        four = 4 * c * g_q
        q0, q1, q2 = a1 * r01 + a2 * r02, a0 * r01 + a2 * r12, a0 * r02 + a1 * r12
        gb0 = -l0 * (2 * l0 * (e0 * h0 * under + a0 * g_bottom) + four * a0 * q0)
        gb1 = -l1 * (2 * l1 * (e1 * h1 * under + a1 * g_bottom) + four * a1 * q1)
        gb2 = -l2 * (2 * l2 * (e2 * h2 * under + a2 * g_bottom) + four * a2 * q2)
        g_c = 2 * g_q * (a0 * q0 + a1 * q1 + a2 * q2)
        g_c -= ((1 - b0) * gb0 + (1 - b) * gb1 + (1 - b2) * gb2) * over_c
        s[GE0 + r] = 2 * l0 * h0 * under + s0 * (g_bottom * (2 * l0 - 1) + g_q * 2 * whole + four * q0)
        s[GE1 + r] = 2 * l1 * h1 * under + s1 * (g_bottom * (2 * l1 - 1) + g_q * 2 * whole + four * q1)
        s[GE2 + r] = 2 * l2 * h2 * under + s2 * (g_bottom * (2 * l2 - 1) + g_q * 2 * whole + four * q2)
        w01, w02, w12 = 2 * four * a0 * a1 * l0 * l1, 2 * four * a0 * a2 * l0 * l2, 2 * four * a1 * a2 * l1 * l2
        m0, m1, m2 = w01 + w02 - 2 * c * gb0, w01 + w12 - 2 * c * gb1, w02 + w12 - 2 * c * gb2
        m01, m02, m12 = -w01 * s0 * s1, -w02 * s0 * s2, -w12 * s1 * s2
        # The gradient at the moved point is f0 g + at_x x + at_v v + m02 o; then back through the exponential.
        at_x, at_v = m0 * x + m01, m0 * v
        g_x = f0 * s[GX + r] + at_x * xx + at_v * xv + m02 * xo
        g_v = f0 * s[GV + r] + at_x * xv + at_v * vv + m02 * vo
        here, to_t, x_x, x_v, v_v, through = exp_factors_backward(r, s, c, g_x, g_v)
        f = s[F + r]
        s[GC + r] = g_c + through
        s[Z_G + r] = f1 + here * f0
        s[Z_X + r] = m01 * x + m1 + here * at_x + x_x
        s[Z_V + r] = m01 * v + here * at_v + x_v
        s[Z_O + r] = m12 + here * m02
        s[U_G + r] = f * to_t * f0
        s[U_X + r] = f * to_t * at_x + x_v
        s[U_V + r] = f * to_t * at_v + v_v
        s[U_O + r] = f * to_t * m02
        s[S_G + r] = f2
        s[S_X + r] = m02 * x + m12
        s[S_V + r] = m02 * v
        s[S_O + r] = m2


@block
def combine_strip_backward(
    z: Any, first: int, n: int, d: int, z0: Any, s: Any, v: int, gz: int, gu: int, e0: float, e1: float, e2: float,
    c: float, grad: Any, gz0: Any,
) -> int:  # fmt: skip
    """``gz``, ``gu``, ``gz0 += ...``, ``GC`` and ``GE0..2`` from ``grad``; 0 if that is left to the careful way."""
    inner_products(z, first, n, d, z0, s, v)
    if not factors(n, s, e0, e1, e2, c) >= WELL_INSIDE:
        return 0
    for r in range(n):
        gx, gv, go = spread(0.0), spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            at = (first + r) * d + k
            g = wide(grad, at)
            gx = fma(g, wide(z, at), gx)
            gv = fma(g, load(s, v + r * d + k), gv)
            go = fma(g, wide(z0, at), go)
        s[GX + r], s[GV + r], s[GO + r] = total(gx), total(gv), total(go)
    factors_backward(n, s, e0, e1, e2, c)
    for r in range(n):
        for k in range(0, d, LANES):
            at, place = r * d + k, (first + r) * d + k
            g, x, u, o = wide(grad, place), wide(z, place), load(s, v + at), wide(z0, place)
            store(s, gz + at, fma(s[Z_G + r], g, fma(s[Z_X + r], x, fma(s[Z_V + r], u, s[Z_O + r] * o))))
            store(s, gu + at, fma(s[U_G + r], g, fma(s[U_X + r], x, fma(s[U_V + r], u, s[U_O + r] * o))))
            more = fma(s[S_G + r], g, fma(s[S_X + r], x, fma(s[S_V + r], u, s[S_O + r] * o)))
            store(gz0, place, wide(gz0, place) + more)
    return 1
