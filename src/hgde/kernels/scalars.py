"""Compiled building blocks of the fused kernels: scalar functions of one pair, and the work of one row.

Inner loops over the width run in the arrays' dtype and vectorise; scalars are double precision whatever that dtype is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# No assumption that NaN and infinity are absent: a diverging run must show as one.
FAST = {"reassoc", "contract", "arcp", "nsz"}
ACTIVATION_CODES = {"identity": 0, "relu": 1, "leaky_relu": 2, "tanh": 3, "elu": 4}
LEAKY_SLOPE = 0.01


@intrinsic  # type: ignore[misc]
def prefetch(typingctx: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of ``array[row, column]`` before it is needed: neighbours' rows lie anywhere in memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        value = context.make_array(array_type)(context, builder, args[0])
        place = cgutils.get_item_pointer(context, builder, array_type, value, args[1:], wraparound=False)
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        pointer = builder.bitcast(place, cgutils.voidptr_t)
        builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), codegen


@njit(nogil=True, cache=True, fastmath=FAST, inline="never")
def artanh_ratio(w: float, rest: float) -> float:
    """``artanh(sqrt w) / sqrt w``; ``rest = 1 - w``."""
    if w < 1e-2:
        return 1 + w * (
            1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * (1 / 11 + w * (1 / 13 + w * (1 / 15 + w / 17))))))
        )
    root = np.sqrt(w)
    return np.log((1 + root) / np.sqrt(rest)) / root


@njit(nogil=True, cache=True, fastmath=FAST)
def artanh_ratio_slope(w: float, rest: float, ratio: float) -> float:
    """Derivative of :func:`artanh_ratio` in ``w``, given its value."""
    if w < 1e-2:
        return 1 / 3 + w * (
            2 / 5 + w * (3 / 7 + w * (4 / 9 + w * (5 / 11 + w * (6 / 13 + w * (7 / 15 + w * (8 / 17 + w * 9 / 19))))))
        )
    return (1 / rest - ratio) / (2 * w)


@njit(nogil=True, cache=True, fastmath=FAST)
def tanh_ratio(rho: float) -> tuple[float, float]:
    """``T = tanh(sqrt rho) / sqrt rho`` and its derivative in ``rho``."""
    if rho < 1e-2:
        value = 1 - rho * (
            1 / 3
            - rho * (2 / 15 - rho * (17 / 315 - rho * (62 / 2835 - rho * (1382 / 155925 - rho * 21844 / 6081075))))
        )
        slope = -1 / 3 + rho * (
            4 / 15
            - rho * (51 / 315 - rho * (248 / 2835 - rho * (6910 / 155925 - rho * (131064 / 6081075 - rho * 0.01019))))
        )
        return value, slope
    root = np.sqrt(rho)
    tanh = np.tanh(root)
    value = tanh / root
    return value, ((1 - tanh) * (1 + tanh) - value) / (2 * rho)


@njit(nogil=True, cache=True, fastmath=FAST)
def activate(u: Any, code: int) -> None:
    """Apply the activation in place."""
    d = u.shape[0]
    if code == 1:
        for k in range(d):
            if u[k] < 0:
                u[k] = 0
    elif code == 2:
        for k in range(d):
            if u[k] < 0:
                u[k] *= u.dtype.type(LEAKY_SLOPE)
    elif code == 3:
        for k in range(d):
            u[k] = np.tanh(u[k])
    elif code == 4:
        for k in range(d):
            if u[k] < 0:
                u[k] = np.expm1(u[k])


@njit(nogil=True, cache=True, fastmath=FAST)
def activate_backward(u: Any, g: Any, code: int) -> None:
    """Multiply ``g`` by the activation's derivative, told from the activated values ``u``."""
    d = u.shape[0]
    if code == 1:
        for k in range(d):
            if u[k] <= 0:
                g[k] = 0
    elif code == 2:
        for k in range(d):
            if u[k] < 0:
                g[k] *= u.dtype.type(LEAKY_SLOPE)
    elif code == 3:
        for k in range(d):
            g[k] *= 1 - u[k] * u[k]
    elif code == 4:
        for k in range(d):
            if u[k] < 0:
                g[k] *= 1 + u[k]


