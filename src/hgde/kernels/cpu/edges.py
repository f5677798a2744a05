"""Passes over the edges of a graph: one step of diffusion forward, and its gradient in two passes.

A pass works on a range of *blocks* of rows. Blocks depend on the graph alone, each writes its own rows and its own line
of ``partial``, and those lines are added in order afterwards: the result does not depend on the number of threads.
Within a block, rows go by strips and edges by chunks: inner products of a chunk first, then the scalars of all its
edges in one vectorised loop, then the sums while the neighbours' rows are still in cache.

For an edge ``(i, j)``, ``x = z_i``, ``y = z_j``, ``log_x(y) = s (B_x (y - x) - c|y-x|^2 x)`` with a scalar ``s``.
Only what is read and written has the arrays' dtype; differences, scalars and sums are doubles. The conversion costs
next to nothing beside the wait for a neighbour's row.

An edge's weight is ``values[e]`` (``*_edges``), or ``table[index[e]] edge[e]`` for each channel, then scaled by row
(``*_channels``; ``edge`` is 1 unless ``weighted``).
"""

from __future__ import annotations

from typing import Any

from hgde.kernels.cpu.compile import Double, Doubles, Int, Ints, Reals, block, inlined, kernel
from hgde.kernels.cpu.exponential import PUSHED, SCALARS
from hgde.kernels.cpu.lanes import LANES, fma, larger, load, prefetch, spread, store, total, wide
from hgde.kernels.cpu.rows import flow_strip, flow_strip_backward
from hgde.kernels.cpu.scalars import artanh_ratio, artanh_ratio_slope
from hgde.kernels.cpu.sizes import CHUNK, EDGE_SCALARS, PARTIALS, PROJECTED, STRIP

AHEAD = 12
(DELTA, BI, BJ, AI, AO, S, OUT, GEI, GEO, GXI, GXO, ALONG, TO_NEIGHBOUR, TO_G, TO_Z, VALUE, EC, PULL) = tuple(
    SCALARS + CHUNK * n for n in range(EDGE_SCALARS)
)
BUFFERS = SCALARS + EDGE_SCALARS * CHUNK
"""Where the matrices of a strip begin in the buffer of doubles."""


@kernel
def conformal(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, z: Reals, c: Double, margin: Double, b: Doubles
) -> None:
    """``b_i = 1 - c|z_i|^2``, summed in doubles, never below that of the dtype's limit."""
    for i in range(blocks[begin], blocks[end]):
        p = spread(0.0)
        for k in range(0, d, LANES):
            own = wide(z, i * d + k)
            p = fma(own, own, p)
        b[i] = larger(1 - c * total(p), margin)


@inlined
def edge_factor(b_i: float, b_j: float, delta: float) -> float:
    """``s`` of an edge, from ``delta = c|x - y|^2``."""
    product = b_i * b_j
    den = product + delta
    over = 1 / den
    return b_i * over * artanh_ratio(delta * over, den / product)


