"""The hyperbolic residual of a strip of rows, and its gradient; continues :mod:`hgde.kernels.cpu.exponential`."""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import block
from hgde.kernels.cpu.exponential import (
    B0,
    B2,
    BOTTOM,
    CUT,
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
    H0,
    H1,
    H2,
    INNER_MARGIN,
    M0,
    M01,
    M02,
    M1,
    M2,
    M12,
    ROOT,
    SIZE,
    B,
    rounded,
    sign,
)  # fmt: skip
from hgde.kernels.cpu.lanes import LANES, fma, larger, load, root, spread, store, total, wide


@block
def midpoint_scalars(
    z: Any, first: int, n: int, d: int, z0: Any, s: Any, moved: int, e0: float, e1: float, e2: float, c: float,
    margin: float,
) -> None:  # fmt: skip
    """Coefficients of ``gyromidpoint({moved, z, z0}; eta) = F0 moved + F1 z + F2 z0``, after :func:`exp_strip`."""
    s0, s1, s2 = sign(e0), sign(e1), sign(e2)
    for r in range(n):
        p0, p2, g01, g02, g12 = spread(0.0), spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            at = r * d + k
            x, y, o = load(s, moved + at), wide(z, first * d + at), wide(z0, first * d + at)
            p0 = fma(x, x, p0)
            p2 = fma(o, o, p2)
            x, y, o = s0 * x, s1 * y, s2 * o
            e01, e02, e12 = x - y, x - o, y - o
            g01 = fma(e01, e01, g01)
            g02 = fma(e02, e02, g02)
            g12 = fma(e12, e12, g12)
        s[B0 + r], s[B2 + r] = total(p0), total(p2)
        s[G01 + r], s[G02 + r], s[G12 + r] = total(g01), total(g02), total(g12)
    a0, a1, a2 = abs(e0), abs(e1), abs(e2)
    whole = a0 + a1 + a2
    for r in range(rounded(n)):
        b0, b2 = larger(1 - c * s[B0 + r], INNER_MARGIN), larger(1 - c * s[B2 + r], margin)
        l0, l1, l2 = 1 / b0, 1 / s[B + r], 1 / b2
        r01, r02, r12 = s[G01 + r] * l0 * l1, s[G02 + r] * l0 * l2, s[G12 + r] * l1 * l2
        between = root(whole * whole + 4 * c * (a0 * a1 * r01 + a0 * a2 * r02 + a1 * a2 * r12))
        bottom = 2 * (a0 * l0 + a1 * l1 + a2 * l2) - whole + between
        over = 2 / bottom
        s[F0 + r], s[F1 + r], s[F2 + r] = over * e0 * l0, over * e1 * l1, over * e2 * l2
        s[B0 + r], s[B2 + r], s[G01 + r], s[G02 + r], s[G12 + r] = b0, b2, r01, r02, r12
        s[BOTTOM + r], s[ROOT + r] = bottom, between


@block
def midpoint_strip(
    z: Any, first: int, n: int, d: int, z0: Any, s: Any, moved: int, c: float, margin: float, out: Any
) -> int:
    """Write the midpoints; returns how many had to be projected."""
    count = 0
    limit = (1 - margin) * (1 - margin)
    for r in range(n):
        f0, f1, f2, size = s[F0 + r], s[F1 + r], s[F2 + r], spread(0.0)
        for k in range(0, d, LANES):
            at = r * d + k
            x = fma(f0, load(s, moved + at), fma(f1, wide(z, first * d + at), f2 * wide(z0, first * d + at)))
            store(out, first * d + at, x)
            size = fma(x, x, size)
        square = c * total(size)
        if square > limit:
            factor = (1 - margin) / root(square)
            for k in range(0, d, LANES):
                store(out, (first + r) * d + k, factor * wide(out, (first + r) * d + k))
            if factor < 1 - 4e-7 * margin / 1e-5:
                count += 1
    return count


