"""Compiled passes over the rows of a graph: one step of diffusion forward, and its gradient in two passes.

A pass works on a range of *blocks* of rows. Blocks depend on the graph alone, each writes its own rows and its own line
of ``partial``, and those lines are added in order afterwards: the result does not depend on the number of threads.
Within a block, rows go by strips and edges by chunks: inner products of a chunk first, then the scalars of all its
edges in one vectorised loop, then the sums while the neighbours' rows are still in cache.

``values`` is given for one weight per edge, ``table, index, scale`` for one per edge and channel; the absent ones are
``None`` and compiled away. ``mode`` is 0 for the tangent sum alone, 1 for the exponential of it, 2 with the residual.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hgde.kernels.compiled import compiled, inlined
from hgde.kernels.scalars import artanh_ratio, artanh_ratio_slope, prefetch
from hgde.kernels.strips import (
    FACTOR,
    GC,
    GE0,
    GE1,
    GE2,
    PUSHED,
    SLOTS,
    STRIP,
    B,
    activate,
    activate_backward,
    exp_strip,
    exp_strip_backward,
    midpoint_scalars,
    midpoint_strip,
    midpoint_strip_backward,
)

CHUNK = 64
AHEAD = 8
(DELTA, QJ, BI, AI, S, SPREAD, PI, GEI, GEO, GXI, GXO, AO, ALONG, TO_NEIGHBOUR, TO_G, TO_Z, F, EC) = tuple(
    CHUNK * n for n in range(18)
)
EDGE_SLOTS = 18 * CHUNK


@compiled
def gather_strip(
    first: int, n: int, indptr: Any, indices: Any, z: Any, values: Any, table: Any, index: Any, c: float,
    margin: float, v: Any, push: Any, w: Any, x: Any,
) -> None:  # fmt: skip
    """``v_r = sum_j a_rj log_{z_r}(z_j)`` for ``n`` rows from ``first`` on; channel weights without the row's scale."""
    d = z.shape[1]
    kind = z.dtype.type
    line = 64 // z.itemsize
    for r in range(n):
        p = kind(0)
        for k in range(d):
            p += z[first + r, k] * z[first + r, k]
            v[r, k] = 0
        w[B + r] = max(1 - c * p, margin)
        w[PUSHED + r] = 0
    if table is not None:
        for r in range(n):
            for k in range(d):
                push[r, k] = 0
    begin, end = indptr[first], indptr[first + n]
    last = indices.shape[0] - 1
    row = 0
    for start in range(begin, end, CHUNK):
        stop = min(start + CHUNK, end)
        r = row
        for e in range(start, stop):
            while indptr[first + r + 1] <= e:
                r += 1
            i, j = first + r, indices[e]
            ahead = indices[min(e + AHEAD, last)]
            for k in range(0, d, line):
                prefetch(z, ahead, k)
            delta, q = kind(0), kind(0)
            for k in range(d):
                y = z[j, k]
                t = y - z[i, k]
                delta += t * t
                q += y * y
            x[DELTA + e - start], x[QJ + e - start], x[BI + e - start] = delta, q, w[B + r]
            if values is not None:
                x[AI + e - start] = values[e]
        for k in range(stop - start):
            b, spread = x[BI + k], c * x[DELTA + k]
            product = b * max(1 - c * x[QJ + k], margin)
            den = product + spread
            over = 1 / den
            s = b * over * artanh_ratio(spread * over, den / product)
            if values is not None:
                s *= x[AI + k]
            x[S + k], x[SPREAD + k] = s, s * spread
        for e in range(start, stop):
            while indptr[first + row + 1] <= e:
                row += 1
            i, j, s = first + row, indices[e], kind(x[S + e - start])
            if values is not None:
                w[PUSHED + row] += x[SPREAD + e - start]
                for k in range(d):
                    v[row, k] += s * (z[j, k] - z[i, k])
            if table is not None:
                f, a = kind(x[SPREAD + e - start]), index[e]
                for k in range(d):
                    v[row, k] += s * table[a, k] * (z[j, k] - z[i, k])
                    push[row, k] += f * table[a, k]
    for r in range(n):
        b_ = kind(w[B + r])
        if values is not None:
            pushed = kind(w[PUSHED + r])
            for k in range(d):
                v[r, k] = b_ * v[r, k] - pushed * z[first + r, k]
        if table is not None:
            for k in range(d):
                v[r, k] = b_ * v[r, k] - push[r, k] * z[first + r, k]


