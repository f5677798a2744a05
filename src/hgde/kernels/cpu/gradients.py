"""The gradient of a step along edges, in two passes: what receivers get and what they tell their senders.

The first pass goes by rows, as the step itself. It works out the sums again (unless they were kept), brings the
gradient back to them, and then visits the row's edges once more, their neighbours still in cache: the gradient ``g_i``
at the sum is at hand in doubles, the dear functions of each edge were remembered, so only inner products with ``g_i``
are new. It leaves four numbers for each edge, ``tell``: what a sender multiplies ``z_j - z_i``, ``g_i`` and ``z_j`` by,
the last in two parts, because it is of both signs. The second pass goes by senders and only adds: nothing is scattered.
Points and gradients lie side by side in ``g``: a sender reads both of each receiver, from anywhere in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hgde.compiler.dialect import block, inlined
from hgde.kernels.cpu.edges import (
    AHEAD,
    ALONG,
    BI,
    BJ,
    DELTA,
    EC,
    GE,
    GX,
    OUT,
    PULL,
    RATIO,
    TO_G,
    TO_NEIGHBOUR,
    TO_NEIGHBOURS_Z,
    TO_Z,
    VALUE,
    A,
    S,
    gather_channels,
    gather_edges,
)  # fmt: skip
from hgde.kernels.cpu.exponential import GX as ROW_GX
from hgde.kernels.cpu.exponential import PULLED
from hgde.kernels.cpu.lanes import LANES, fma, line, load, prefetch, spread, store, total, wide, widened, zeros
from hgde.kernels.cpu.rows import flow_strip_backward
from hgde.kernels.cpu.scalars import artanh_ratio, artanh_ratio_slope
from hgde.kernels.cpu.sizes import BUFFERS, CHUNK, PARTIALS, STRIP, strip_rows

TOLD = 4
"""Numbers left for each edge."""


@inlined
def chunk_terms(n: int, c: float, s: Any) -> None:
    """Derivatives of ``f = <g, log_x(y)>`` for the edges of a chunk, ``GE = <g, y - x>``, ``GX = <g, x>``.

    With ``log_x(y) = s (B_x (y - x) - delta x)``, ``delta = c|x - y|^2``, the derivatives in ``delta, B_x, B_y`` are
    ``f_delta, f_x, f_y``; ``a`` is the edge's weight.
    """
    over_c = 1 / c
    for k in range((n + 7) // 8 * 8):
        a, b_x, b_y, delta, ratio = s[A + k], s[BI + k], s[BJ + k], s[DELTA + k], s[RATIO + k]
        t1, t2 = s[GE + k], s[GX + k]
        product = b_x * b_y
        den = product + delta
        inverse = 1 / (den * product)
        over = product * inverse
        slope = artanh_ratio_slope(delta * over, den * den * inverse, ratio)
        scale = ratio * over
        factor, h = b_x * scale, b_x * t1 - delta * t2
        f_w = h * b_x * slope * over
        f_den = -(h * factor + f_w * delta * over) * over
        f_delta = f_w * over + f_den - factor * t2
        f_x = factor * t1 + h * scale + f_den * b_y
        f_y = f_den * b_x
        weighted = a * factor
        s[VALUE + k], s[PULL + k], s[OUT + k] = h * factor, factor * b_x, factor * delta
        s[ALONG + k] = -2 * c * a * f_delta
        s[TO_G + k] = -weighted * (b_x + delta)
        s[TO_Z + k] = -2 * c * a * f_x
        s[TO_NEIGHBOUR + k] = weighted * b_x
        s[TO_NEIGHBOURS_Z + k] = -2 * c * a * f_y
        s[EC + k] = a * (f_delta * delta - f_x * (1 - b_x) - f_y * (1 - b_y)) * over_c


@inlined
def leave(s: Any, start: int, stop: int, tell: Any) -> None:
    """Write what senders are told."""
    for k in range(stop - start):
        at, along = TOLD * (start + k), s[TO_NEIGHBOURS_Z + k]
        tell[at], tell[at + 1], tell[at + 2] = -s[ALONG + k], s[TO_NEIGHBOUR + k], along
        tell[at + 3] = along - tell[at + 2]


@inlined
def recall(s: Any, start: int, stop: int, memo: Any, at: int, apart: int) -> None:
    for k in range(stop - start):
        s[DELTA + k], s[RATIO + k] = memo[at + start + k], memo[at + apart + start + k]


@block
def begin_rows(first: int, n: int, d: int, z: Any, s: Any, gu: int, g: Any) -> None:
    """Write a strip's points and gradients at the sums side by side, for the senders, and keep ``<g_i, z_i>``."""
    for r in range(n):
        along = spread(0.0)
        for k in range(0, d, LANES):
            own, point, at = load(s, gu + r * d + k), load(z, (first + r) * d + k), 2 * (first + r) * d + k
            along = fma(own, widened(point), along)
            store(g, at, point)
            store(g, at + d, own)
        s[ROW_GX + r] = total(along)