@block
def midpoint_strip_backward(
    z: Any, first: int, n: int, d: int, z0: Any, s: Any, moved: int, e0: float, e1: float, e2: float, c: float,
    margin: float, grad: Any, gm: int, gz: int, gz0: Any,
) -> None:  # fmt: skip
    """From ``grad`` at the midpoints: ``gm = ...``, ``gz = ...``, ``gz0 += ...``, ``GC = ...``, ``GE0..2 = ...``."""
    for r in range(n):
        f0, f1, f2 = s[F0 + r], s[F1 + r], s[F2 + r]
        sum0, sum1, sum2, squares = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            at = r * d + k
            x, y, o = load(s, moved + at), wide(z, first * d + at), wide(z0, first * d + at)
            g = wide(grad, first * d + at)
            middle = fma(f0, x, fma(f1, y, f2 * o))
            squares = fma(middle, middle, squares)
            sum0 = fma(g, x, sum0)
            sum1 = fma(g, y, sum1)
            sum2 = fma(g, o, sum2)
        h0, h1, h2, size = total(sum0), total(sum1), total(sum2), total(squares)
        s[H0 + r], s[H1 + r], s[H2 + r], s[SIZE + r], s[CUT + r], s[GC + r] = h0, h1, h2, 1.0, 0.0, 0.0
        if c * size > (1 - margin) * (1 - margin):
            # out = limit y / (sqrt(c)|y|): the radial part of the gradient is lost.
            scale = (1 - margin) / root(c * size)
            along = f0 * h0 + f1 * h1 + f2 * h2
            cut = along / size
            y0, y1, y2 = spread(0.0), spread(0.0), spread(0.0)
            for k in range(0, d, LANES):
                at = r * d + k
                x, y, o = load(s, moved + at), wide(z, first * d + at), wide(z0, first * d + at)
                middle = fma(f0, x, fma(f1, y, f2 * o))
                y0 = fma(middle, x, y0)
                y1 = fma(middle, y, y1)
                y2 = fma(middle, o, y2)
            s[GC + r] = -0.5 * scale * along / c
            s[SIZE + r], s[CUT + r] = scale, cut
            s[H0 + r] = scale * (h0 - cut * total(y0))
            s[H1 + r] = scale * (h1 - cut * total(y1))
            s[H2 + r] = scale * (h2 - cut * total(y2))
    a0, a1, a2 = abs(e0), abs(e1), abs(e2)
    s0, s1, s2 = sign(e0), sign(e1), sign(e2)
    whole = a0 + a1 + a2
    for r in range(rounded(n)):
        l0, l1, l2, r01, r02, r12 = 1 / s[B0 + r], 1 / s[B + r], 1 / s[B2 + r], s[G01 + r], s[G02 + r], s[G12 + r]
        h0, h1, h2, over = s[H0 + r], s[H1 + r], s[H2 + r], 1 / s[BOTTOM + r]
        g_bottom = -(s[F0 + r] * h0 + s[F1 + r] * h1 + s[F2 + r] * h2) * over
        g_q = g_bottom / (2 * s[ROOT + r])
        four = 4 * c * g_q
        q0, q1, q2 = a1 * r01 + a2 * r02, a0 * r01 + a2 * r12, a0 * r02 + a1 * r12
        gb0 = -l0 * (2 * l0 * (e0 * h0 * over + a0 * g_bottom) + four * a0 * q0)
        gb1 = -l1 * (2 * l1 * (e1 * h1 * over + a1 * g_bottom) + four * a1 * q1)
        gb2 = -l2 * (2 * l2 * (e2 * h2 * over + a2 * g_bottom) + four * a2 * q2)
        g_c = s[GC + r] + 2 * g_q * (a0 * q0 + a1 * q1 + a2 * q2)
        s[GC + r] = g_c - ((1 - s[B0 + r]) * gb0 + (1 - s[B + r]) * gb1 + (1 - s[B2 + r]) * gb2) / c
        s[GE0 + r] = 2 * l0 * h0 * over + s0 * (g_bottom * (2 * l0 - 1) + g_q * 2 * whole + four * q0)
        s[GE1 + r] = 2 * l1 * h1 * over + s1 * (g_bottom * (2 * l1 - 1) + g_q * 2 * whole + four * q1)
        s[GE2 + r] = 2 * l2 * h2 * over + s2 * (g_bottom * (2 * l2 - 1) + g_q * 2 * whole + four * q2)
        w01, w02, w12 = 2 * four * a0 * a1 * l0 * l1, 2 * four * a0 * a2 * l0 * l2, 2 * four * a1 * a2 * l1 * l2
        s[M0 + r], s[M1 + r], s[M2 + r] = w01 + w02 - 2 * c * gb0, w01 + w12 - 2 * c * gb1, w02 + w12 - 2 * c * gb2
        s[M01 + r], s[M02 + r], s[M12 + r] = -w01 * s0 * s1, -w02 * s0 * s2, -w12 * s1 * s2
    for r in range(n):
        scale, cut = s[SIZE + r], s[CUT + r]
        f0, f1, f2 = s[F0 + r], s[F1 + r], s[F2 + r]
        m0, m1, m2, m01, m02, m12 = s[M0 + r], s[M1 + r], s[M2 + r], s[M01 + r], s[M02 + r], s[M12 + r]
        for k in range(0, d, LANES):
            at = r * d + k
            x, y, o = load(s, moved + at), wide(z, first * d + at), wide(z0, first * d + at)
            h = wide(grad, first * d + at)
            if cut != 0:
                h = h - cut * fma(f0, x, fma(f1, y, f2 * o))
            store(s, gm + at, fma(scale * f0, h, fma(m0, x, fma(m01, y, m02 * o))))
            store(s, gz + at, fma(scale * f1, h, fma(m01, x, fma(m1, y, m12 * o))))
            first_state = fma(scale * f2, h, fma(m02, x, fma(m12, y, m2 * o)))
            store(gz0, first * d + at, wide(gz0, first * d + at) + first_state)