@inlined
def count_pulled(w: Any, n: int, still: float) -> int:
    count = 0
    for r in range(n):
        if w[FACTOR + r] < still:
            count += 1
    return count


@compiled
def forward_blocks(
    begin: int, end: int, blocks: Any, indptr: Any, indices: Any, z: Any, values: Any, table: Any, index: Any,
    scale: Any, c: float, margin: float, mode: int, code: int, z0: Any, eta: Any, kept: Any, out: Any,
    partial: Any,
) -> None:  # fmt: skip
    """``out = F(z)`` for the rows of blocks ``begin .. end - 1``; ``partial[block, 4]`` counts pull-backs.

    The sums go to ``kept`` unless it is empty.
    """
    d = z.shape[1]
    v, push, moved = np.empty((STRIP, d), z.dtype), np.empty((STRIP, d), z.dtype), np.empty((STRIP, d), z.dtype)
    w, x = np.zeros(SLOTS), np.zeros(EDGE_SLOTS)
    still = 1 - 4 * np.finfo(z.dtype).eps
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            gather_strip(first, n, indptr, indices, z, values, table, index, c, margin, v, push, w, x)
            if len(kept) > 0:
                kept[first : first + n] = v[:n]
            if scale is not None:
                for r in range(n):
                    for k in range(d):
                        v[r, k] *= scale[first + r, k]
            if mode > 0:
                activate(v, n, code)
                exp_strip(z, first, n, v, c, margin, moved, w)
                partial[block, 4] += count_pulled(w, n, still)
            if mode == 2:
                midpoint_scalars(z, first, n, z0, moved, eta, c, margin, w)
                partial[block, 4] += midpoint_strip(z, first, n, z0, moved, c, margin, out, w)
            elif mode == 1:
                out[first : first + n] = moved[:n]
            else:
                out[first : first + n] = v[:n]


@compiled
def strip_backward(
    first: int, n: int, z: Any, v: Any, c: float, margin: float, mode: int, code: int, z0: Any, eta: Any, grad: Any,
    moved: Any, gm: Any, gz: Any, gu: Any, gz0: Any, w: Any, line: Any,
) -> None:  # fmt: skip
    """From ``grad`` at ``F`` to ``gu`` at the tangent vectors ``v`` (activated here), ``gz``, ``gz0 += ...``."""
    activate(v, n, code)
    exp_strip(z, first, n, v, c, margin, moved, w)
    if mode == 2:
        midpoint_scalars(z, first, n, z0, moved, eta, c, margin, w)
        midpoint_strip_backward(z, first, n, z0, moved, eta, c, margin, grad, gm, gz, gz0, w)
    else:
        for r in range(n):
            w[GC + r] = 0
            for k in range(z.shape[1]):
                gm[r, k] = grad[first + r, k]
                gz[first + r, k] = 0
    exp_strip_backward(z, first, n, v, c, moved, gm, gz, gu, w)
    activate_backward(v, gu, n, code)
    for r in range(n):
        line[0] += w[GC + r]
    if mode == 2:
        for r in range(n):
            line[1] += w[GE0 + r]
            line[2] += w[GE1 + r]
            line[3] += w[GE2 + r]


