"""Compiled work on a strip of up to 64 rows: activation, exponential, residual, and their gradients.

Each function alternates loops over rows and width (inner products and combinations, in the arrays' dtype) with loops
over the scalars of all rows at once (double precision, vectorised). The scalars live in one flat buffer ``w`` at fixed
distances, by which the compiler knows that they do not overlap. Rows are a multiple of eight long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hgde.kernels.compiled import compiled, inlined
from hgde.kernels.lanes import LANES, load, store, total, zeros
from hgde.kernels.scalars import tanh_ratio

STRIP = 64
(
    P, ZU, NU, B, RHO, T, T_SLOPE, ALPHA, DEN, F_Z, F_U, FACTOR,
    B0, B2, G01, G02, G12, F0, F1, F2, BOTTOM, ROOT,
    H0, H1, H2, SCALE, CUT, M0, M1, M2, M01, M02, M12, GC, GE0, GE1, GE2,
    GZ, GU, RADIAL, X, P2, NU2, PUSHED,
) = tuple(STRIP * n for n in range(44))  # fmt: skip
SLOTS = 44 * STRIP
ACTIVATION_CODES = {"identity": 0, "relu": 1, "leaky_relu": 2, "tanh": 3, "elu": 4}
LEAKY_SLOPE = 0.01


@inlined
def rounded(n: int) -> int:
    """``n`` brought up to a multiple of 16: a vectorised loop over scalars is left no rest to go through one by one.

    What lies beyond ``n`` in the buffers is stale and its results are never read.
    """
    return (n + 15) // 16 * 16


@compiled
def activate(u: Any, n: int, code: int) -> None:
    """Apply the activation to ``n`` rows in place."""
    kind = u.dtype.type
    if code == 0:
        return
    for r in range(n):
        for k in range(u.shape[1]):
            x = u[r, k]
            if code == 1:
                u[r, k] = max(x, kind(0))
            elif code == 2:
                u[r, k] = x if x > 0 else x * kind(LEAKY_SLOPE)
            elif code == 3:
                u[r, k] = np.tanh(x)
            else:
                u[r, k] = x if x > 0 else np.expm1(x)


@compiled
def activate_backward(u: Any, g: Any, n: int, code: int) -> None:
    """Multiply ``g`` by the activation's derivative, told from the activated values ``u``."""
    kind = u.dtype.type
    if code == 0:
        return
    for r in range(n):
        for k in range(u.shape[1]):
            x = u[r, k]
            if code == 1:
                g[r, k] = g[r, k] if x > 0 else kind(0)
            elif code == 2:
                g[r, k] *= kind(1) if x > 0 else kind(LEAKY_SLOPE)
            elif code == 3:
                g[r, k] *= 1 - x * x
            else:
                g[r, k] *= kind(1) if x > 0 else 1 + x


@inlined
def pull_back(x: Any, r: int, size: float, margin: float) -> float:
    """Scale row ``r`` to the limit if ``size = c|x_r|^2`` is beyond it; returns the factor."""
    if size <= (1 - margin) * (1 - margin):
        return 1.0
    factor = (1 - margin) / np.sqrt(size)
    for k in range(x.shape[1]):
        x[r, k] *= x.dtype.type(factor)
    return factor


@compiled
def exp_strip(z: Any, first: int, n: int, u: Any, c: float, margin: float, moved: Any, w: Any) -> None:
    """``moved_r = exp_{z_r}(u_r) = (alpha z + T u) / den`` for ``n`` rows from ``first`` on."""
    d = z.shape[1]
    kind = z.dtype.type
    for r in range(n):
        i = first + r
        p, zu, nu = zeros(z), zeros(z), zeros(z)
        for k in range(0, d, LANES):
            x, y = load(z, i, k), load(u, r, k)
            p += x * x
            zu += x * y
            nu += y * y
        w[P + r], w[ZU + r], w[NU + r] = total(p), total(zu), total(nu)
    for r in range(rounded(n)):
        b = max(1 - c * w[P + r], margin)
        inverse = 1 / b
        rho = c * w[NU + r] * inverse * inverse
        t, t_slope, _ = tanh_ratio(rho)
        squared = rho * t * t
        alpha = 1 + 2 * c * t * w[ZU + r] * inverse + squared
        den = alpha - b * squared
        w[B + r], w[RHO + r], w[T + r], w[T_SLOPE + r], w[ALPHA + r], w[DEN + r] = b, rho, t, t_slope, alpha, den
    for r in range(n):
        i = first + r
        if w[DEN + r] < 0.1:
            # A long step inwards from near the boundary: the sums above cancel, the same written with |z + e| does not.
            f, s = kind(w[T + r] / w[B + r]), kind(0)
            for k in range(d):
                e = z[i, k] + f * u[r, k]
                s += e * e
            w[ALPHA + r] = w[B + r] + c * s
            w[DEN + r] = w[B + r] * tanh_ratio(w[RHO + r])[2] + c * s
        f_z, f_u, m = kind(w[ALPHA + r] / w[DEN + r]), kind(w[T + r] / w[DEN + r]), zeros(z)
        for k in range(0, d, LANES):
            x = f_z * load(z, i, k) + f_u * load(u, r, k)
            store(moved, r, k, x)
            m += x * x
        w[FACTOR + r] = pull_back(moved, r, c * total(m), margin)


