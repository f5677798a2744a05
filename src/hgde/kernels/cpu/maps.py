"""Logarithm, parallel transport and inverse differential of exp at any point, each one pass over the rows a way.

Every map is a combination of its arguments whose coefficients depend on a few inner products of them, so a pass takes
the inner products of a strip's rows, works out the coefficients, and combines; the backward pass takes the inner
products with the gradient besides, and needs nothing saved but the arguments. All of it is in doubles. The formulas are
those of :mod:`hgde.geometry.ball`, with differences of points where sums of products would cancel. The exponential is
:func:`hgde.kernels.cpu.rows.advance`.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, block, inlined, kernel
from hgde.kernels.cpu.exponential import rounded
from hgde.kernels.cpu.lanes import LANES, fma, larger, root, spread, store, total, wide
from hgde.kernels.cpu.scalars import artanh_ratio, artanh_ratio_slope, exp_negative
from hgde.kernels.cpu.sizes import STRIP

(XX, YY, SS, XV, XS, SV, GX, GS, GV, O1, O2, O3, O4, O5, O6, O7, O8, O9, GC) = tuple(STRIP * n for n in range(19))
_S = (
    0.16666666666666666, -0.019444444444444445, 0.00205026455026455, -0.0002099867724867725, 2.1336045641601196e-05,
    -2.1633474427786596e-06, 2.192327134456764e-07, -2.2213930853920414e-08, 2.2507674795567884e-09,
    -2.2805107707218229e-10, 2.3106421580996986e-11, -2.341170402893197e-12, 2.3721016693292275e-13,
    -2.4034415154237387e-14, 2.435195398382435e-15,
)  # fmt: skip
"""``(1 - r / sinh r) / q = -2 sum_{n > 0} eta(2n) (-1/pi^2)^n q^(n-1)`` in ``q = r^2``, with Dirichlet's eta."""
_SERIES_BELOW = 0.5


@inlined
def put(array: Any, at: int, lanes: Any, add: int) -> None:
    """Write lanes, or add them to what is there."""
    store(array, at, lanes + wide(array, at) if add != 0 else lanes)


@block
def log_strip(x: Any, y: Any, first: int, n: int, d: int, c: float, margin: float, s: Any, out: Any) -> None:
    """``log_x(y) = (B_x R / D) (B_x s - c|s|^2 x)``, ``R = artanhc(c|s|^2 / D)``, ``D = B_x B_y + c|s|^2``."""
    log_products(x, y, first, n, d, s)
    for r in range(rounded(n)):
        b_x, b_y = larger(1 - c * s[XX + r], margin), larger(1 - c * s[YY + r], margin)
        across, product = c * s[SS + r], b_x * b_y
        den = product + across
        factor = b_x * artanh_ratio(across / den, den / product) / den
        s[O1 + r], s[O2 + r] = factor * b_x, -factor * across
    for r in range(n):
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a = wide(x, k)
            store(out, k, fma(s[O1 + r], wide(y, k) - a, s[O2 + r] * a))


@kernel
def log(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, x: Reals, y: Reals, c: Double, margin: Double, out: Reals
) -> None:
    """Of all rows of the blocks."""
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            log_strip(x, y, first, n, d, c, margin, s, out)


@inlined
def log_products(x: Any, y: Any, first: int, n: int, d: int, s: Any) -> None:
    for r in range(n):
        xx, yy, ss = spread(0.0), spread(0.0), spread(0.0)
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a, b = wide(x, k), wide(y, k)
            e = b - a
            xx = fma(a, a, xx)
            yy = fma(b, b, yy)
            ss = fma(e, e, ss)
        s[XX + r], s[YY + r], s[SS + r] = total(xx), total(yy), total(ss)