@njit(nogil=True, cache=True, fastmath=FAST)
def exp_scalars(z: Any, i: int, u: Any, c: float, margin: float) -> tuple[float, ...]:
    """What ``exp_{z_i}(u) = (alpha z_i + T u) / den`` is made of: ``(p, <z,u>, |u|^2, B, rho, T, T', alpha, den)``."""
    d = z.shape[1]
    kind = z.dtype.type
    p_, zu_, nu_ = kind(0), kind(0), kind(0)
    for k in range(d):
        p_ += z[i, k] * z[i, k]
        zu_ += z[i, k] * u[k]
        nu_ += u[k] * u[k]
    p, zu, nu = float(p_), float(zu_), float(nu_)
    b = max(1 - c * p, margin)
    rho = c * nu / (b * b)
    t, t_slope = tanh_ratio(rho)
    squared = rho * t * t
    alpha = 1 + 2 * c * t * zu / b + squared
    den = alpha - b * squared
    if den < 0.1:
        # A long step inwards from near the boundary: the sums above cancel, the same written with |z + e| does not.
        f, s_ = kind(t / b), kind(0)
        for k in range(d):
            e = z[i, k] + f * u[k]
            s_ += e * e
        decay = np.exp(-2 * np.sqrt(rho))
        alpha = b + c * float(s_)
        den = b * 4 * decay / ((1 + decay) * (1 + decay)) + c * float(s_)
    return p, zu, nu, b, rho, t, t_slope, alpha, den


@njit(nogil=True, cache=True, fastmath=FAST)
def exp_row(z: Any, i: int, u: Any, c: float, margin: float, moved: Any) -> float:
    """``moved = exp_{z_i}(u)``; returns the factor by which the point was pulled back (1 if it was not)."""
    d = z.shape[1]
    kind = z.dtype.type
    _, _, _, _, _, t, _, alpha, den = exp_scalars(z, i, u, c, margin)
    f_z, f_u = kind(alpha / den), kind(t / den)
    m_ = kind(0)
    for k in range(d):
        value = f_z * z[i, k] + f_u * u[k]
        moved[k] = value
        m_ += value * value
    size = c * float(m_)
    if size > (1 - margin) * (1 - margin):
        factor = (1 - margin) / np.sqrt(size)
        for k in range(d):
            moved[k] *= kind(factor)
        return factor
    return 1.0


@njit(nogil=True, cache=True, fastmath=FAST)
def exp_row_backward(
    z: Any, i: int, u: Any, c: float, margin: float, factor: float, moved: Any, gm: Any, gz: Any, gu: Any
) -> float:
    """From ``gm``, the gradient at ``moved = exp_{z_i}(u)``: ``gz += ...``, ``gu = ...``; returns that of ``c``."""
    d = z.shape[1]
    kind = z.dtype.type
    p, zu, nu, b, rho, t, t_slope, alpha, den = exp_scalars(z, i, u, c, margin)
    gz_, gu_ = kind(0), kind(0)
    for k in range(d):
        gz_ += gm[k] * z[i, k]
        gu_ += gm[k] * u[k]
    g_z, g_u = float(gz_), float(gu_)
    grad_c, radial = 0.0, 0.0
    if factor != 1.0:
        # moved = limit * y / (sqrt(c)|y|): the radial part of the gradient is lost.
        size_, gm_, mz_, mu_ = kind(0), kind(0), kind(0), kind(0)
        for k in range(d):
            size_ += moved[k] * moved[k]
            gm_ += gm[k] * moved[k]
            mz_ += moved[k] * z[i, k]
            mu_ += moved[k] * u[k]
        grad_c -= 0.5 * gm_ / c
        radial = float(gm_) / float(size_)
        g_z, g_u = factor * (g_z - radial * mz_), factor * (g_u - radial * mu_)
    squared = rho * t * t
    g_den = -(alpha * g_z + t * g_u) / (den * den)
    g_alpha = g_z / den
    both = g_alpha + g_den
    weighted = g_alpha + g_den * c * p
    g_t = g_u / den + both * 2 * c * zu / b + 2 * rho * t * weighted
    g_x = both * 2 * c * t / b
    g_rho = weighted * t * t + g_t * t_slope
    g_b = -both * 2 * c * t * zu / (b * b) - 2 * g_rho * rho / b
    g_p = g_den * c * squared - c * g_b
    g_nu = g_rho * c / (b * b)
    grad_c += both * 2 * t * zu / b + g_den * p * squared + g_rho * nu / (b * b) - p * g_b
    in_z, in_u, cut = kind(factor * alpha / den), kind(factor * t / den), kind(radial)
    x_, p2, nu2 = kind(g_x), kind(2 * g_p), kind(2 * g_nu)
    for k in range(d):
        g = gm[k] - cut * moved[k]
        gz[k] += in_z * g + x_ * u[k] + p2 * z[i, k]
        gu[k] = in_u * g + x_ * z[i, k] + nu2 * u[k]
    return grad_c