@compiled
def exp_strip_backward(
    z: Any, first: int, n: int, u: Any, c: float, moved: Any, gm: Any, gz: Any, gu: Any, w: Any
) -> None:
    """From ``gm`` at ``moved``: ``gz += ...``, ``gu = ...``, ``w[GC] += ...``; follows :func:`exp_strip`."""
    d = z.shape[1]
    kind = z.dtype.type
    for r in range(n):
        i = first + r
        along_z, along_u = zeros(z), zeros(z)
        for k in range(0, d, LANES):
            y = load(gm, r, k)
            along_z += y * load(z, i, k)
            along_u += y * load(u, r, k)
        a, b = total(along_z), total(along_u)
        w[GZ + r], w[GU + r], w[RADIAL + r] = a, b, 0
        if w[FACTOR + r] != 1:
            # moved = limit y / (sqrt(c)|y|): the radial part of the gradient is lost.
            size, g, mz, mu = 0.0, 0.0, 0.0, 0.0
            for k in range(d):
                size += moved[r, k] * moved[r, k]
                g += gm[r, k] * moved[r, k]
                mz += moved[r, k] * z[i, k]
                mu += moved[r, k] * u[r, k]
            radial, factor = g / size, w[FACTOR + r]
            w[GC + r] -= 0.5 * g / c
            w[RADIAL + r] = radial
            w[GZ + r], w[GU + r] = factor * (a - radial * mz), factor * (b - radial * mu)
    for r in range(rounded(n)):
        p, b, rho, t, alpha, zu = w[P + r], w[B + r], w[RHO + r], w[T + r], w[ALPHA + r], w[ZU + r]
        inverse, over = 1 / b, 1 / w[DEN + r]
        squared = rho * t * t
        g_alpha = w[GZ + r] * over
        g_den = -(alpha * w[GZ + r] + t * w[GU + r]) * over * over
        both, weighted = g_alpha + g_den, g_alpha + g_den * c * p
        g_t = w[GU + r] * over + both * 2 * c * zu * inverse + 2 * rho * t * weighted
        g_rho = weighted * t * t + g_t * w[T_SLOPE + r]
        g_b = -both * 2 * c * t * zu * inverse * inverse - 2 * g_rho * rho * inverse
        w[X + r] = both * 2 * c * t * inverse
        w[P2 + r] = 2 * c * (g_den * squared - g_b)
        w[NU2 + r] = 2 * g_rho * c * inverse * inverse
        w[GC + r] += both * 2 * t * zu * inverse + g_den * p * squared + g_rho * w[NU + r] * inverse * inverse - p * g_b
        w[F_Z + r], w[F_U + r] = w[FACTOR + r] * alpha * over, w[FACTOR + r] * t * over
    for r in range(n):
        i = first + r
        f_z, f_u, x = kind(w[F_Z + r]), kind(w[F_U + r]), kind(w[X + r])
        p2, nu2, cut = kind(w[P2 + r]), kind(w[NU2 + r]), kind(w[RADIAL + r])
        for k in range(0, d, LANES):
            point, vector = load(z, i, k), load(u, r, k)
            y = load(gm, r, k) - cut * load(moved, r, k)
            store(gz, i, k, load(gz, i, k) + f_z * y + x * vector + p2 * point)
            store(gu, r, k, f_u * y + x * point + nu2 * vector)


