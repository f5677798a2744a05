"""Compiled passes over the rows of a graph: one step of diffusion forward, and its gradient in two passes.

A pass works on a range of *blocks* of rows. Blocks depend on the graph alone, each writes its own rows and its own line
of ``partial``, and those lines are added in order afterwards: the result does not depend on the number of threads.

``values`` is given for one weight per edge, ``table, index, scale`` for one per edge and channel; the absent ones are
``None`` and compiled away. ``mode`` is 0 for the tangent sum alone, 1 for the exponential of it, 2 with the residual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hgde.kernels.scalars import (
    FAST,
    activate,
    activate_backward,
    artanh_ratio,
    artanh_ratio_slope,
    exp_row,
    exp_row_backward,
    midpoint_row,
    midpoint_row_backward,
    prefetch,
)

AHEAD = 6


@njit(nogil=True, cache=True, fastmath=FAST)
def gather_row(
    i: int,
    indptr: Any,
    indices: Any,
    z: Any,
    values: Any,
    table: Any,
    index: Any,
    c: float,
    margin: float,
    pull: Any,
    push: Any,
) -> None:
    """``pull = sum_j a_ij log_{z_i}(z_j)``, for channel weights without the row's scale."""
    d = z.shape[1]
    kind = z.dtype.type
    line = 64 // z.itemsize
    p_ = kind(0)
    for k in range(d):
        p_ += z[i, k] * z[i, k]
        pull[k] = 0
        push[k] = 0
    b = max(1 - c * float(p_), margin)
    pushed = 0.0
    last = indices.shape[0] - 1
    for e in range(indptr[i], indptr[i + 1]):
        ahead = indices[min(e + AHEAD, last)]
        for k in range(0, d, line):
            prefetch(z, ahead, k)
        j = indices[e]
        delta_, q_ = kind(0), kind(0)
        for k in range(d):
            y = z[j, k]
            t = y - z[i, k]
            delta_ += t * t
            q_ += y * y
        spread = c * float(delta_)
        product = b * max(1 - c * float(q_), margin)
        den = product + spread
        s = b * artanh_ratio(spread / den, product / den) / den
        if values is not None:
            s *= values[e]
            pushed += s * spread
            s_ = kind(s)
            for k in range(d):
                pull[k] += s_ * (z[j, k] - z[i, k])
        if table is not None:
            r = index[e]
            s_, f_ = kind(s), kind(s * spread)
            for k in range(d):
                a = table[r, k]
                pull[k] += s_ * a * (z[j, k] - z[i, k])
                push[k] += f_ * a
    b_ = kind(b)
    if values is not None:
        pushed_ = kind(pushed)
        for k in range(d):
            pull[k] = b_ * pull[k] - pushed_ * z[i, k]
    if table is not None:
        for k in range(d):
            pull[k] = b_ * pull[k] - push[k] * z[i, k]


@njit(nogil=True, cache=True, fastmath=FAST)
def forward_blocks(
    first: int,
    last: int,
    blocks: Any,
    indptr: Any,
    indices: Any,
    z: Any,
    values: Any,
    table: Any,
    index: Any,
    scale: Any,
    c: float,
    margin: float,
    mode: int,
    code: int,
    z0: Any,
    eta: Any,
    out: Any,
    partial: Any,
) -> None:
    """``out = F(z)`` for the rows of blocks ``first .. last - 1``; ``partial[block, 4]`` counts pull-backs."""
    d = z.shape[1]
    v = np.empty(d, z.dtype)
    push = np.empty(d, z.dtype)
    moved = np.empty(d, z.dtype)
    still = 1 - 4 * np.finfo(z.dtype).eps
    for block in range(first, last):
        count = 0
        for i in range(blocks[block], blocks[block + 1]):
            gather_row(i, indptr, indices, z, values, table, index, c, margin, v, push)
            if scale is not None:
                for k in range(d):
                    v[k] *= scale[i, k]
            if mode == 0:
                for k in range(d):
                    out[i, k] = v[k]
                continue
            activate(v, code)
            if exp_row(z, i, v, c, margin, moved) < still:
                count += 1
            if mode == 1:
                for k in range(d):
                    out[i, k] = moved[k]
            elif midpoint_row(z, i, z0, moved, eta, c, margin, out) < still:
                count += 1
        partial[block, 4] += count


