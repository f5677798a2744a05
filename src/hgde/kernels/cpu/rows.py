"""Work on a strip of up to 32 rows, in double precision throughout: activation, exponential, residual, gradients.

Each step alternates loops over rows and width (inner products and combinations) with loops over the scalars of all rows
at once. All of it lies in one buffer of doubles, ``s``: first the scalars, at the places named below, then matrices of
``STRIP`` rows, at the offsets handed in. Only what is read from or written to arrays of the caller is in their dtype:
between a point and its image ``1 - c|x|^2`` falls by ``exp`` of the distance, and rounding a tangent vector, a moved
point or a gradient to single precision on the way would be magnified by as much.
"""

from __future__ import annotations

from typing import Any

from hgde.kernels.cpu.compile import block, inlined, kernel
from hgde.kernels.cpu.lanes import LANES, fma, larger, load, root, spread, store, total, wide
from hgde.kernels.cpu.scalars import exp_minus_one, tanh, tanh_ratio
from hgde.kernels.cpu.sizes import ELU, LEAKY_RELU, PARTIALS, PROJECTED, RELU, ROW_SCALARS, STRIP, TANH

(
    XX, VV, B, Q, T, SLOPE, SECH, F, TT, TX, SPREAD, DEN, SCALE, PUSHED,
    GX, GV, GT, TV, XV, O1, O2, O3, O4, O5, O6, O7, GC,
    B0, B2, G01, G02, G12, F0, F1, F2, BOTTOM, ROOT, H0, H1, H2, SIZE, CUT,
    M0, M1, M2, M01, M02, M12, GE0, GE1, GE2,
) = tuple(STRIP * n for n in range(ROW_SCALARS))  # fmt: skip
SCALARS = ROW_SCALARS * STRIP
LEAKY_SLOPE = 0.01
INNER_MARGIN = 1e-12
"""The limit of float64. A moved point that goes into a residual is held to this, since it is never rounded to less."""


@inlined
def rounded(n: int) -> int:
    """``n`` brought up to a multiple of 8: a vectorised loop over scalars is left no rest to go through one by one.

    What lies beyond ``n`` in the buffers is stale and its results are never read.
    """
    return (n + 7) // 8 * 8


@inlined
def sign(x: float) -> float:
    return 1.0 if x > 0 else (-1.0 if x < 0 else 0.0)


@block
def activate(s: Any, u: int, count: int, code: int) -> None:
    """Apply the activation to ``count`` numbers from place ``u`` on."""
    if code == RELU:
        for k in range(u, u + count):
            s[k] = larger(s[k], 0.0)
    elif code == LEAKY_RELU:
        for k in range(u, u + count):
            s[k] = s[k] if s[k] > 0 else s[k] * LEAKY_SLOPE
    elif code == TANH:
        for k in range(u, u + count):
            s[k] = tanh(s[k])
    elif code == ELU:
        for k in range(u, u + count):
            s[k] = s[k] if s[k] > 0 else exp_minus_one(s[k])


@block
def activate_backward(s: Any, u: int, g: int, count: int, code: int) -> None:
    """Multiply the numbers at ``g`` by the activation's derivative, known from the activated values at ``u``."""
    if code == RELU:
        for k in range(count):
            s[g + k] = s[g + k] if s[u + k] > 0 else 0.0
    elif code == LEAKY_RELU:
        for k in range(count):
            s[g + k] *= 1.0 if s[u + k] > 0 else LEAKY_SLOPE
    elif code == TANH:
        for k in range(count):
            s[g + k] *= 1.0 - s[u + k] * s[u + k]
    elif code == ELU:
        for k in range(count):
            s[g + k] *= 1.0 if s[u + k] > 0 else 1.0 + s[u + k]


@block
def exp_strip(z: Any, first: int, n: int, d: int, s: Any, u: int, moved: int, c: float, margin: float) -> int:
    """``exp_z(u) = SCALE (B t + SPREAD z) / DEN``, ``t = z + F u``, ``F = tanhc(Q) / B``, ``SPREAD = c|t|^2``.

    ``DEN = B SECH + SPREAD``; ``SCALE`` brings a point beyond the limit back to it. ``|t|^2`` is taken from ``t``
    itself: on a long way inwards from near the boundary ``|z|^2 + 2F<z,u> + F^2|u|^2`` would cancel.
    Returns how many points were projected; one at the limit, moved by rounding alone, is not counted.
    """
    for r in range(n):
        xx, vv = spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            x, v = wide(z, (first + r) * d + k), load(s, u + r * d + k)
            xx = fma(x, x, xx)
            vv = fma(v, v, vv)
        s[XX + r], s[VV + r] = total(xx), total(vv)
    for r in range(rounded(n)):
        b = larger(1 - c * s[XX + r], margin)
        q = c * s[VV + r] / (b * b)
        t, slope, sech = tanh_ratio(q)
        s[B + r], s[Q + r], s[T + r], s[SLOPE + r], s[SECH + r], s[F + r] = b, q, t, slope, sech, t / b
    for r in range(n):
        f, tt, tx = s[F + r], spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            x = wide(z, (first + r) * d + k)
            t = fma(f, load(s, u + r * d + k), x)
            store(s, moved + r * d + k, t)
            tt = fma(t, t, tt)
            tx = fma(t, x, tx)
        s[TT + r], s[TX + r] = total(tt), total(tx)
    limit = (1 - margin) * (1 - margin)
    for r in range(rounded(n)):
        b, across = s[B + r], c * s[TT + r]
        den = b * s[SECH + r] + across
        size = b * b * s[TT + r] + 2 * b * across * s[TX + r] + across * across * s[XX + r]
        size *= c / (den * den)
        s[SPREAD + r], s[DEN + r] = across, den
        s[SCALE + r] = (1 - margin) / root(larger(size, limit)) if size > limit else 1.0
    count = 0
    for r in range(n):
        over = s[SCALE + r] / s[DEN + r]
        along, rest = over * s[B + r], over * s[SPREAD + r]
        if s[SCALE + r] < 1 - 4e-7 * margin / 1e-5:
            count += 1
        for k in range(0, d, LANES):
            t = load(s, moved + r * d + k)
            store(s, moved + r * d + k, fma(rest, wide(z, (first + r) * d + k), along * t))
    return count