@compiled
def backward_rows(
    begin: int, end: int, blocks: Any, indptr: Any, indices: Any, z: Any, values: Any, table: Any, index: Any,
    scale: Any, c: float, margin: float, mode: int, code: int, z0: Any, eta: Any, kept: Any, grad: Any, packed: Any,
    gz: Any, gz0: Any, gscale: Any, partial: Any,
) -> None:  # fmt: skip
    """First pass: work out ``v`` again (unless it was ``kept``) and bring the gradient of ``F`` back to it, row by row.

    Writes ``packed_i = [z_i, gradient at the (unscaled) sum]``, for the second pass to find side by side, ``gz`` (what
    reaches ``z_i`` past the sum), ``gz0 += ...``, ``gscale += ...`` and the lines of ``partial``: ``c``, then ``eta``.
    """
    d = z.shape[1]
    v, push, moved = np.empty((STRIP, d), z.dtype), np.empty((STRIP, d), z.dtype), np.empty((STRIP, d), z.dtype)
    summed, gm, gu = np.empty((STRIP, d), z.dtype), np.empty((STRIP, d), z.dtype), np.empty((STRIP, d), z.dtype)
    w, x = np.zeros(SLOTS), np.zeros(EDGE_SLOTS)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            if len(kept) > 0:
                v[:n] = kept[first : first + n]
            elif mode != 0 or scale is not None:
                gather_strip(first, n, indptr, indices, z, values, table, index, c, margin, v, push, w, x)
            if scale is not None:
                for r in range(n):
                    for k in range(d):
                        summed[r, k] = v[r, k]
                        v[r, k] *= scale[first + r, k]
            if mode == 0:
                gz[first : first + n] = 0
                gu[:n] = grad[first : first + n]
            else:
                strip_backward(
                    first, n, z, v, c, margin, mode, code, z0, eta, grad, moved, gm, gz, gu, gz0, w, partial[block]
                )  # fmt: skip
            if scale is not None:
                for r in range(n):
                    for k in range(d):
                        gscale[first + r, k] += gu[r, k] * summed[r, k]
                        gu[r, k] *= scale[first + r, k]
            for r in range(n):
                for k in range(d):
                    packed[first + r, k] = z[first + r, k]
                    packed[first + r, d + k] = gu[r, k]


@inlined
def pair_terms(
    b_x: float, b_y: float, spread: float, ratio: float, slope: float, over: float, t1: float, t2: float, c: float
) -> tuple[float, float, float, float, float]:
    """Derivatives of ``f = <g, log_x(y)>`` for one pair, ``t1 = <g, y - x>``, ``t2 = <g, x>``, ``spread = c|x - y|^2``.

    Returns ``(f, s, df/d delta, df/dB_x, df/dB_y)`` with ``log_x(y) = s (B_x (y - x) - spread x)``.
    """
    s = b_x * ratio * over
    h = b_x * t1 - spread * t2
    f_w = h * b_x * slope * over
    f_den = -(h * s + f_w * spread * over) * over
    f_delta = c * (-s * t2 + f_w * over + f_den)
    f_x = s * t1 + h * ratio * over + f_den * b_y
    return h * s, s, f_delta, f_x, f_den * b_x


@inlined
def chunk_terms(n: int, c: float, margin: float, x: Any) -> None:
    """Everything the edges of a chunk contribute, in both directions, from their inner products."""
    for k in range(n):
        b_i, delta, q = x[BI + k], x[DELTA + k], x[QJ + k]
        spread = c * delta
        b_j = max(1 - c * q, margin)
        product = b_i * b_j
        den = product + spread
        over, inverse_rest = 1 / den, den / product
        ratio = artanh_ratio(spread * over, inverse_rest)
        slope = artanh_ratio_slope(spread * over, inverse_rest, ratio)
        a = x[AI + k]
        f, s, f_delta, f_x, f_y = pair_terms(b_i, b_j, spread, ratio, slope, over, x[GEI + k], x[GXI + k], c)
        along, to_z = a * f_delta, a * f_x
        x[F + k], x[S + k], x[SPREAD + k] = f, s * b_i, s * spread
        x[TO_G + k] = -a * s * (b_i + spread)
        x[EC + k] = a * (f_delta * delta / c - f_x * x[PI + k] - f_y * q)
        a = x[AO + k]
        f, s, f_delta, f_x, f_y = pair_terms(b_j, b_i, spread, ratio, slope, over, -x[GEO + k], x[GXO + k], c)
        x[ALONG + k] = -2 * (along + a * f_delta)
        x[TO_Z + k] = -2 * c * (to_z + a * f_y)
        x[TO_NEIGHBOUR + k] = a * s * b_j