@njit(nogil=True, cache=True, fastmath=FAST)
def backward_rows(
    first: int,
    last: int,
    blocks: Any,
    indptr: Any,
    indices: Any,
    z: Any,
    values: Any,
    table: Any,
    index: Any,
    scale: Any,
    c: float,
    margin: float,
    mode: int,
    code: int,
    z0: Any,
    eta: Any,
    grad: Any,
    packed: Any,
    gz: Any,
    gz0: Any,
    gscale: Any,
    partial: Any,
) -> None:
    """First pass: work out ``v`` again and bring the gradient of ``F`` back to it, row by row.

    Writes ``packed_i = [z_i, gradient at the (unscaled) sum]``, for the second pass to find side by side, ``gz`` (what
    reaches ``z_i`` past the sum), ``gz0 += ...``, ``gscale += ...`` and the lines of ``partial``: ``c``, then ``eta``.
    """
    d = z.shape[1]
    v = np.empty(d, z.dtype)
    push = np.empty(d, z.dtype)
    moved = np.empty(d, z.dtype)
    summed = np.empty(d, z.dtype)
    gm = np.empty(d, z.dtype)
    gu = np.empty(d, z.dtype)
    direct = np.empty(d, z.dtype)
    for block in range(first, last):
        for i in range(blocks[block], blocks[block + 1]):
            if mode != 0 or scale is not None:
                gather_row(i, indptr, indices, z, values, table, index, c, margin, v, push)
            if scale is not None:
                for k in range(d):
                    summed[k] = v[k]
                    v[k] *= scale[i, k]
            for k in range(d):
                gm[k] = grad[i, k]
                direct[k] = 0
            if mode == 0:
                for k in range(d):
                    gu[k] = gm[k]
            else:
                activate(v, code)
                factor = exp_row(z, i, v, c, margin, moved)
                if mode == 2:
                    for k in range(d):
                        push[k] = gm[k]
                    midpoint_row_backward(z, i, z0, moved, eta, c, margin, push, gm, direct, gz0, partial[block])
                partial[block, 0] += exp_row_backward(z, i, v, c, margin, factor, moved, gm, direct, gu)
                activate_backward(v, gu, code)
            if scale is not None:
                for k in range(d):
                    gscale[i, k] += gu[k] * summed[k]
                    gu[k] *= scale[i, k]
            for k in range(d):
                packed[i, k] = z[i, k]
                packed[i, d + k] = gu[k]
                gz[i, k] = direct[k]


@njit(nogil=True, cache=True, fastmath=FAST)
def pair_terms(
    b_x: float, b_y: float, spread: float, ratio: float, slope: float, den: float, t1: float, t2: float, c: float
) -> tuple[float, float, float, float, float]:
    """Derivatives of ``f = <g, log_x(y)>`` for one pair, ``t1 = <g, y - x>``, ``t2 = <g, x>``, ``spread = c|x - y|^2``.

    Returns ``(f, s, df/d delta, df/dB_x, df/dB_y)`` with ``log_x(y) = s (B_x (y - x) - spread x)``.
    """
    s = b_x * ratio / den
    h = b_x * t1 - spread * t2
    f_w = h * b_x * slope / den
    f_den = -(h * s + f_w * spread / den) / den
    f_delta = c * (-s * t2 + f_w / den + f_den)
    f_x = s * t1 + h * ratio / den + f_den * b_y
    return h * s, s, f_delta, f_x, f_den * b_x