@block
def end_rows(first: int, n: int, d: int, s: Any, gz: int, out: Any) -> None:
    for k in range(0, n * d, LANES):
        store(out, first * d + k, load(s, gz + k))


@block
def origin_backward(
    first: int, n: int, d: int, z: Any, b: Any, origin: Any, c: float, s: Any, gz: int, gu: int, gorigin: Any,
    partial: Any, line_: int,
) -> None:  # fmt: skip
    """Gradient of ``origin_i log_{z_i}(o) = -origin_i B R(c|z|^2) z``, ``R = artanhc``, added to ``gz`` and others."""
    for r in range(n):
        s[A + r], s[BI + r] = origin[first + r], b[first + r]
    for r in range(n):
        b_i, zg = s[BI + r], s[ROW_GX + r]
        delta = 1 - b_i
        ratio = artanh_ratio(delta, 1 / b_i)
        change = (b_i * artanh_ratio_slope(delta, 1 / b_i, ratio) - ratio) * zg
        gorigin[first + r] -= b_i * ratio * zg
        partial[line_] -= s[A + r] * change * delta / c
        s[S + r], s[OUT + r] = -s[A + r] * b_i * ratio, -2 * c * s[A + r] * change
    for r in range(n):
        for k in range(0, d, LANES):
            at = r * d + k
            more = fma(s[S + r], load(s, gu + at), s[OUT + r] * wide(z, first * d + at))
            store(s, gz + at, load(s, gz + at) + more)


@block
def receive_edges(
    first: int, n: int, indptr: Any, indices: Any, d: int, z: Any, b: Any, values: Any, c: float, s: Any, gz: int,
    gu: int, memo: Any, at: int, apart: int, wanted: int, gvalues: Any, tell: Any,
) -> float:  # fmt: skip
    """``gz_r += ...`` from the edges of a strip; ``gvalues`` only if ``wanted``. Returns the curvature's gradient."""
    end, row, ec = indptr[first + n], 0, 0.0
    for start in range(indptr[first], end, CHUNK):
        stop = min(start + CHUNK, end)
        e, r = start, row
        while e < stop:
            while indptr[first + r + 1] <= e:
                r += 1
            i = first + r
            upto = min(stop, indptr[i + 1])
            b_i, along = b[i], s[ROW_GX + r]
            for o in range(e, upto):
                j, ge = indices[o], spread(0.0)
                for k in range(0, d, LANES):
                    ge = fma(load(s, gu + r * d + k), wide(z, j * d + k) - wide(z, i * d + k), ge)
                p = o - start
                s[GE + p], s[GX + p], s[BI + p], s[BJ + p], s[A + p] = total(ge), along, b_i, b[j], values[o]
            e = upto
        recall(s, start, stop, memo, at, apart)
        chunk_terms(stop - start, c, s)
        leave(s, start, stop, tell)
        if wanted != 0:
            for o in range(start, stop):
                gvalues[o] += s[VALUE + o - start]
        e = start
        while e < stop:
            while indptr[first + row + 1] <= e:
                row += 1
            i = first + row
            upto = min(stop, indptr[i + 1])
            to_g, to_z = 0.0, 0.0
            for p in range(e - start, upto - start):
                ec += s[EC + p]
                to_g += s[TO_G + p]
                to_z += s[TO_Z + p]
            for k in range(0, d, LANES):
                own, here = load(z, i * d + k), zeros(z)
                for o in range(e, upto):
                    here = fma(s[ALONG + o - start], load(z, indices[o] * d + k) - own, here)
                rest = fma(to_g, load(s, gu + row * d + k), to_z * wide(z, i * d + k)) + widened(here)
                store(s, gz + row * d + k, load(s, gz + row * d + k) + rest)
            e = upto
    return ec