@block
def exp_strip_backward(
    z: Any, first: int, n: int, d: int, s: Any, u: int, gm: int, gz: int, gu: int, c: float, margin: float
) -> None:
    """From the gradient at ``gm``: ``gz += ...``, ``gu = ...``, ``GC += ...``; follows :func:`exp_strip`.

    With ``L = <g, out>`` and ``m = (<g,t> - SECH <g,z>) / DEN^2``, ``dL/dSPREAD = -B m`` and ``dL/dB = SPREAD m``,
    differences that stay accurate when the image is near the point. A projected point takes no gradient along its
    radius, so ``g`` is first freed of that part.
    """
    for r in range(n):
        f = s[F + r]
        g_x, g_v, g_t, tv, xv = spread(0.0), spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            x, v, g = wide(z, (first + r) * d + k), load(s, u + r * d + k), load(s, gm + r * d + k)
            t = fma(f, v, x)
            g_x = fma(g, x, g_x)
            g_v = fma(g, v, g_v)
            g_t = fma(g, t, g_t)
            tv = fma(t, v, tv)
            xv = fma(x, v, xv)
        s[GX + r], s[GV + r], s[GT + r], s[TV + r], s[XV + r] = total(g_x), total(g_v), total(g_t), total(tv), total(xv)
    for r in range(rounded(n)):
        b, across, sech, f, q = s[B + r], s[SPREAD + r], s[SECH + r], s[F + r], s[Q + r]
        tt, tx, tv, xx, scale = s[TT + r], s[TX + r], s[TV + r], s[XX + r], s[SCALE + r]
        over = 1 / s[DEN + r]
        out_t, out_x = (b * tt + across * tx) * over, (b * tx + across * xx) * over
        out_v = (b * tv + across * s[XV + r]) * over
        value = (b * s[GT + r] + across * s[GX + r]) * over
        inside = scale == 1
        radial = 0.0 if inside else value / larger((b * out_t + across * out_x) * over, 1e-30)
        g_t, g_x = scale * (s[GT + r] - radial * out_t), scale * (s[GX + r] - radial * out_x)
        g_v = scale * (s[GV + r] - radial * out_v)
        g_c = 0.0 if inside else -0.5 * scale * value / c
        value = value if inside else 0.0
        m = (g_t - sech * g_x) * over * over
        g_spread, g_b, g_sech = -b * m, across * m, -value * b * over
        g_f = b * over * g_v + 2 * c * g_spread * tv
        g_q = g_f / b * s[SLOPE + r] - g_sech * s[T + r] * sech
        g_b -= (g_f * f + 2 * g_q * q) / b
        g_b = g_b if 1 - c * xx >= margin else 0.0
        s[GC + r] += g_c + tt * g_spread + g_q * s[VV + r] / (b * b) - xx * g_b
        scaled, cut = scale * over, -scale * radial * over * over
        s[O1 + r] = scaled * b
        s[O2 + r] = cut * b * b + 2 * c * g_spread
        s[O3 + r] = cut * b * across
        s[O4 + r] = scaled * across
        s[O6 + r] = cut * across * across - 2 * c * g_b
        s[O7 + r] = 2 * c * g_q / (b * b)
    for r in range(n):
        f, t_g, t_t, t_x, x_g, x_x, v_v = (
            s[F + r], s[O1 + r], s[O2 + r], s[O3 + r], s[O4 + r], s[O6 + r], s[O7 + r],
        )  # fmt: skip
        for k in range(0, d, LANES):
            at = r * d + k
            x, v, g = wide(z, first * d + at), load(s, u + at), load(s, gm + at)
            t = fma(f, v, x)
            g_t = fma(t_x, x, fma(t_t, t, t_g * g))
            rest = fma(x_x, x, fma(t_x, t, x_g * g))
            store(s, gz + at, load(s, gz + at) + (g_t + rest))
            store(s, gu + at, fma(v_v, v, f * g_t))


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