@compiled
def midpoint_scalars(
    z: Any, first: int, n: int, z0: Any, moved: Any, eta: Any, c: float, margin: float, w: Any
) -> None:
    """The coefficients of ``gyromidpoint({moved, z, z0}; eta) = F0 moved + F1 z + F2 z0``, after :func:`exp_strip`."""
    d = z.shape[1]
    kind = z.dtype.type
    s0, s1, s2 = kind(np.sign(eta[0])), kind(np.sign(eta[1])), kind(np.sign(eta[2]))
    for r in range(n):
        i = first + r
        p0, p2, g01, g02, g12 = zeros(z), zeros(z), zeros(z), zeros(z), zeros(z)
        for k in range(0, d, LANES):
            x, y, o = load(moved, r, k), load(z, i, k), load(z0, i, k)
            p0 += x * x
            p2 += o * o
            x, y, o = s0 * x, s1 * y, s2 * o
            e01, e02, e12 = x - y, x - o, y - o
            g01 += e01 * e01
            g02 += e02 * e02
            g12 += e12 * e12
        w[B0 + r], w[B2 + r] = total(p0), total(p2)
        w[G01 + r], w[G02 + r], w[G12 + r] = total(g01), total(g02), total(g12)
    e0, e1, e2 = eta[0], eta[1], eta[2]
    a0, a1, a2 = abs(e0), abs(e1), abs(e2)
    whole = a0 + a1 + a2
    for r in range(rounded(n)):
        b0, b2 = max(1 - c * w[B0 + r], margin), max(1 - c * w[B2 + r], margin)
        l0, l1, l2 = 1 / b0, 1 / w[B + r], 1 / b2
        r01, r02, r12 = w[G01 + r] * l0 * l1, w[G02 + r] * l0 * l2, w[G12 + r] * l1 * l2
        root = np.sqrt(whole * whole + 4 * c * (a0 * a1 * r01 + a0 * a2 * r02 + a1 * a2 * r12))
        bottom = 2 * (a0 * l0 + a1 * l1 + a2 * l2) - whole + root
        over = 2 / bottom
        w[F0 + r], w[F1 + r], w[F2 + r] = over * e0 * l0, over * e1 * l1, over * e2 * l2
        w[B0 + r], w[B2 + r], w[G01 + r], w[G02 + r], w[G12 + r] = b0, b2, r01, r02, r12
        w[BOTTOM + r], w[ROOT + r] = bottom, root


@compiled
def midpoint_strip(z: Any, first: int, n: int, z0: Any, moved: Any, c: float, margin: float, out: Any, w: Any) -> int:
    """Write the midpoints; returns how many had to be pulled back."""
    d = z.shape[1]
    kind = z.dtype.type
    count = 0
    still = 1 - 4 * np.finfo(z.dtype).eps
    for r in range(n):
        i = first + r
        f0, f1, f2, size = kind(w[F0 + r]), kind(w[F1 + r]), kind(w[F2 + r]), zeros(z)
        for k in range(0, d, LANES):
            x = f0 * load(moved, r, k) + f1 * load(z, i, k) + f2 * load(z0, i, k)
            store(out, i, k, x)
            size += x * x
        if pull_back(out, i, c * total(size), margin) < still:
            count += 1
    return count