@block
def rows_edges(
    part: int, first: int, n: int, last: int, s: Any, indptr: Any, indices: Any, owners: Any, d: int, z: Any, b: Any,
    values: Any, origin: Any, anchored: int, z0: Any, mode: int, code: int, e0: float, e1: float, e2: float, c: float,
    margin: float, keep: int, kept: Any, pulled: Any, remembers: int, at: int, apart: int, grad: Any, g: Any, gz0: Any,
    gorigin: Any, partial: Any,
) -> None:  # fmt: skip
    """From ``grad`` to the gradient at the sums of a strip, left in ``g`` and in the buffer, and what is not by edges.

    Sums are ``kept`` or worked out again; then what is dear of the edges goes from place ``at`` on, if ``remembers``.
    """
    size = STRIP * d
    v, moved, gm, gz, gu = BUFFERS, BUFFERS + size, BUFFERS + 2 * size, BUFFERS + 3 * size, BUFFERS + 4 * size
    if keep != 0:
        for r in range(n):
            s[PULLED + r] = pulled[first + r]
        for k in range(0, n * d, LANES):
            store(s, v + k, load(kept, first * d + k))
    else:
        gather_edges(
            first, n, last, indptr, indices, owners, d, z, b, values, origin, anchored, c, s, v, remembers, s, at, apart
        )
    flow_strip_backward(
        z, first, n, d, z0, s, v, moved, gm, gz, gu, mode, code, e0, e1, e2, c, margin, grad, gz0, partial,
        part * PARTIALS,
    )  # fmt: skip
    begin_rows(first, n, d, z, s, gu, g)
    if anchored != 0:
        origin_backward(first, n, d, z, b, origin, c, s, gz, gu, gorigin, partial, part * PARTIALS)


@block
def receivers_edges(
    part: int, s: Any, blocks: Any, indptr: Any, indices: Any, owners: Any, d: int, z: Any, b: Any, values: Any, origin:
    Any, anchored: int, z0: Any, mode: int, code: int, e0: float, e1: float, e2: float, c: float, margin: float, keep:
    int, kept: Any, pulled: Any, memo: Any, apart: int, grad: Any, g: Any, gz: Any, gz0: Any, gorigin: Any, wanted: int,
    gvalues: Any, tell: Any, partial: Any,
) -> None:  # fmt: skip
    """First pass over a block; ``gz`` may be ``grad``. Without ``keep``, ``apart`` is the most edges a strip has."""
    size, rows = STRIP * d, strip_rows(d)
    gz_, gu = BUFFERS + 3 * size, BUFFERS + 4 * size
    last = indptr[blocks[part + 1]] - 1
    for first in range(blocks[part], blocks[part + 1], rows):
        n = min(rows, blocks[part + 1] - first)
        known, at = memo, 0
        if keep == 0:
            known, at = s, BUFFERS + 7 * size - indptr[first]
        rows_edges(
            part, first, n, last, s, indptr, indices, owners, d, z, b, values, origin, anchored, z0, mode, code, e0, e1,
            e2, c, margin, keep, kept, pulled, 1, at, apart, grad, g, gz0, gorigin, partial,
        )  # fmt: skip
        partial[part * PARTIALS] += receive_edges(
            first, n, indptr, indices, d, z, b, values, c, s, gz_, gu, known, at, apart, wanted, gvalues, tell
        )
        end_rows(first, n, d, s, gz_, gz)