@inlined
def chunk_scalars(s: Any, count: int, c: float) -> None:
    """``S`` and ``OUT = S c|x - y|^2`` of a chunk, weights included."""
    for k in range((count + 7) // 8 * 8):
        delta = c * s[DELTA + k]
        factor = s[AI + k] * edge_factor(s[BI + k], s[BJ + k], delta)
        s[S + k], s[OUT + k] = factor, factor * delta


@inlined
def chunk_products(
    first: int, r: int, start: int, stop: int, indptr: Any, indices: Any, z: Any, b: Any, d: int, last: int, s: Any
) -> None:
    """``|z_i - z_j|^2`` and the conformal factors of the edges from ``start`` to ``stop``; row ``r`` has the first."""
    e = start
    while e < stop:
        while indptr[first + r + 1] <= e:
            r += 1
        i = first + r
        upto = min(stop, indptr[i + 1])
        for o in range(e, upto):
            j, ahead = indices[o], indices[min(o + AHEAD, last)]
            delta = spread(0.0)
            for k in range(0, d, LANES):
                prefetch(z, ahead * d + k)
                t = wide(z, j * d + k) - wide(z, i * d + k)
                delta = fma(t, t, delta)
            s[DELTA + o - start], s[BI + o - start], s[BJ + o - start] = total(delta), b[i], b[j]
        e = upto


@block
def gather_edges(
    first: int, n: int, indptr: Any, indices: Any, d: int, z: Any, b: Any, values: Any, origin: Any, anchored: int,
    c: float, s: Any, v: int,
) -> None:  # fmt: skip
    """``v_r = sum_j a_rj log_{z_r}(z_j)`` for ``n`` rows from ``first`` on, and ``+ origin_r log_{z_r}(o)``."""
    for r in range(n):
        s[PUSHED + r] = 0.0
    for k in range(0, n * d, LANES):
        store(s, v + k, spread(0.0))
    end, last, row = indptr[first + n], indptr[first + n] - 1, 0
    for start in range(indptr[first], end, CHUNK):
        stop = min(start + CHUNK, end)
        chunk_products(first, row, start, stop, indptr, indices, z, b, d, last, s)
        for k in range(start, stop):
            s[AI + k - start] = values[k]
        chunk_scalars(s, stop - start, c)
        e = start
        while e < stop:
            while indptr[first + row + 1] <= e:
                row += 1
            upto = min(stop, indptr[first + row + 1])
            for o in range(e, upto):
                s[PUSHED + row] += s[OUT + o - start]
            # Columns outside, edges inside: the sum stays in a register.
            for k in range(0, d, LANES):
                own, sums = wide(z, (first + row) * d + k), load(s, v + row * d + k)
                for o in range(e, upto):
                    sums = fma(s[S + o - start], wide(z, indices[o] * d + k) - own, sums)
                store(s, v + row * d + k, sums)
            e = upto
    for r in range(n):
        b_i, pushed, pull = b[first + r], s[PUSHED + r], 0.0
        if anchored != 0:
            delta = 1 - b_i
            pull = origin[first + r] * edge_factor(b_i, 1.0, delta)
            # B (o - z) - c|z|^2 z = -z
            pushed += pull
        for k in range(0, d, LANES):
            at = v + r * d + k
            store(s, at, fma(-pushed, wide(z, (first + r) * d + k), b_i * load(s, at)))


@block
def gather_channels(
    first: int, n: int, indptr: Any, indices: Any, d: int, z: Any, b: Any, table: Any, index: Any, weighted: int,
    edge: Any, c: float, s: Any, v: int, push: int,
) -> None:  # fmt: skip
    """:func:`gather_edges` for weights per channel, without the row's scale; ``push`` is a buffer."""
    for k in range(0, n * d, LANES):
        store(s, v + k, spread(0.0))
        store(s, push + k, spread(0.0))
    end, last, row = indptr[first + n], indptr[first + n] - 1, 0
    for start in range(indptr[first], end, CHUNK):
        stop = min(start + CHUNK, end)
        chunk_products(first, row, start, stop, indptr, indices, z, b, d, last, s)
        for k in range(stop - start):
            s[AI + k] = edge[start + k] if weighted != 0 else 1.0
        chunk_scalars(s, stop - start, c)
        e = start
        while e < stop:
            while indptr[first + row + 1] <= e:
                row += 1
            upto = min(stop, indptr[first + row + 1])
            for k in range(0, d, LANES):
                at = row * d + k
                own, sums, pushes = wide(z, first * d + at), load(s, v + at), load(s, push + at)
                for o in range(e, upto):
                    a = wide(table, index[o] * d + k)
                    sums = fma(s[S + o - start] * a, wide(z, indices[o] * d + k) - own, sums)
                    pushes = fma(s[OUT + o - start], a, pushes)
                store(s, push + at, pushes)
                store(s, v + at, sums)
            e = upto
    for r in range(n):
        for k in range(0, d, LANES):
            at = r * d + k
            own = wide(z, first * d + at)
            store(s, v + at, b[first + r] * load(s, v + at) - load(s, push + at) * own)


@kernel
def forward_edges(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, d: Int, z: Reals, b: Doubles,
    values: Reals, origin: Reals, anchored: Int, z0: Reals, mode: Int, code: Int, e0: Double, e1: Double, e2: Double,
    c: Double, margin: Double, keep: Int, kept: Doubles, out: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """``out = F(z)`` for the rows of blocks ``begin .. end - 1``; the sums go to ``kept`` if ``keep``."""
    v, moved = BUFFERS, BUFFERS + STRIP * d
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            gather_edges(first, n, indptr, indices, d, z, b, values, origin, anchored, c, s, v)
            if keep != 0:
                for k in range(0, n * d, LANES):
                    store(kept, first * d + k, load(s, v + k))
            partial[part * PARTIALS + PROJECTED] += flow_strip(
                z, first, n, d, z0, s, v, moved, mode, code, e0, e1, e2, c, margin, out
            )


@kernel
def forward_channels(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, d: Int, z: Reals, b: Doubles,
    table: Reals, index: Ints, weighted: Int, edge: Reals, scale: Reals, z0: Reals, mode: Int, code: Int, e0: Double,
    e1: Double, e2: Double, c: Double, margin: Double, keep: Int, kept: Doubles, out: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """:func:`forward_edges` for weights per channel; ``kept`` are the sums before they are scaled."""
    v, moved, push = BUFFERS, BUFFERS + STRIP * d, BUFFERS + 2 * STRIP * d
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            gather_channels(first, n, indptr, indices, d, z, b, table, index, weighted, edge, c, s, v, push)
            for k in range(0, n * d, LANES):
                if keep != 0:
                    store(kept, first * d + k, load(s, v + k))
                store(s, v + k, load(s, v + k) * wide(scale, first * d + k))
            partial[part * PARTIALS + PROJECTED] += flow_strip(
                z, first, n, d, z0, s, v, moved, mode, code, e0, e1, e2, c, margin, out
            )


@block
def finish_rows(
    first: int, n: int, d: int, z: Any, b: Any, s: Any, gz: int, gu: int, g: Any, rest: Any, out: Any, known: Any
) -> None:
    """Write a strip's gradients: ``g`` at the sums, ``out`` at the points; ``known_i = (B_i, <g_i, z_i>)``.

    ``rest`` is what rounding takes off ``g``: the curvature's gradient is a sum of terms of both signs and needs it.
    """
    for r in range(n):
        along = spread(0.0)
        for k in range(0, d, LANES):
            at = r * d + k
            along = fma(load(s, gu + at), wide(z, first * d + at), along)
            store(g, first * d + at, load(s, gu + at))
            store(rest, first * d + at, load(s, gu + at) - wide(g, first * d + at))
            store(out, first * d + at, load(s, gz + at))
        known[2 * (first + r)], known[2 * (first + r) + 1] = b[first + r], total(along)


@block
def origin_backward(
    first: int, n: int, d: int, z: Any, b: Any, origin: Any, c: float, s: Any, gz: int, gu: int, gorigin: Any,
    partial: Any, line: int,
) -> None:  # fmt: skip
    """Gradient of ``origin_i log_{z_i}(o) = -origin_i B R(c|z|^2) z``, ``R = artanhc``, added to ``gz`` and others."""
    for r in range(n):
        along = spread(0.0)
        for k in range(0, d, LANES):
            along = fma(load(s, gu + r * d + k), wide(z, (first + r) * d + k), along)
        s[AI + r], s[BI + r], s[AO + r] = total(along), b[first + r], origin[first + r]
    for r in range(n):
        b_i, zg = s[BI + r], s[AI + r]
        delta = 1 - b_i
        ratio = artanh_ratio(delta, 1 / b_i)
        change = (b_i * artanh_ratio_slope(delta, 1 / b_i, ratio) - ratio) * zg
        gorigin[first + r] -= b_i * ratio * zg
        partial[line] -= s[AO + r] * change * delta / c
        s[S + r], s[OUT + r] = -s[AO + r] * b_i * ratio, -2 * c * s[AO + r] * change
    for r in range(n):
        for k in range(0, d, LANES):
            at = r * d + k
            more = fma(s[S + r], load(s, gu + at), s[OUT + r] * wide(z, first * d + at))
            store(s, gz + at, load(s, gz + at) + more)


@kernel
def backward_rows_edges(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, d: Int, z: Reals, b: Doubles,
    values: Reals, origin: Reals, anchored: Int, z0: Reals, mode: Int, code: Int, e0: Double, e1: Double, e2: Double,
    c: Double, margin: Double, keep: Int, kept: Doubles, grad: Reals, g: Reals, rest: Reals, gz: Reals, gz0: Reals,
    gorigin: Doubles, known: Doubles, partial: Doubles,
) -> None:  # fmt: skip
    """First pass: work out the sums again (unless ``kept``), bring the gradient of ``F`` back to them, row by row."""
    size = STRIP * d
    v, moved, gm, gz_, gu = BUFFERS, BUFFERS + size, BUFFERS + 2 * size, BUFFERS + 3 * size, BUFFERS + 4 * size
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            if keep != 0:
                for k in range(0, n * d, LANES):
                    store(s, v + k, load(kept, first * d + k))
            elif mode != 0:
                gather_edges(first, n, indptr, indices, d, z, b, values, origin, anchored, c, s, v)
            flow_strip_backward(
                z, first, n, d, z0, s, v, moved, gm, gz_, gu, mode, code, e0, e1, e2, c, margin, grad, gz0, partial,
                part * PARTIALS,
            )  # fmt: skip
            if anchored != 0:
                origin_backward(first, n, d, z, b, origin, c, s, gz_, gu, gorigin, partial, part * PARTIALS)
            finish_rows(first, n, d, z, b, s, gz_, gu, g, rest, gz, known)


@kernel
def backward_rows_channels(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, d: Int, z: Reals, b: Doubles,
    table: Reals, index: Ints, weighted: Int, edge: Reals, scale: Reals, z0: Reals, mode: Int, code: Int, e0: Double,
    e1: Double, e2: Double, c: Double, margin: Double, keep: Int, kept: Doubles, grad: Reals,
    g: Reals, rest: Reals, gz: Reals, gz0: Reals, gscale: Reals, known: Doubles, partial: Doubles,
) -> None:  # fmt: skip
    """:func:`backward_rows_edges` for weights per channel; ``g`` is at the sums before they are scaled."""
    size = STRIP * d
    v, moved, gm, gz_, gu = BUFFERS, BUFFERS + size, BUFFERS + 2 * size, BUFFERS + 3 * size, BUFFERS + 4 * size
    summed, push = BUFFERS + 5 * size, BUFFERS + 6 * size
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            if keep != 0:
                for k in range(0, n * d, LANES):
                    store(s, summed + k, load(kept, first * d + k))
            else:
                gather_channels(first, n, indptr, indices, d, z, b, table, index, weighted, edge, c, s, summed, push)
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
            finish_rows(first, n, d, z, b, s, gz_, gu, g, rest, gz, known)