@compiled
def midpoint_strip_backward(
    z: Any, first: int, n: int, z0: Any, moved: Any, eta: Any, c: float, margin: float,
    grad: Any, gm: Any, gz: Any, gz0: Any, w: Any,
) -> None:  # fmt: skip
    """From ``grad`` at the midpoints: ``gm = ...``, ``gz = ...``, ``gz0 += ...``; scalars ``w[GC]``, ``w[GE0..2]``."""
    d = z.shape[1]
    kind = z.dtype.type
    for r in range(n):
        i = first + r
        f0, f1, f2 = kind(w[F0 + r]), kind(w[F1 + r]), kind(w[F2 + r])
        sum0, sum1, sum2, squares = zeros(z), zeros(z), zeros(z), zeros(z)
        for k in range(0, d, LANES):
            x, y, o, g = load(moved, r, k), load(z, i, k), load(z0, i, k), load(grad, i, k)
            middle = f0 * x + f1 * y + f2 * o
            squares += middle * middle
            sum0 += g * x
            sum1 += g * y
            sum2 += g * o
        h0, h1, h2, size = total(sum0), total(sum1), total(sum2), total(squares)
        w[H0 + r], w[H1 + r], w[H2 + r], w[SCALE + r], w[CUT + r], w[GC + r] = h0, h1, h2, 1, 0, 0
        if c * size > (1 - margin) * (1 - margin):
            # out = limit y / (sqrt(c)|y|): the radial part of the gradient is lost.
            scale = (1 - margin) / np.sqrt(c * size)
            along = f0 * h0 + f1 * h1 + f2 * h2
            cut = along / size
            y0, y1, y2 = 0.0, 0.0, 0.0
            for k in range(d):
                value = f0 * moved[r, k] + f1 * z[i, k] + f2 * z0[i, k]
                y0 += value * moved[r, k]
                y1 += value * z[i, k]
                y2 += value * z0[i, k]
            w[GC + r] = -0.5 * scale * along / c
            w[SCALE + r], w[CUT + r] = scale, cut
            w[H0 + r], w[H1 + r], w[H2 + r] = scale * (h0 - cut * y0), scale * (h1 - cut * y1), scale * (h2 - cut * y2)
    e0, e1, e2 = eta[0], eta[1], eta[2]
    a0, a1, a2 = abs(e0), abs(e1), abs(e2)
    s0, s1, s2 = np.sign(e0), np.sign(e1), np.sign(e2)
    whole = a0 + a1 + a2
    for r in range(rounded(n)):
        l0, l1, l2, r01, r02, r12 = 1 / w[B0 + r], 1 / w[B + r], 1 / w[B2 + r], w[G01 + r], w[G02 + r], w[G12 + r]
        h0, h1, h2, over = w[H0 + r], w[H1 + r], w[H2 + r], 1 / w[BOTTOM + r]
        g_bottom = -(w[F0 + r] * h0 + w[F1 + r] * h1 + w[F2 + r] * h2) * over
        g_q = g_bottom / (2 * w[ROOT + r])
        four = 4 * c * g_q
        q0, q1, q2 = a1 * r01 + a2 * r02, a0 * r01 + a2 * r12, a0 * r02 + a1 * r12
        gb0 = -l0 * (2 * l0 * (e0 * h0 * over + a0 * g_bottom) + four * a0 * q0)
        gb1 = -l1 * (2 * l1 * (e1 * h1 * over + a1 * g_bottom) + four * a1 * q1)
        gb2 = -l2 * (2 * l2 * (e2 * h2 * over + a2 * g_bottom) + four * a2 * q2)
        w[GC + r] += 2 * g_q * (a0 * q0 + a1 * q1 + a2 * q2)
        w[GC + r] -= ((1 - w[B0 + r]) * gb0 + (1 - w[B + r]) * gb1 + (1 - w[B2 + r]) * gb2) / c
        w[GE0 + r] = 2 * l0 * h0 * over + s0 * (g_bottom * (2 * l0 - 1) + g_q * 2 * whole + four * q0)
        w[GE1 + r] = 2 * l1 * h1 * over + s1 * (g_bottom * (2 * l1 - 1) + g_q * 2 * whole + four * q1)
        w[GE2 + r] = 2 * l2 * h2 * over + s2 * (g_bottom * (2 * l2 - 1) + g_q * 2 * whole + four * q2)
        w01, w02, w12 = 2 * four * a0 * a1 * l0 * l1, 2 * four * a0 * a2 * l0 * l2, 2 * four * a1 * a2 * l1 * l2
        w[M0 + r], w[M1 + r], w[M2 + r] = w01 + w02 - 2 * c * gb0, w01 + w12 - 2 * c * gb1, w02 + w12 - 2 * c * gb2
        w[M01 + r], w[M02 + r], w[M12 + r] = -w01 * s0 * s1, -w02 * s0 * s2, -w12 * s1 * s2
    for r in range(n):
        i = first + r
        t0, t1, t2 = kind(w[SCALE + r] * w[F0 + r]), kind(w[SCALE + r] * w[F1 + r]), kind(w[SCALE + r] * w[F2 + r])
        k0, k1, k2 = kind(w[CUT + r] * w[F0 + r]), kind(w[CUT + r] * w[F1 + r]), kind(w[CUT + r] * w[F2 + r])
        m0, m1, m2 = kind(w[M0 + r]), kind(w[M1 + r]), kind(w[M2 + r])
        m01, m02, m12 = kind(w[M01 + r]), kind(w[M02 + r]), kind(w[M12 + r])
        for k in range(0, d, LANES):
            x, y, o = load(moved, r, k), load(z, i, k), load(z0, i, k)
            h = load(grad, i, k) - (k0 * x + k1 * y + k2 * o)
            store(gm, r, k, t0 * h + m0 * x + m01 * y + m02 * o)
            store(gz, i, k, t1 * h + m01 * x + m1 * y + m12 * o)
            store(gz0, i, k, load(gz0, i, k) + t2 * h + m02 * x + m12 * y + m2 * o)
