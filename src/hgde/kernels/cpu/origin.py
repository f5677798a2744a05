"""Maps at the origin: ``exp_o``, ``log_o`` and translation in its tangent space, each one pass a way.

Each is ``out = A x + B b`` with two scalars for each row (``B`` and the point ``b`` in translations only).
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, block, inlined, kernel
from hgde.compiler.memory import offset
from hgde.kernels.cpu.exponential import rounded
from hgde.kernels.cpu.lanes import LANES, fma, larger, root, smaller, spread, store, total, wide
from hgde.kernels.cpu.scalars import artanh_ratio, artanh_ratio_slope, tanh_ratio
from hgde.kernels.cpu.sizes import EXP, LOG, STRIP, TRANSLATE

(NU, H, A, B, A_NU, A_H, B_NU, B_H, SN, LOST) = tuple(STRIP * n for n in range(10))


@inlined
def own_square(point: Any, d: int) -> float:
    """``|b|^2``."""
    square = spread(0.0)
    for k in range(0, d, LANES):
        square = fma(wide(point, k), wide(point, k), square)
    return total(square)


@block
def coefficients(x: Any, first: int, n: int, d: int, point: Any, kind: int, c: float, margin: float, s: Any) -> int:
    """``A`` and its derivative in ``c|x|^2`` (``A_NU``) for exp and log, from ``NU = |x|^2``; ``H = <x, b>`` otherwise.

    Returns how many points were projected.
    """
    for r in range(n):
        nu, h = spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            own = wide(x, (first + r) * d + k)
            nu = fma(own, own, nu)
            h = fma(own, wide(point, k), h)
        s[NU + r], s[H + r], s[B + r] = total(nu), total(h), 0.0
    limit = (1 - margin) * (1 - margin)
    count = 0
    if kind == EXP:
        for r in range(rounded(n)):
            rho = c * s[NU + r]
            t, slope, _ = tanh_ratio(rho)
            safe = larger(rho, 1e-30)
            f = (1 - margin) / root(safe)
            out = t * t * rho > limit
            s[A + r] = f if out else t
            s[A_NU + r] = -0.5 * f / safe if out else slope
            s[LOST + r] = 1.0 if out else 0.0
        for r in range(n):
            count += int(s[LOST + r])
    elif kind == LOG:
        for r in range(rounded(n)):
            rho = smaller(c * s[NU + r], limit)
            inverse_rest = 1 / (1 - rho)
            f = artanh_ratio(rho, inverse_rest)
            s[A + r], s[A_NU + r] = f, artanh_ratio_slope(rho, inverse_rest, f)
    return count


@block
def translation(n: int, own: float, c: float, margin: float, s: Any, gradient: int) -> None:
    """The two coefficients of a translation by ``b``, ``own = c|b|^2``; with ``gradient``, from ``A_NU = <g, x>`` and
    ``B_NU = <g, b>`` also the derivatives in ``c|x|^2`` (``A_NU``), ``c<x, b>`` (``A_H``) and ``c|b|^2`` (``SN``)."""
    b_b = larger(1 - own, margin)
    for r in range(rounded(n)):
        rho, h = c * s[NU + r], c * s[H + r]
        t, t_slope, e = tanh_ratio(rho)
        across = larger(rho * t * t + 2 * t * h + own, 0.0)
        product = e * b_b
        den = product + across
        over = 1 / den
        v = across * over
        inverse_rest = smaller(den / product, 0.5 / margin)
        ratio = artanh_ratio(v, inverse_rest)
        a, b = ratio * (e + across) * t * over, ratio * e * over
        s[A + r], s[B + r] = a, b
        if gradient != 0:
            ga, gb = s[A_NU + r], s[B_NU + r]
            g_ratio = (ga * (e + across) * t + gb * e) * over
            g_t = ga * ratio * (e + across) * over
            g_e = (ga * t + gb) * ratio * over
            g_v = g_ratio * artanh_ratio_slope(v, inverse_rest, ratio)
            g_den = -(ga * a + gb * b + g_v * v) * over
            g_across = (ga * ratio * t + g_v) * over + g_den
            g_e += g_den * b_b
            g_t += g_across * (2 * rho * t + 2 * h)
            s[A_NU + r] = g_across * t * t + g_t * t_slope - g_e * (t * t + 2 * rho * t * t_slope)
            s[A_H + r] = 2 * g_across * t
            s[SN + r] = g_across - g_den * e


@block
def backward_strip(
    x: Any, first: int, n: int, d: int, point: Any, own: float, kind: int, c: float, margin: float, s: Any, grad: Any,
    gx: Any, partial: Any, line: int, gpoint: Any, row: int,
) -> None:  # fmt: skip
    """``gx`` of a strip of rows from ``grad``, both beginning with that strip; added to are ``partial[line]``, of
    ``c``, and in translations ``gpoint[row:]``. Leaves ``A``; ``own = c|b|^2``."""
    coefficients(x, first, n, d, point, kind, c, margin, s)
    for r in range(n):
        along, across = spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            g = wide(grad, r * d + k)
            along = fma(g, wide(x, (first + r) * d + k), along)
            across = fma(g, wide(point, k), across)
        if kind == TRANSLATE:
            s[A_NU + r], s[B_NU + r] = total(along), total(across)
        else:
            s[A_NU + r], s[A_H + r], s[SN + r] = s[A_NU + r] * total(along), 0.0, 0.0
    if kind == TRANSLATE:
        translation(n, own, c, margin, s, 1)
    for r in range(n):
        partial[line] += s[A_NU + r] * s[NU + r] + s[A_H + r] * s[H + r] + s[SN + r] * own / c
        twice, h, m = 2 * c * s[A_NU + r], c * s[A_H + r], 2 * c * s[SN + r]
        for k in range(0, d, LANES):
            own_x, g, b = wide(x, (first + r) * d + k), wide(grad, r * d + k), wide(point, k)
            store(gx, r * d + k, fma(s[A + r], g, fma(twice, own_x, h * b)))
            if kind == TRANSLATE:
                more = fma(s[B + r], g, fma(h, own_x, m * b))
                store(gpoint, row + k, wide(gpoint, row + k) + more)


@kernel
def forward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, x: Reals, point: Reals, kind: Int, c: Double,
    margin: Double, out: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """``partial[block]`` counts the points projected."""
    own = c * own_square(point, d)
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            partial[part] += coefficients(x, first, n, d, point, kind, c, margin, s)
            if kind == TRANSLATE:
                translation(n, own, c, margin, s, 0)
            for r in range(n):
                for k in range(0, d, LANES):
                    at = (first + r) * d + k
                    store(out, at, fma(s[A + r], wide(x, at), s[B + r] * wide(point, k)))


@kernel
def backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, x: Reals, point: Reals, kind: Int, c: Double,
    margin: Double, grad: Reals, gx: Reals, partial: Doubles, gpoint: Doubles,
) -> None:  # fmt: skip
    """``gx``; ``partial[block]`` is the gradient of ``c``, ``gpoint[block]`` that of the point."""
    own = c * own_square(point, d)
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            backward_strip(
                x, first, n, d, point, own, kind, c, margin, s, offset(grad, first * d), offset(gx, first * d), partial,
                part, gpoint, part * d,
            )  # fmt: skip
