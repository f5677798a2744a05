"""Work on a strip of up to 32 rows, in double precision throughout: activation and exponential, with gradients.

Each step alternates loops over rows and width (inner products and combinations) with loops over the scalars of all rows
at once. All of it lies in one buffer of doubles, ``s``: first the scalars, at the places named below, then matrices of
``STRIP`` rows, at the offsets handed in. Only what is read from or written to arrays of the caller is in their dtype:
between a point and its image ``1 - c|x|^2`` falls by ``exp`` of the distance, and rounding a tangent vector, a moved
point or a gradient to single precision on the way would be magnified by as much.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import block, inlined
from hgde.kernels.cpu.lanes import LANES, fma, larger, load, root, spread, store, total, wide
from hgde.kernels.cpu.scalars import exp_minus_one, tanh, tanh_ratio
from hgde.kernels.cpu.sizes import ELU, LEAKY_RELU, RELU, ROW_SCALARS, STRIP, TANH

(
    XX, VV, B, Q, T, SLOPE, SECH, F, TT, TX, SPREAD, DEN, SCALE, PUSHED,
    GX, GV, GT, TV, XV, O1, O2, O3, O4, O5, O6, O7, GC,
    B0, B2, G01, G02, G12, F0, F1, F2, BOTTOM, ROOT, H0, H1, H2, SIZE, CUT,
    M0, M1, M2, M01, M02, M12, GE0, GE1, GE2, PULLED,
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