@block
def senders_edges(
    first_row: int, after: int, last: int, start: Any, receivers: Any, order: Any, d: int, z: Any, g: Any, tell: Any,
    gz: Any,
) -> None:  # fmt: skip
    """Second pass: ``gz_j += sum_i p (z_j - z_i) + q g_i + r z_j`` over the edges that leave ``j``."""
    for j in range(first_row, after):
        for first in range(start[j], start[j + 1], CHUNK):
            stop = min(first + CHUNK, start[j + 1])
            to_z = senders_chunk(first, stop, last, receivers, order, d, g, tell)
            for k in range(0, d, LANES):
                own, here = load(z, j * d + k), zeros(z)
                for place in range(first, stop):
                    e, at = TOLD * order[place], 2 * receivers[place] * d + k
                    here = fma(tell[e], own - load(g, at), fma(tell[e + 1], load(g, at + d), here))
                rest = fma(to_z, wide(z, j * d + k), widened(here))
                store(gz, j * d + k, wide(gz, j * d + k) + rest)


@inlined
def senders_chunk(first: int, stop: int, last: int, receivers: Any, order: Any, d: int, g: Any, tell: Any) -> float:
    """Ask for the rows that a chunk of edges needs; ``sum_i r`` over the chunk."""
    to_z = 0.0
    for place in range(first, stop):
        ahead, e = min(place + AHEAD, last), TOLD * order[place]
        prefetch(tell, TOLD * order[min(place + 2 * AHEAD, last)])
        for k in range(2 * receivers[ahead] * d, 2 * (receivers[ahead] + 1) * d, line(g)):
            prefetch(g, k)
        to_z += np.float64(tell[e + 2]) + np.float64(tell[e + 3])
    return to_z


@block
def receive_channels(
    first: int, n: int, indptr: Any, indices: Any, d: int, z: Any, b: Any, table: Any, index: Any, weighted: int,
    edge: Any, c: float, s: Any, gz: int, gu: int, memo: Any, at: int, apart: int, gtable: Any, copy: int, wanted: int,
    gedge: Any, tell: Any,
) -> float:  # fmt: skip
    """:func:`receive_edges` for weights per channel, whose gradients go to ``gtable`` from place ``copy`` on."""
    end, row, ec = indptr[first + n], 0, 0.0
    for start in range(indptr[first], end, CHUNK):
        stop = min(start + CHUNK, end)
        e, r = start, row
        while e < stop:
            while indptr[first + r + 1] <= e:
                r += 1
            i = first + r
            upto = min(stop, indptr[i + 1])
            b_i = b[i]
            for o in range(e, upto):
                j, kind, p = indices[o], index[o] * d, o - start
                ge, gx = spread(0.0), spread(0.0)
                for k in range(0, d, LANES):
                    own, inward = wide(z, i * d + k), load(s, gu + r * d + k) * wide(table, kind + k)
                    ge = fma(inward, wide(z, j * d + k) - own, ge)
                    gx = fma(inward, own, gx)
                s[GE + p], s[GX + p], s[BI + p], s[BJ + p] = total(ge), total(gx), b_i, b[j]
                s[A + p] = edge[o] if weighted != 0 else 1.0
            e = upto
        recall(s, start, stop, memo, at, apart)
        chunk_terms(stop - start, c, s)
        leave(s, start, stop, tell)
        if wanted != 0:
            for o in range(start, stop):
                gedge[o] += s[VALUE + o - start]
        e = start
        while e < stop:
            while indptr[first + row + 1] <= e:
                row += 1
            i = first + row
            upto = min(stop, indptr[i + 1])
            to_z = 0.0
            for p in range(e - start, upto - start):
                ec += s[EC + p]
                to_z += s[TO_Z + p]
            for k in range(0, d, LANES):
                own, ours = wide(z, i * d + k), load(s, gu + row * d + k)
                here = load(s, gz + row * d + k) + to_z * own
                for o in range(e, upto):
                    p, kind = o - start, index[o] * d + k
                    t = wide(z, indices[o] * d + k) - own
                    here = fma(s[ALONG + p], t, fma(s[TO_G + p] * ours, wide(table, kind), here))
                    log = s[A + p] * (s[PULL + p] * t - s[OUT + p] * own)
                    store(gtable, copy + kind, fma(ours, log, load(gtable, copy + kind)))
                store(s, gz + row * d + k, here)
            e = upto
    return ec