@njit(nogil=True, cache=True, fastmath=FAST)
def midpoint_sums(z: Any, i: int, z0: Any, moved: Any, eta: Any, c: float, margin: float) -> tuple[Any, ...]:
    """Inner products of the residual: ``(B_0, B_1, B_2, gaps 01, 02, 12)`` of ``moved, z_i, z0_i``."""
    d = z.shape[1]
    kind = z.dtype.type
    s0, s1, s2 = kind(np.sign(eta[0])), kind(np.sign(eta[1])), kind(np.sign(eta[2]))
    p0, p1, p2, g01, g02, g12 = kind(0), kind(0), kind(0), kind(0), kind(0), kind(0)
    for k in range(d):
        x, y, o = moved[k], z[i, k], z0[i, k]
        p0 += x * x
        p1 += y * y
        p2 += o * o
        e01, e02, e12 = s0 * x - s1 * y, s0 * x - s2 * o, s1 * y - s2 * o
        g01 += e01 * e01
        g02 += e02 * e02
        g12 += e12 * e12
    b0, b1, b2 = max(1 - c * float(p0), margin), max(1 - c * float(p1), margin), max(1 - c * float(p2), margin)
    return b0, b1, b2, float(g01), float(g02), float(g12)


@njit(nogil=True, cache=True, fastmath=FAST)
def midpoint_row(z: Any, i: int, z0: Any, moved: Any, eta: Any, c: float, margin: float, out: Any) -> float:
    """``out_i = gyromidpoint({moved, z_i, z0_i}; eta)``; returns the factor by which it was pulled back."""
    d = z.shape[1]
    kind = z.dtype.type
    b0, b1, b2, g01, g02, g12 = midpoint_sums(z, i, z0, moved, eta, c, margin)
    a0, a1, a2 = abs(eta[0]), abs(eta[1]), abs(eta[2])
    total = a0 + a1 + a2
    q = total * total + 4 * c * (a0 * a1 * g01 / (b0 * b1) + a0 * a2 * g02 / (b0 * b2) + a1 * a2 * g12 / (b1 * b2))
    bottom = a0 * (2 / b0 - 1) + a1 * (2 / b1 - 1) + a2 * (2 / b2 - 1) + np.sqrt(q)
    f0, f1, f2 = kind(2 * eta[0] / b0 / bottom), kind(2 * eta[1] / b1 / bottom), kind(2 * eta[2] / b2 / bottom)
    n_ = kind(0)
    for k in range(d):
        value = f0 * moved[k] + f1 * z[i, k] + f2 * z0[i, k]
        out[i, k] = value
        n_ += value * value
    size = c * float(n_)
    if size > (1 - margin) * (1 - margin):
        factor = (1 - margin) / np.sqrt(size)
        for k in range(d):
            out[i, k] *= kind(factor)
        return factor
    return 1.0