@inlined
def add_own(packed: Any, i: int, to_g: float, to_z: float, gz: Any) -> None:
    """What the edges of a row contribute along the row's own gradient and point, added once per row."""
    d = packed.shape[1] // 2
    g, z = packed.dtype.type(to_g), packed.dtype.type(to_z)
    for k in range(d):
        gz[i, k] += g * packed[i, d + k] + z * packed[i, k]


@compiled
def backward_edges(
    begin: int, end: int, blocks: Any, group: int, indptr: Any, neighbours: Any, in_edge: Any, out_edge: Any,
    packed: Any, values: Any, table: Any, index: Any, c: float, margin: float, gz: Any, gvalues: Any, gtable: Any,
    partial: Any,
) -> None:  # fmt: skip
    """Second pass: ``gz_i += ...`` from every edge that arrives at ``i`` or leaves it, in one visit per neighbour.

    ``in_edge, out_edge`` are the edge's place among the graph's edges in either direction, -1 where there is none.
    The distance, and with it every transcendental function, is shared by the two directions.
    """
    d = packed.shape[1] // 2
    kind = packed.dtype.type
    line = 64 // packed.itemsize
    x = np.zeros(EDGE_SLOTS)
    final = neighbours.shape[0] - 1
    for block in range(begin, end):
        row, known, summed = blocks[block], -1, blocks[block]
        to_g, to_z = 0.0, 0.0
        p, zg = kind(0), kind(0)
        for start in range(indptr[blocks[block]], indptr[blocks[block + 1]], CHUNK):
            stop = min(start + CHUNK, indptr[blocks[block + 1]])
            i = row
            for e in range(start, stop):
                while indptr[i + 1] <= e:
                    i += 1
                if i != known:
                    known = i
                    p, zg = kind(0), kind(0)
                    for k in range(d):
                        p += packed[i, k] * packed[i, k]
                        zg += packed[i, k] * packed[i, d + k]
                j, here, there, o = neighbours[e], in_edge[e], out_edge[e], e - start
                ahead = neighbours[min(e + AHEAD, final)]
                for k in range(0, 2 * d, line):
                    prefetch(packed, ahead, k)
                delta, q, ge_in, ge_out, gx_out = kind(0), kind(0), kind(0), kind(0), kind(0)
                if values is not None:
                    for k in range(d):
                        y, g = packed[j, k], packed[j, d + k]
                        t = y - packed[i, k]
                        delta += t * t
                        q += y * y
                        ge_in += packed[i, d + k] * t
                        ge_out += g * t
                        gx_out += g * y
                    x[GXI + o] = zg
                    x[AI + o] = values[here] if here >= 0 else kind(0)
                    x[AO + o] = values[there] if there >= 0 else kind(0)
                if table is not None:
                    row_in, row_out = index[max(here, 0)], index[max(there, 0)]
                    gx_in = kind(0)
                    for k in range(d):
                        y, own_point = packed[j, k], packed[i, k]
                        g, h = packed[j, d + k] * table[row_out, k], packed[i, d + k] * table[row_in, k]
                        t = y - own_point
                        delta += t * t
                        q += y * y
                        ge_in += h * t
                        gx_in += h * own_point
                        ge_out += g * t
                        gx_out += g * y
                    x[GXI + o] = gx_in
                    x[AI + o] = 1.0 if here >= 0 else 0.0
                    x[AO + o] = 1.0 if there >= 0 else 0.0
                x[DELTA + o], x[QJ + o], x[GEI + o], x[GEO + o], x[GXO + o] = delta, q, ge_in, ge_out, gx_out
                x[PI + o], x[BI + o] = p, max(1 - c * p, margin)
            chunk_terms(stop - start, c, margin, x)
            for e in range(start, stop):
                while indptr[row + 1] <= e:
                    row += 1
                if row != summed:
                    add_own(packed, summed, to_g, to_z, gz)
                    summed, to_g, to_z = row, 0.0, 0.0
                j, here, there, o = neighbours[e], in_edge[e], out_edge[e], e - start
                partial[block, 0] += x[EC + o]
                to_z += x[TO_Z + o]
                along, to_neighbour = kind(x[ALONG + o]), kind(x[TO_NEIGHBOUR + o])
                if values is not None:
                    to_g += x[TO_G + o]
                    if here >= 0:
                        gvalues[here] += kind(x[F + o])
                    for k in range(d):
                        gz[row, k] += along * (packed[j, k] - packed[row, k]) + to_neighbour * packed[j, d + k]
                if table is not None:
                    row_in, row_out = index[max(here, 0)], index[max(there, 0)]
                    own = kind(x[TO_G + o])
                    for k in range(d):
                        gz[row, k] += (
                            along * (packed[j, k] - packed[row, k])
                            + to_neighbour * packed[j, d + k] * table[row_out, k]
                            + own * packed[row, d + k] * table[row_in, k]
                        )
                    if here >= 0:
                        copy, s_e, s_x = block // group, kind(x[S + o]), kind(x[SPREAD + o])
                        for k in range(d):
                            y, own_point = packed[j, k], packed[row, k]
                            gtable[copy, row_in, k] += packed[row, d + k] * (s_e * (y - own_point) - s_x * own_point)
        if blocks[block + 1] > blocks[block]:
            add_own(packed, summed, to_g, to_z, gz)