@block
def receivers_channels(
    part: int, s: Any, blocks: Any, indptr: Any, indices: Any, owners: Any, d: int, z: Any, b: Any, table: Any, index:
    Any, weighted: int, edge: Any, scale: Any, z0: Any, mode: int, code: int, e0: float, e1: float, e2: float, c: float,
    margin: float, keep: int, kept: Any, memo: Any, apart: int, grad: Any, g: Any, gz: Any, gz0: Any, gscale: Any,
    gtable: Any, copy: int, wanted: int, gedge: Any, tell: Any, partial: Any,
) -> None:  # fmt: skip
    """:func:`receivers_edges` for weights per channel; ``g`` is at the sums before they are scaled, the table's
    gradient is added to from place ``copy`` on."""
    size, rows = STRIP * d, strip_rows(d)
    v, moved, gm, gz_, gu = BUFFERS, BUFFERS + size, BUFFERS + 2 * size, BUFFERS + 3 * size, BUFFERS + 4 * size
    summed, push = BUFFERS + 5 * size, BUFFERS + 6 * size
    last = indptr[blocks[part + 1]] - 1
    for first in range(blocks[part], blocks[part + 1], rows):
        n = min(rows, blocks[part + 1] - first)
        known, at = memo, 0
        if keep != 0:
            for k in range(0, n * d, LANES):
                store(s, summed + k, load(kept, first * d + k))
        else:
            known, at = s, BUFFERS + 7 * size - indptr[first]
            gather_channels(
                first, n, last, indptr, indices, owners, d, z, b, table, index, weighted, edge, c, s, summed, push, 1,
                known, at, apart,
            )  # fmt: skip
        for k in range(0, n * d, LANES):
            store(s, v + k, load(s, summed + k) * wide(scale, first * d + k))
        flow_strip_backward(
            z, first, n, d, z0, s, v, moved, gm, gz_, gu, mode, code, e0, e1, e2, c, margin, grad, gz0, partial,
            part * PARTIALS,
        )  # fmt: skip
        for k in range(0, n * d, LANES):
            along = load(s, gu + k)
            store(gscale, first * d + k, fma(along, load(s, summed + k), wide(gscale, first * d + k)))
            store(s, gu + k, along * wide(scale, first * d + k))
        begin_rows(first, n, d, z, s, gu, g)
        partial[part * PARTIALS] += receive_channels(
            first, n, indptr, indices, d, z, b, table, index, weighted, edge, c, s, gz_, gu, known, at, apart, gtable,
            copy, wanted, gedge, tell,
        )  # fmt: skip
        end_rows(first, n, d, s, gz_, gz)


@block
def senders_channels(
    first_row: int, after: int, last: int, start: Any, receivers: Any, order: Any, d: int, z: Any, g: Any, table: Any,
    index: Any, tell: Any, gz: Any,
) -> None:  # fmt: skip
    """:func:`senders_edges` for weights per channel."""
    for j in range(first_row, after):
        for first in range(start[j], start[j + 1], CHUNK):
            stop = min(first + CHUNK, start[j + 1])
            for place in range(first, stop):
                prefetch(index, order[min(place + AHEAD, last)])
            to_z = senders_chunk(first, stop, last, receivers, order, d, g, tell)
            for k in range(0, d, LANES):
                own, here = load(z, j * d + k), zeros(z)
                for place in range(first, stop):
                    e, at = order[place], 2 * receivers[place] * d + k
                    outward = load(g, at + d) * load(table, index[e] * d + k)
                    here = fma(tell[TOLD * e], own - load(g, at), fma(tell[TOLD * e + 1], outward, here))
                rest = fma(to_z, wide(z, j * d + k), widened(here))
                store(gz, j * d + k, wide(gz, j * d + k) + rest)