@njit(nogil=True, cache=True, fastmath=FAST)
def midpoint_row_backward(
    z: Any,
    i: int,
    z0: Any,
    moved: Any,
    eta: Any,
    c: float,
    margin: float,
    g: Any,
    gm: Any,
    gz: Any,
    gz0: Any,
    partial: Any,
) -> None:
    """From ``g``, the gradient at the midpoint: ``gm = ...``, ``gz = ...``, ``gz0_i += ...``.

    ``partial[0]`` receives the gradient of ``c``, ``partial[1:4]`` that of ``eta``.
    """
    d = z.shape[1]
    kind = z.dtype.type
    b0, b1, b2, g01, g02, g12 = midpoint_sums(z, i, z0, moved, eta, c, margin)
    a0, a1, a2 = abs(eta[0]), abs(eta[1]), abs(eta[2])
    s0, s1, s2 = np.sign(eta[0]), np.sign(eta[1]), np.sign(eta[2])
    l0, l1, l2 = 2 / b0, 2 / b1, 2 / b2
    total = a0 + a1 + a2
    r01, r02, r12 = g01 / (b0 * b1), g02 / (b0 * b2), g12 / (b1 * b2)
    root = np.sqrt(total * total + 4 * c * (a0 * a1 * r01 + a0 * a2 * r02 + a1 * a2 * r12))
    bottom = a0 * (l0 - 1) + a1 * (l1 - 1) + a2 * (l2 - 1) + root
    h0_, h1_, h2_, n_ = kind(0), kind(0), kind(0), kind(0)
    f0, f1, f2 = kind(eta[0] * l0 / bottom), kind(eta[1] * l1 / bottom), kind(eta[2] * l2 / bottom)
    for k in range(d):
        value = f0 * moved[k] + f1 * z[i, k] + f2 * z0[i, k]
        n_ += value * value
        h0_ += g[k] * moved[k]
        h1_ += g[k] * z[i, k]
        h2_ += g[k] * z0[i, k]
    h0, h1, h2 = float(h0_), float(h1_), float(h2_)
    h_out = f0 * h0 + f1 * h1 + f2 * h2
    scale, cut = 1.0, 0.0
    size = c * float(n_)
    if size > (1 - margin) * (1 - margin):
        # out = limit * y / (sqrt(c)|y|): the radial part of the gradient is lost.
        scale = (1 - margin) / np.sqrt(size)
        cut = h_out / float(n_)
        partial[0] -= 0.5 * scale * h_out / c
        y0_, y1_, y2_ = kind(0), kind(0), kind(0)
        for k in range(d):
            value = f0 * moved[k] + f1 * z[i, k] + f2 * z0[i, k]
            y0_ += value * moved[k]
            y1_ += value * z[i, k]
            y2_ += value * z0[i, k]
        h0, h1, h2 = scale * (h0 - cut * y0_), scale * (h1 - cut * y1_), scale * (h2 - cut * y2_)
        h_out = 0.0
    g_bottom = -h_out / bottom
    g_q = g_bottom / (2 * root)
    four = 4 * c * g_q
    gl0 = eta[0] * h0 / bottom + a0 * g_bottom
    gl1 = eta[1] * h1 / bottom + a1 * g_bottom
    gl2 = eta[2] * h2 / bottom + a2 * g_bottom
    gb0 = -(gl0 * l0 + four * a0 * (a1 * r01 + a2 * r02)) / b0
    gb1 = -(gl1 * l1 + four * a1 * (a0 * r01 + a2 * r12)) / b1
    gb2 = -(gl2 * l2 + four * a2 * (a0 * r02 + a1 * r12)) / b2
    partial[0] += 4 * g_q * (a0 * a1 * r01 + a0 * a2 * r02 + a1 * a2 * r12)
    partial[0] -= ((1 - b0) * gb0 + (1 - b1) * gb1 + (1 - b2) * gb2) / c
    partial[1] += l0 * h0 / bottom + s0 * (g_bottom * (l0 - 1) + g_q * (2 * total + 4 * c * (a1 * r01 + a2 * r02)))
    partial[2] += l1 * h1 / bottom + s1 * (g_bottom * (l1 - 1) + g_q * (2 * total + 4 * c * (a0 * r01 + a2 * r12)))
    partial[3] += l2 * h2 / bottom + s2 * (g_bottom * (l2 - 1) + g_q * (2 * total + 4 * c * (a0 * r02 + a1 * r12)))
    w01, w02, w12 = 2 * four * a0 * a1 / (b0 * b1), 2 * four * a0 * a2 / (b0 * b2), 2 * four * a1 * a2 / (b1 * b2)
    m0, m1, m2 = kind(w01 + w02 - 2 * c * gb0), kind(w01 + w12 - 2 * c * gb1), kind(w02 + w12 - 2 * c * gb2)
    m01, m02, m12 = kind(-w01 * s0 * s1), kind(-w02 * s0 * s2), kind(-w12 * s1 * s2)
    t0, t1, t2 = kind(scale) * f0, kind(scale) * f1, kind(scale) * f2
    k0, k1, k2 = kind(cut) * f0, kind(cut) * f1, kind(cut) * f2
    for k in range(d):
        x, y, o = moved[k], z[i, k], z0[i, k]
        h = g[k] - (k0 * x + k1 * y + k2 * o)
        gm[k] = t0 * h + m0 * x + m01 * y + m02 * o
        gz[k] = t1 * h + m01 * x + m1 * y + m12 * o
        gz0[i, k] += t2 * h + m02 * x + m12 * y + m2 * o