@compiled
def advance_blocks(
    begin: int, end: int, blocks: Any, z: Any, v: Any, c: float, margin: float, mode: int, code: int, z0: Any,
    eta: Any, out: Any, partial: Any,
) -> None:  # fmt: skip
    """``out = F`` from tangent vectors already at hand; ``mode`` 1 or 2."""
    d = z.shape[1]
    u, moved, w = np.empty((STRIP, d), z.dtype), np.empty((STRIP, d), z.dtype), np.zeros(SLOTS)
    still = 1 - 4 * np.finfo(z.dtype).eps
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            u[:n] = v[first : first + n]
            activate(u, n, code)
            exp_strip(z, first, n, u, c, margin, moved, w)
            partial[block, 4] += count_pulled(w, n, still)
            if mode == 2:
                midpoint_scalars(z, first, n, z0, moved, eta, c, margin, w)
                partial[block, 4] += midpoint_strip(z, first, n, z0, moved, c, margin, out, w)
            else:
                out[first : first + n] = moved[:n]


@compiled
def advance_blocks_backward(
    begin: int, end: int, blocks: Any, z: Any, v: Any, c: float, margin: float, mode: int, code: int, z0: Any,
    eta: Any, grad: Any, gz: Any, gv: Any, gz0: Any, partial: Any,
) -> None:  # fmt: skip
    """The gradient of :func:`advance_blocks`."""
    d = z.shape[1]
    u, moved, w = np.empty((STRIP, d), z.dtype), np.empty((STRIP, d), z.dtype), np.zeros(SLOTS)
    gm, gu = np.empty((STRIP, d), z.dtype), np.empty((STRIP, d), z.dtype)
    for block in range(begin, end):
        for first in range(blocks[block], blocks[block + 1], STRIP):
            n = min(STRIP, blocks[block + 1] - first)
            u[:n] = v[first : first + n]
            strip_backward(
                first, n, z, u, c, margin, mode, code, z0, eta, grad, moved, gm, gz, gu, gz0, w, partial[block]
            )  # fmt: skip
            gv[first : first + n] = gu[:n]