@block
def log_backward_strip(
    x: Any, y: Any, first: int, n: int, d: int, c: float, margin: float, s: Any, g: Any, gx: Any, gy: Any,
    add_x: int, add_y: int, partial: Any, line: int,
) -> None:  # fmt: skip
    """Gradients of ``x`` and ``y``; ``partial[line]`` is that of ``c``. ``d(c|s|^2/D)`` is written without the ``1 -``
    that would cancel for far points."""
    log_products(x, y, first, n, d, s)
    for r in range(n):
        g_x, g_s = spread(0.0), spread(0.0)
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a, e = wide(x, k), wide(g, k)
            g_x = fma(e, a, g_x)
            g_s = fma(e, wide(y, k) - a, g_s)
        s[GX + r], s[GS + r] = total(g_x), total(g_s)
    for r in range(rounded(n)):
        xx, yy, ss, along_x, along_s = s[XX + r], s[YY + r], s[SS + r], s[GX + r], s[GS + r]
        b_x, b_y = larger(1 - c * xx, margin), larger(1 - c * yy, margin)
        across, product = c * ss, b_x * b_y
        den = product + across
        over, inverse_rest = 1 / den, den / product
        ratio = artanh_ratio(across * over, inverse_rest)
        slope = artanh_ratio_slope(across * over, inverse_rest, ratio)
        scale = ratio * over
        both = b_x * along_s - across * along_x
        g_w = b_x * both * over * slope * over * over
        g_den = -b_x * both * scale * over
        g_product = g_den - g_w * across
        g_across = g_den + g_w * product - scale * b_x * along_x
        g_b = scale * (both + b_x * along_s) + g_product * b_y
        g_b = g_b if 1 - c * xx >= margin else 0.0
        g_by = g_product * b_x if 1 - c * yy >= margin else 0.0
        s[GC + r] = ss * g_across - xx * g_b - yy * g_by
        s[O1 + r], s[O2 + r] = scale * b_x * b_x, -scale * b_x * across
        s[O3 + r], s[O4 + r], s[O5 + r] = 2 * c * g_across, -2 * c * g_b, -2 * c * g_by
    for r in range(n):
        partial[line] += s[GC + r]
        s_g, x_g, s_s, x_x, y_y = s[O1 + r], s[O2 + r], s[O3 + r], s[O4 + r], s[O5 + r]
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a, b, e = wide(x, k), wide(y, k), wide(g, k)
            step = fma(s_g, e, s_s * (b - a))
            put(gx, k, fma(x_g, e, x_x * a) - step, add_x)
            put(gy, k, fma(y_y, b, step), add_y)


@kernel
def log_backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, x: Reals, y: Reals, c: Double, margin: Double, g: Reals,
    gx: Reals, gy: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """Of all rows of the blocks; ``partial[block]`` is the gradient of ``c``."""
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            log_backward_strip(x, y, first, n, d, c, margin, s, g, gx, gy, 0, 0, partial, part)


@inlined
def transport_products(x: Any, y: Any, v: Any, first: int, n: int, d: int, s: Any) -> None:
    for r in range(n):
        xx, yy, ss = spread(0.0), spread(0.0), spread(0.0)
        xv, xs, sv = spread(0.0), spread(0.0), spread(0.0)
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a, b, e = wide(x, k), wide(y, k), wide(v, k)
            t = b - a
            xx = fma(a, a, xx)
            yy = fma(b, b, yy)
            ss = fma(t, t, ss)
            xv = fma(a, e, xv)
            xs = fma(a, t, xs)
            sv = fma(t, e, sv)
        s[XX + r], s[YY + r], s[SS + r], s[XV + r], s[XS + r], s[SV + r] = (
            total(xx), total(yy), total(ss), total(xv), total(xs), total(sv),
        )  # fmt: skip


@block
def transport_strip(
    x: Any, y: Any, v: Any, first: int, n: int, d: int, c: float, margin: float, s: Any, out: Any
) -> None:
    """``(B_y / B_x) (v + (2c/D) (along_s s - along_x x))`` with ``s = y - x``, ``D = B_x B_y + c|s|^2``."""
    transport_products(x, y, v, first, n, d, s)
    for r in range(rounded(n)):
        xx, ss, xv, xs, sv = s[XX + r], s[SS + r], s[XV + r], s[XS + r], s[SV + r]
        b_x, b_y = larger(1 - c * xx, margin), larger(1 - c * s[YY + r], margin)
        p = 1 - c * (xx + xs)
        ratio = b_y / b_x
        scale = 2 * c / (b_x * b_y + c * ss) * ratio
        s[O1 + r] = ratio
        s[O2 + r] = scale * (c * (xs * xv - xx * sv) - p * xv)
        s[O3 + r] = -scale * (c * (ss * xv - xs * sv) - p * sv)
    for r in range(n):
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a = wide(x, k)
            store(out, k, fma(s[O1 + r], wide(v, k), fma(s[O2 + r], wide(y, k) - a, s[O3 + r] * a)))


@kernel
def transport(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, x: Reals, y: Reals, v: Reals, c: Double, margin: Double,
    out: Reals,
) -> None:  # fmt: skip
    """Of all rows of the blocks."""
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            transport_strip(x, y, v, first, n, d, c, margin, s, out)