@njit(nogil=True, cache=True, fastmath=FAST)
def backward_edges(
    first: int,
    last: int,
    blocks: Any,
    group: int,
    indptr: Any,
    neighbours: Any,
    in_edge: Any,
    out_edge: Any,
    packed: Any,
    values: Any,
    table: Any,
    index: Any,
    c: float,
    margin: float,
    gz: Any,
    gvalues: Any,
    gtable: Any,
    partial: Any,
) -> None:
    """Second pass: ``gz_i += ...`` from every edge that arrives at ``i`` or leaves it, in one visit per neighbour.

    ``in_edge, out_edge`` are the edge's place among the graph's edges in either direction, -1 where there is none.
    The distance, and with it every transcendental function, is shared by the two directions.
    """
    d = packed.shape[1] // 2
    kind = packed.dtype.type
    line = 64 // packed.itemsize
    acc = np.empty(d, packed.dtype)
    own = np.empty(d, packed.dtype)
    end = neighbours.shape[0] - 1
    for block in range(first, last):
        grad_c = 0.0
        for i in range(blocks[block], blocks[block + 1]):
            p_, zg_ = kind(0), kind(0)
            for k in range(d):
                p_ += packed[i, k] * packed[i, k]
                zg_ += packed[i, k] * packed[i, d + k]
                acc[k] = 0
                own[k] = 0
            p, t2_in = float(p_), float(zg_)
            b_i = max(1 - c * p, margin)
            to_g, to_z = 0.0, 0.0
            for e in range(indptr[i], indptr[i + 1]):
                ahead = neighbours[min(e + AHEAD, end)]
                for k in range(0, 2 * d, line):
                    prefetch(packed, ahead, k)
                j, here, there = neighbours[e], in_edge[e], out_edge[e]
                delta_, q_ = kind(0), kind(0)
                ge_in, ge_out, gx_in, gx_out = kind(0), kind(0), kind(0), kind(0)
                row_in, row_out = 0, 0
                if values is not None:
                    for k in range(d):
                        y, g = packed[j, k], packed[j, d + k]
                        t = y - packed[i, k]
                        delta_ += t * t
                        q_ += y * y
                        ge_in += packed[i, d + k] * t
                        ge_out += g * t
                        gx_out += g * y
                if table is not None:
                    row_in = index[here] if here >= 0 else 0
                    row_out = index[there] if there >= 0 else 0
                    for k in range(d):
                        y, x = packed[j, k], packed[i, k]
                        g = packed[j, d + k] * table[row_out, k]
                        h = packed[i, d + k] * table[row_in, k]
                        t = y - x
                        delta_ += t * t
                        q_ += y * y
                        ge_in += h * t
                        gx_in += h * x
                        ge_out += g * t
                        gx_out += g * y
                    t2_in = float(gx_in)
                delta, q = float(delta_), float(q_)
                spread = c * delta
                b_j = max(1 - c * q, margin)
                den = b_i * b_j + spread
                w, rest = spread / den, b_i * b_j / den
                ratio = artanh_ratio(w, rest)
                slope = artanh_ratio_slope(w, rest, ratio)
                along, to_neighbour = 0.0, 0.0
                if here >= 0:
                    a = 1.0
                    if values is not None:
                        a = values[here]
                    f, s, f_delta, f_x, f_y = pair_terms(b_i, b_j, spread, ratio, slope, den, float(ge_in), t2_in, c)
                    if values is not None:
                        gvalues[here] += kind(f)
                    along -= 2 * a * f_delta
                    to_z -= 2 * c * a * f_x
                    if values is not None:
                        to_g -= a * s * (b_i + spread)
                    if table is not None:
                        w_own, s_e, s_x = kind(-s * (b_i + spread)), kind(s * b_i), kind(s * spread)
                        for k in range(d):
                            own[k] += w_own * table[row_in, k]
                            gtable[block // group, row_in, k] += packed[i, d + k] * (
                                s_e * (packed[j, k] - packed[i, k]) - s_x * packed[i, k]
                            )
                    grad_c += a * (f_delta * delta / c - f_x * p - f_y * q)
                if there >= 0:
                    a = 1.0
                    if values is not None:
                        a = values[there]
                    f, s, f_delta, f_x, f_y = pair_terms(
                        b_j, b_i, spread, ratio, slope, den, -float(ge_out), float(gx_out), c
                    )
                    along -= 2 * a * f_delta
                    to_z -= 2 * c * a * f_y
                    to_neighbour = a * s * b_j
                along_, to_neighbour_ = kind(along), kind(to_neighbour)
                if values is not None:
                    for k in range(d):
                        acc[k] += along_ * (packed[j, k] - packed[i, k]) + to_neighbour_ * packed[j, d + k]
                if table is not None:
                    for k in range(d):
                        acc[k] += (
                            along_ * (packed[j, k] - packed[i, k])
                            + to_neighbour_ * packed[j, d + k] * table[row_out, k]
                        )
            to_g_, to_z_ = kind(to_g), kind(to_z)
            for k in range(d):
                gz[i, k] += acc[k] + (to_g_ + own[k]) * packed[i, d + k] + to_z_ * packed[i, k]
        partial[block, 0] += grad_c


@njit(nogil=True, cache=True, fastmath=FAST)
def advance_blocks(
    first: int,
    last: int,
    blocks: Any,
    z: Any,
    v: Any,
    c: float,
    margin: float,
    mode: int,
    code: int,
    z0: Any,
    eta: Any,
    out: Any,
    partial: Any,
) -> None:
    """``out = F`` from tangent vectors already at hand; ``mode`` 1 or 2."""
    d = z.shape[1]
    u = np.empty(d, z.dtype)
    moved = np.empty(d, z.dtype)
    still = 1 - 4 * np.finfo(z.dtype).eps
    for block in range(first, last):
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(d):
                u[k] = v[i, k]
            activate(u, code)
            if exp_row(z, i, u, c, margin, moved) < still:
                partial[block, 4] += 1
            if mode == 1:
                for k in range(d):
                    out[i, k] = moved[k]
            elif midpoint_row(z, i, z0, moved, eta, c, margin, out) < still:
                partial[block, 4] += 1


@njit(nogil=True, cache=True, fastmath=FAST)
def advance_blocks_backward(
    first: int,
    last: int,
    blocks: Any,
    z: Any,
    v: Any,
    c: float,
    margin: float,
    mode: int,
    code: int,
    z0: Any,
    eta: Any,
    grad: Any,
    gz: Any,
    gv: Any,
    gz0: Any,
    partial: Any,
) -> None:
    d = z.shape[1]
    u = np.empty(d, z.dtype)
    moved = np.empty(d, z.dtype)
    g = np.empty(d, z.dtype)
    gm = np.empty(d, z.dtype)
    gu = np.empty(d, z.dtype)
    direct = np.empty(d, z.dtype)
    for block in range(first, last):
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(d):
                u[k] = v[i, k]
                g[k] = grad[i, k]
                gm[k] = grad[i, k]
                direct[k] = 0
            activate(u, code)
            factor = exp_row(z, i, u, c, margin, moved)
            if mode == 2:
                midpoint_row_backward(z, i, z0, moved, eta, c, margin, g, gm, direct, gz0, partial[block])
            partial[block, 0] += exp_row_backward(z, i, u, c, margin, factor, moved, gm, direct, gu)
            activate_backward(u, gu, code)
            for k in range(d):
                gz[i, k] = direct[k]
                gv[i, k] = gu[k]
