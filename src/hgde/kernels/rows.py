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
from hgde.kernels.lanes import LANES, load, store, total, zeros
from hgde.kernels.scalars import artanh_ratio, artanh_ratio_slope, prefetch, prefetch_entry
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
    rounded,
)

CHUNK = 64
AHEAD = 12
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
    for r in range(n):
        p = zeros(z)
        for k in range(0, d, LANES):
            own = load(z, first + r, k)
            p += own * own
            store(v, r, k, zeros(z))
            if table is not None:
                store(push, r, k, zeros(z))
        w[B + r] = max(1 - c * total(p), margin)
        w[PUSHED + r] = 0
    begin, end = indptr[first], indptr[first + n]
    last = indices.shape[0] - 1
    row = 0
    for start in range(begin, end, CHUNK):
        stop = min(start + CHUNK, end)
        e, r = start, row
        while e < stop:
            while indptr[first + r + 1] <= e:
                r += 1
            upto = min(stop, indptr[first + r + 1])
            i, b_i = first + r, w[B + r]
            for o in range(e - start, upto - start):
                j, ahead = indices[start + o], indices[min(start + o + AHEAD, last)]
                delta, q = zeros(z), zeros(z)
                for k in range(0, d, LANES):
                    prefetch(z, ahead, k)
                    y = load(z, j, k)
                    t = y - load(z, i, k)
                    delta += t * t
                    q += y * y
                x[DELTA + o], x[QJ + o], x[BI + o] = total(delta), total(q), b_i
                if values is not None:
                    x[AI + o] = values[start + o]
            e = upto
        for k in range(rounded(stop - start)):
            b, spread = x[BI + k], c * x[DELTA + k]
            product = b * max(1 - c * x[QJ + k], margin)
            den = product + spread
            over = 1 / den
            s = b * over * artanh_ratio(spread * over, den / product)
            if values is not None:
                s *= x[AI + k]
            x[S + k], x[SPREAD + k] = s, s * spread
        e = start
        while e < stop:
            while indptr[first + row + 1] <= e:
                row += 1
            upto = min(stop, indptr[first + row + 1])
            if values is not None:
                for o in range(e - start, upto - start):
                    w[PUSHED + row] += x[SPREAD + o]
            # Columns outside, edges inside: the sum stays in a register.
            for k in range(0, d, LANES):
                own, sums = load(z, first + row, k), load(v, row, k)
                if values is not None:
                    for o in range(e - start, upto - start):
                        sums += x[S + o] * (load(z, indices[start + o], k) - own)
                if table is not None:
                    pushes = load(push, row, k)
                    for o in range(e - start, upto - start):
                        a = load(table, index[start + o], k)
                        sums += x[S + o] * a * (load(z, indices[start + o], k) - own)
                        pushes += x[SPREAD + o] * a
                    store(push, row, k, pushes)
                store(v, row, k, sums)
            e = upto
    for r in range(n):
        for k in range(0, d, LANES):
            if values is not None:
                store(v, r, k, w[B + r] * load(v, r, k) - w[PUSHED + r] * load(z, first + r, k))
            if table is not None:
                store(v, r, k, w[B + r] * load(v, r, k) - load(push, r, k) * load(z, first + r, k))


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
                for k in range(0, d, LANES):
                    store(packed, first + r, k, load(z, first + r, k))
                    store(packed, first + r, d + k, load(gu, r, k))


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
    for k in range(rounded(n)):
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
    for k in range(0, d, LANES):
        store(gz, i, k, load(gz, i, k) + to_g * load(packed, i, d + k) + to_z * load(packed, i, k))


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
    x = np.zeros(EDGE_SLOTS)
    final = neighbours.shape[0] - 1
    for block in range(begin, end):
        row, known, summed = blocks[block], -1, blocks[block]
        to_g, to_z, ec = 0.0, 0.0, 0.0
        p, zg = 0.0, 0.0
        for start in range(indptr[blocks[block]], indptr[blocks[block + 1]], CHUNK):
            stop = min(start + CHUNK, indptr[blocks[block + 1]])
            e, i = start, row
            while e < stop:
                while indptr[i + 1] <= e:
                    i += 1
                if i != known:
                    known = i
                    squares, along = zeros(packed), zeros(packed)
                    for k in range(0, d, LANES):
                        own = load(packed, i, k)
                        squares += own * own
                        along += own * load(packed, i, d + k)
                    p, zg = float(total(squares)), float(total(along))
                b_i = max(1 - c * p, margin)
                upto = min(stop, indptr[i + 1])
                for o in range(e - start, upto - start):
                    j, ahead = neighbours[start + o], neighbours[min(start + o + AHEAD, final)]
                    here, there = in_edge[start + o], out_edge[start + o]
                    then = max(out_edge[min(start + o + AHEAD, final)], 0)
                    delta, q, ge_in, ge_out, gx_out = (
                        zeros(packed), zeros(packed), zeros(packed), zeros(packed), zeros(packed),
                    )  # fmt: skip
                    if values is not None:
                        prefetch_entry(values, then)
                        for k in range(0, d, LANES):
                            prefetch(packed, ahead, k)
                            prefetch(packed, ahead, d + k)
                            y, g = load(packed, j, k), load(packed, j, d + k)
                            t = y - load(packed, i, k)
                            delta += t * t
                            q += y * y
                            ge_in += load(packed, i, d + k) * t
                            ge_out += g * t
                            gx_out += g * y
                        x[GXI + o] = zg
                        x[AI + o] = values[here] if here >= 0 else kind(0)
                        x[AO + o] = values[there] if there >= 0 else kind(0)
                    if table is not None:
                        prefetch_entry(index, then)
                        row_in, row_out = index[max(here, 0)], index[max(there, 0)]
                        gx_in = zeros(packed)
                        for k in range(0, d, LANES):
                            prefetch(packed, ahead, k)
                            prefetch(packed, ahead, d + k)
                            y, own = load(packed, j, k), load(packed, i, k)
                            g = load(packed, j, d + k) * load(table, row_out, k)
                            h = load(packed, i, d + k) * load(table, row_in, k)
                            t = y - own
                            delta += t * t
                            q += y * y
                            ge_in += h * t
                            gx_in += h * own
                            ge_out += g * t
                            gx_out += g * y
                        x[GXI + o] = total(gx_in)
                        x[AI + o] = 1.0 if here >= 0 else 0.0
                        x[AO + o] = 1.0 if there >= 0 else 0.0
                    x[DELTA + o], x[QJ + o], x[PI + o], x[BI + o] = total(delta), total(q), p, b_i
                    x[GEI + o], x[GEO + o], x[GXO + o] = total(ge_in), total(ge_out), total(gx_out)
                e = upto
            chunk_terms(stop - start, c, margin, x)
            e = start
            while e < stop:
                while indptr[row + 1] <= e:
                    row += 1
                if row != summed:
                    add_own(packed, summed, to_g, to_z, gz)
                    summed, to_g, to_z = row, 0.0, 0.0
                upto = min(stop, indptr[row + 1])
                begun, ended = e - start, upto - start
                for o in range(begun, ended):
                    ec += x[EC + o]
                    to_z += x[TO_Z + o]
                if values is not None:
                    for o in range(begun, ended):
                        to_g += x[TO_G + o]
                        here = in_edge[start + o]
                        if here >= 0:
                            gvalues[here] += kind(x[F + o])
                for k in range(0, d, LANES):
                    own, sums = load(packed, row, k), load(gz, row, k)
                    for o in range(begun, ended):
                        j = neighbours[start + o]
                        y, g = load(packed, j, k), load(packed, j, d + k)
                        if table is not None:
                            row_in, row_out = index[max(in_edge[start + o], 0)], index[max(out_edge[start + o], 0)]
                            g *= load(table, row_out, k)
                            sums += x[TO_G + o] * load(packed, row, d + k) * load(table, row_in, k)
                        sums += x[ALONG + o] * (y - own) + x[TO_NEIGHBOUR + o] * g
                    store(gz, row, k, sums)
                if table is not None:
                    copy = block // group
                    for o in range(begun, ended):
                        here = in_edge[start + o]
                        if here >= 0:
                            j, row_in = neighbours[start + o], index[here]
                            for k in range(0, d, LANES):
                                y, own = load(packed, j, k), load(packed, row, k)
                                g = load(packed, row, d + k) * (x[S + o] * (y - own) - x[SPREAD + o] * own)
                                store(gtable[copy], row_in, k, load(gtable[copy], row_in, k) + g)
                e = upto
        partial[block, 0] += ec
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