@block
def transport_backward_strip(
    x: Any, y: Any, v: Any, first: int, n: int, d: int, c: float, margin: float, s: Any, g: Any, gx: Any, gy: Any,
    gv: Any, add_x: int, add_y: int, add_v: int, partial: Any, line: int,
) -> None:  # fmt: skip
    """Gradients of ``x``, ``y`` and ``v``; ``partial[line]`` is that of ``c``."""
    transport_products(x, y, v, first, n, d, s)
    for r in range(n):
        g_x, g_s, g_v = spread(0.0), spread(0.0), spread(0.0)
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a, e = wide(x, k), wide(g, k)
            g_x = fma(e, a, g_x)
            g_s = fma(e, wide(y, k) - a, g_s)
            g_v = fma(e, wide(v, k), g_v)
        s[GX + r], s[GS + r], s[GV + r] = total(g_x), total(g_s), total(g_v)
    for r in range(rounded(n)):
        xx, yy, ss, xv, xs, sv = s[XX + r], s[YY + r], s[SS + r], s[XV + r], s[XS + r], s[SV + r]
        b_x, b_y = larger(1 - c * xx, margin), larger(1 - c * yy, margin)
        p = 1 - c * (xx + xs)
        over = 1 / (b_x * b_y + c * ss)
        ratio, scale = b_y / b_x, 2 * c * over
        turn_s, turn_x = xs * xv - xx * sv, ss * xv - xs * sv
        along_s, along_x = c * turn_s - p * xv, c * turn_x - p * sv
        turned = along_s * s[GS + r] - along_x * s[GX + r]
        value = s[GV + r] + scale * turned
        g_as, g_ax = ratio * scale * s[GS + r], -ratio * scale * s[GX + r]
        g_den = -ratio * turned * scale * over
        g_p = -xv * g_as - sv * g_ax
        g_b = g_den * b_y - value * ratio / b_x
        g_b = g_b if 1 - c * xx >= margin else 0.0
        g_by = g_den * b_x + value / b_x if 1 - c * yy >= margin else 0.0
        s[O1 + r], s[O2 + r], s[O3 + r] = ratio, ratio * scale * along_s, -ratio * scale * along_x
        s[O4 + r] = -2 * c * (sv * g_as + g_p + g_b)
        s[O5 + r] = 2 * c * (xv * g_ax + g_den)
        s[O6 + r] = -2 * c * g_by
        s[O7 + r] = c * (xv * g_as - sv * g_ax - g_p)
        s[O8 + r] = (c * xs - p) * g_as + c * ss * g_ax
        s[O9 + r] = -c * xx * g_as - (c * xs + p) * g_ax
        from_scale = 2 * ratio * turned * over + turn_s * g_as + turn_x * g_ax - (xx + xs) * g_p
        s[GC + r] = from_scale + ss * g_den - xx * g_b - yy * g_by
    for r in range(n):
        partial[line] += s[GC + r]
        v_g, s_g, x_g, x_x, s_s, y_y = s[O1 + r], s[O2 + r], s[O3 + r], s[O4 + r], s[O5 + r], s[O6 + r]
        x_s, x_v, s_v = s[O7 + r], s[O8 + r], s[O9 + r]
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a, b, e, h = wide(x, k), wide(y, k), wide(v, k), wide(g, k)
            t = b - a
            step = fma(s_g, h, fma(s_s, t, fma(x_s, a, s_v * e)))
            put(gx, k, fma(x_g, h, fma(x_x, a, fma(x_s, t, x_v * e))) - step, add_x)
            put(gy, k, fma(y_y, b, step), add_y)
            put(gv, k, fma(v_g, h, fma(x_v, a, s_v * t)), add_v)


@kernel
def transport_backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, x: Reals, y: Reals, v: Reals, c: Double, margin: Double,
    g: Reals, gx: Reals, gy: Reals, gv: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """Of all rows of the blocks; ``partial[block]`` is the gradient of ``c``."""
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            transport_backward_strip(x, y, v, first, n, d, c, margin, s, g, gx, gy, gv, 0, 0, 0, partial, part)


@inlined
def shrinking(q: float) -> tuple[float, float, float, float]:
    """``A = r / sinh r`` and ``S = (1 - A) / q`` of ``q = r^2``, each followed by its derivative in ``q``."""
    p = fma(q, fma(q, fma(q, fma(q, fma(q, _S[14], _S[13]), _S[12]), _S[11]), _S[10]), _S[9])
    p = fma(q, fma(q, fma(q, fma(q, fma(q, p, _S[8]), _S[7]), _S[6]), _S[5]), _S[4])
    near = fma(q, fma(q, fma(q, fma(q, p, _S[3]), _S[2]), _S[1]), _S[0])
    p = fma(q, fma(q, fma(q, fma(q, 14 * _S[14], 13 * _S[13]), 12 * _S[12]), 11 * _S[11]), 10 * _S[10])
    p = fma(q, fma(q, fma(q, fma(q, fma(q, p, 9 * _S[9]), 8 * _S[8]), 7 * _S[7]), 6 * _S[6]), 5 * _S[5])
    near_slope = fma(q, fma(q, fma(q, fma(q, p, 4 * _S[4]), 3 * _S[3]), 2 * _S[2]), _S[1])
    safe = larger(q, _SERIES_BELOW)
    r = root(safe)
    e = exp_negative(r)
    rest = 1 / (1 - e * e)
    a = 2 * r * e * rest
    a_slope = a * (1 - r * (1 + e * e) * rest) / (2 * safe)
    far = (1 - a) / safe
    far_slope = -(a_slope + far) / safe
    small = q < _SERIES_BELOW
    value, slope = 1 - q * near if small else a, -near - q * near_slope if small else a_slope
    return value, slope, near if small else far, near_slope if small else far_slope