@block
def flow_strip(
    z: Any, first: int, n: int, d: int, z0: Any, s: Any, v: int, moved: int, mode: int, code: int, e0: float,
    e1: float, e2: float, c: float, margin: float, out: Any,
) -> int:  # fmt: skip
    """``out = F`` from tangent vectors at ``v``: as they are (``mode`` 0), their exponential (1), the residual (2)."""
    count = 0
    if mode > 0:
        activate(s, v, n * d, code)
        count = exp_strip(z, first, n, d, s, v, moved, c, margin if mode == 1 else INNER_MARGIN)
    if mode == 2:
        midpoint_scalars(z, first, n, d, z0, s, moved, e0, e1, e2, c, margin)
        return count + midpoint_strip(z, first, n, d, z0, s, moved, c, margin, out)
    source = moved if mode == 1 else v
    for k in range(0, n * d, LANES):
        store(out, first * d + k, load(s, source + k))
    return count


@block
def flow_strip_backward(
    z: Any, first: int, n: int, d: int, z0: Any, s: Any, v: int, moved: int, gm: int, gz: int, gu: int, mode: int,
    code: int, e0: float, e1: float, e2: float, c: float, margin: float, grad: Any, gz0: Any, partial: Any, line: int,
) -> None:  # fmt: skip
    """From ``grad`` at ``F`` to ``gu`` at the tangent vectors ``v`` (activated here), ``gz``, ``gz0 += ...``."""
    if mode == 0:
        for k in range(0, n * d, LANES):
            store(s, gz + k, spread(0.0))
            store(s, gu + k, wide(grad, first * d + k))
        return
    activate(s, v, n * d, code)
    held = margin if mode == 1 else INNER_MARGIN
    exp_strip(z, first, n, d, s, v, moved, c, held)
    if mode == 2:
        midpoint_scalars(z, first, n, d, z0, s, moved, e0, e1, e2, c, margin)
        midpoint_strip_backward(z, first, n, d, z0, s, moved, e0, e1, e2, c, margin, grad, gm, gz, gz0)
    else:
        for r in range(n):
            s[GC + r] = 0.0
        for k in range(0, n * d, LANES):
            store(s, gm + k, wide(grad, first * d + k))
            store(s, gz + k, spread(0.0))
    exp_strip_backward(z, first, n, d, s, v, gm, gz, gu, c, held)
    activate_backward(s, v, gu, n * d, code)
    for r in range(n):
        partial[line] += s[GC + r]
    if mode == 2:
        for r in range(n):
            partial[line + 1] += s[GE0 + r]
            partial[line + 2] += s[GE1 + r]
            partial[line + 3] += s[GE2 + r]


@kernel
def advance(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, z: Reals, v: Reals, z0: Reals, mode: Int, code: Int,
    e0: Double, e1: Double, e2: Double, c: Double, margin: Double, out: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """``out = F`` from tangent vectors at hand, for the rows of blocks ``begin .. end - 1``."""
    at_v, at_moved = SCALARS, SCALARS + STRIP * d
    for block_ in range(begin, end):
        for first in range(blocks[block_], blocks[block_ + 1], STRIP):
            n = min(STRIP, blocks[block_ + 1] - first)
            for k in range(0, n * d, LANES):
                store(s, at_v + k, wide(v, first * d + k))
            partial[block_ * PARTIALS + PROJECTED] += flow_strip(
                z, first, n, d, z0, s, at_v, at_moved, mode, code, e0, e1, e2, c, margin, out
            )


@kernel
def advance_backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, z: Reals, v: Reals, z0: Reals, mode: Int, code: Int,
    e0: Double, e1: Double, e2: Double, c: Double, margin: Double, grad: Reals, gz: Reals, gv: Reals, gz0: Reals,
    partial: Doubles,
) -> None:  # fmt: skip
    """The gradient of :func:`advance`; ``gz0`` is added to."""
    size = STRIP * d
    at_v, at_moved, at_gm, at_gz, at_gu = (
        SCALARS, SCALARS + size, SCALARS + 2 * size, SCALARS + 3 * size, SCALARS + 4 * size,
    )  # fmt: skip
    for block_ in range(begin, end):
        for first in range(blocks[block_], blocks[block_ + 1], STRIP):
            n = min(STRIP, blocks[block_ + 1] - first)
            for k in range(0, n * d, LANES):
                store(s, at_v + k, wide(v, first * d + k))
            flow_strip_backward(
                z, first, n, d, z0, s, at_v, at_moved, at_gm, at_gz, at_gu, mode, code, e0, e1, e2, c, margin, grad,
                gz0, partial, block_ * PARTIALS,
            )  # fmt: skip
            for k in range(0, n * d, LANES):
                store(gz, first * d + k, load(s, at_gz + k))
                store(gv, first * d + k, load(s, at_gu + k))