@inlined
def shrink_products(x: Any, v: Any, u: Any, first: int, n: int, d: int, s: Any) -> None:
    for r in range(n):
        xx, vv, uv = spread(0.0), spread(0.0), spread(0.0)
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            a, b = wide(x, k), wide(v, k)
            xx = fma(a, a, xx)
            vv = fma(b, b, vv)
            uv = fma(wide(u, k), b, uv)
        s[XX + r], s[SS + r], s[XV + r] = total(xx), total(vv), total(uv)


@block
def shrink_strip(x: Any, v: Any, u: Any, first: int, n: int, d: int, c: float, margin: float, s: Any, out: Any) -> None:
    """``A u + m S <u,v> v`` with ``m = 4c / B_x^2`` and ``A, S`` of ``q = m|v|^2``: the part across ``v`` shrinks."""
    shrink_products(x, v, u, first, n, d, s)
    for r in range(n):
        b_x = larger(1 - c * s[XX + r], margin)
        metric = 4 * c / (b_x * b_x)
        a, _, b, _ = shrinking(metric * s[SS + r])
        s[O1 + r], s[O2 + r] = a, metric * b * s[XV + r]
    for r in range(n):
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            store(out, k, fma(s[O1 + r], wide(u, k), s[O2 + r] * wide(v, k)))


@kernel
def shrink(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, x: Reals, v: Reals, u: Reals, c: Double, margin: Double,
    out: Reals,
) -> None:  # fmt: skip
    """Of all rows of the blocks."""
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            shrink_strip(x, v, u, first, n, d, c, margin, s, out)


@block
def shrink_backward_strip(
    x: Any, v: Any, u: Any, first: int, n: int, d: int, c: float, margin: float, s: Any, g: Any, gx: Any, gv: Any,
    gu: Any, add_x: int, add_v: int, add_u: int, partial: Any, line: int,
) -> None:  # fmt: skip
    """Gradients of ``x``, ``v`` and ``u``; ``partial[line]`` is that of ``c``."""
    shrink_products(x, v, u, first, n, d, s)
    for r in range(n):
        g_u, g_v = spread(0.0), spread(0.0)
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            e = wide(g, k)
            g_u = fma(e, wide(u, k), g_u)
            g_v = fma(e, wide(v, k), g_v)
        s[GX + r], s[GV + r] = total(g_u), total(g_v)
    for r in range(n):
        xx, vv, uv, along_u, along_v = s[XX + r], s[SS + r], s[XV + r], s[GX + r], s[GV + r]
        b_x = larger(1 - c * xx, margin)
        metric = 4 * c / (b_x * b_x)
        a, a_slope, b, b_slope = shrinking(metric * vv)
        g_q = a_slope * along_u + metric * b_slope * uv * along_v
        g_metric = b * uv * along_v + g_q * vv
        g_b = -2 * g_metric * metric / b_x if 1 - c * xx >= margin else 0.0
        s[GC + r] = g_metric * metric / c - xx * g_b
        s[O1 + r], s[O2 + r], s[O3 + r] = a, metric * b * along_v, metric * b * uv
        s[O4 + r], s[O5 + r] = 2 * g_q * metric, -2 * c * g_b
    for r in range(n):
        partial[line] += s[GC + r]
        u_g, u_v, v_g, v_v, x_x = s[O1 + r], s[O2 + r], s[O3 + r], s[O4 + r], s[O5 + r]
        for k in range((first + r) * d, (first + r + 1) * d, LANES):
            b, e = wide(v, k), wide(g, k)
            put(gx, k, x_x * wide(x, k), add_x)
            put(gv, k, fma(v_g, e, fma(u_v, wide(u, k), v_v * b)), add_v)
            put(gu, k, fma(u_g, e, u_v * b), add_u)


@kernel
def shrink_backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, x: Reals, v: Reals, u: Reals, c: Double, margin: Double,
    g: Reals, gx: Reals, gv: Reals, gu: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """Of all rows of the blocks; ``partial[block]`` is the gradient of ``c``."""
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            shrink_backward_strip(x, v, u, first, n, d, c, margin, s, g, gx, gv, gu, 0, 0, 0, partial, part)
