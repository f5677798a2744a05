"""Passes over the edges of a graph: one step of diffusion. Its gradient is in :mod:`~hgde.kernels.cpu.gradients`,
whole trajectories in :mod:`~hgde.kernels.cpu.trajectories`.

A pass works on *blocks* of rows. Blocks depend on the graph alone, each writes its own rows and its own line
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

from hgde.compiler.dialect import block, inlined
from hgde.kernels.cpu.exponential import PULLED, PUSHED, SCALARS, rounded
from hgde.kernels.cpu.lanes import (
    LANES,
    fma,
    larger,
    line,
    load,
    most,
    prefetch,
    prefetch_to_write,
    spread,
    store,
    total,
    wide,
)
from hgde.kernels.cpu.rows import flow_strip
from hgde.kernels.cpu.scalars import SERIES_BELOW, artanh_ratio, artanh_ratio_near
from hgde.kernels.cpu.sizes import BUFFERS, CHUNK, EDGE_SCALARS, PARTIALS, PROJECTED, STRIP, strip_rows

AHEAD = 12
(
    DELTA, RATIO, BI, BJ, A, S, OUT, GE, GX, ALONG, TO_NEIGHBOUR, TO_NEIGHBOURS_Z, TO_G, TO_Z, VALUE, EC, PULL,
) = tuple(SCALARS + CHUNK * n for n in range(EDGE_SCALARS))  # fmt: skip
"""Where the matrices of a strip begin in the buffer of doubles."""
OVER = TO_NEIGHBOURS_Z


@inlined
def conformal(first: int, after: int, d: int, z: Any, c: float, margin: float, b: Any) -> None:
    """``b_i = 1 - c|z_i|^2`` of some rows, summed in doubles, never below that of the dtype's limit."""
    for i in range(first, after):
        p = spread(0.0)
        for k in range(0, d, LANES):
            own = wide(z, i * d + k)
            p = fma(own, own, p)
        b[i] = larger(1 - c * total(p), margin)


@inlined
def chunk_scalars(s: Any, count: int) -> None:
    """``S``, ``OUT = S c|x - y|^2`` and ``RATIO = artanhc`` of a chunk, weights included in the first two."""
    chunk_ratios(s, count)
    for k in range(rounded(count)):
        factor = s[A + k] * s[BI + k] * s[OVER + k] * s[RATIO + k]
        s[S + k], s[OUT + k] = factor, factor * s[DELTA + k]


@inlined
def chunk_ratios(s: Any, count: int) -> None:
    """``OVER = 1 / (B_x B_y + delta)`` and ``RATIO`` of a chunk. Where all points are close a short series does."""
    for k in range(rounded(count)):
        s[OVER + k] = 1 / (s[BI + k] * s[BJ + k] + s[DELTA + k])
        s[RATIO + k] = s[DELTA + k] * s[OVER + k]
    farthest = load(s, RATIO)
    for k in range(LANES, rounded(count), LANES):
        farthest = larger(load(s, RATIO + k), farthest)
    # What lies beyond the count is stale; at worst the longer way is taken in vain.
    if most(farthest) < SERIES_BELOW:
        for k in range(rounded(count)):
            s[RATIO + k] = artanh_ratio_near(s[RATIO + k])
    else:
        for k in range(rounded(count)):
            product = s[BI + k] * s[BJ + k]
            s[RATIO + k] = artanh_ratio(s[RATIO + k], (product + s[DELTA + k]) / product)


@inlined
def chunk_products(
    start: int, stop: int, owners: Any, indices: Any, z: Any, b: Any, d: int, last: int, c: float, s: Any
) -> None:
    """``c|z_i - z_j|^2`` and the conformal factors of the edges from ``start`` to ``stop``."""
    for o in range(start, stop):
        i, j, ahead = owners[o], indices[o], indices[min(o + AHEAD, last)]
        delta = spread(0.0)
        prefetch(b, ahead)
        for k in range(0, d, line(z)):
            prefetch(z, ahead * d + k)
        for k in range(0, d, LANES):
            t = wide(z, j * d + k) - wide(z, i * d + k)
            delta = fma(t, t, delta)
        s[DELTA + o - start], s[BI + o - start], s[BJ + o - start] = c * total(delta), b[i], b[j]


@inlined
def remember(s: Any, start: int, stop: int, keep: int, memo: Any, at: int, apart: int) -> None:
    """Keep ``DELTA`` and ``RATIO`` of a chunk, whose functions are dear, for the gradient; in halves ``apart``."""
    if keep != 0:
        for k in range(stop - start):
            memo[at + start + k], memo[at + apart + start + k] = s[DELTA + k], s[RATIO + k]


@block
def gather_edges(
    first: int, n: int, last: int, indptr: Any, indices: Any, owners: Any, d: int, z: Any, b: Any, values: Any,
    origin: Any, anchored: int, c: float, s: Any, v: int, keep: int, memo: Any, at: int, apart: int,
) -> None:  # fmt: skip
    """``v_r = sum_j a_rj log_{z_r}(z_j)`` for ``n`` rows from ``first`` on, and ``+ origin_r log_{z_r}(o)``.

    Edges are gone through without regard to rows: rows are short, and at the end of each a loop of its own would be
    left unforeseen by the processor. ``last`` is the last edge that may be looked ahead to. See :func:`remember` for
    the rest. Left behind: ``PULLED = sum_j s_rj (B_r + c|z_j - z_r|^2)``, weights included: the sum's derivative in its
    own point is minus that, besides what comes through the scalars.
    """
    for r in range(n):
        s[PUSHED + r], s[PULLED + r] = 0.0, 0.0
    for k in range(0, n * d, LANES):
        store(s, v + k, spread(0.0))
    end = indptr[first + n]
    for start in range(indptr[first], end, CHUNK):
        stop = min(start + CHUNK, end)
        chunk_products(start, stop, owners, indices, z, b, d, last, c, s)
        for k in range(start, stop):
            s[A + k - start] = values[k]
        chunk_scalars(s, stop - start)
        remember(s, start, stop, keep, memo, at, apart)
        for o in range(start, stop):
            i, j, p = owners[o], indices[o], o - start
            s[PUSHED + i - first] += s[OUT + p]
            s[PULLED + i - first] += s[S + p]
            for k in range(0, d, LANES):
                place = v + (i - first) * d + k
                store(s, place, fma(s[S + p], wide(z, j * d + k) - wide(z, i * d + k), load(s, place)))
    for r in range(n):
        b_i, pushed = b[first + r], s[PUSHED + r]
        s[PULLED + r] = fma(b_i, s[PULLED + r], pushed)
        if anchored != 0:
            # B (o - z) - c|z|^2 z = -z, and of a point at the origin the conformal factor is 1.
            pushed += origin[first + r] * b_i * artanh_ratio(1 - b_i, 1 / b_i)
        for k in range(0, d, LANES):
            place = v + r * d + k
            store(s, place, fma(-pushed, wide(z, (first + r) * d + k), b_i * load(s, place)))


@inlined
def keep_sums(first: int, n: int, d: int, s: Any, v: int, kept: Any, pulled: Any) -> None:
    """What :func:`gather_edges` made, for the gradient."""
    for r in range(n):
        pulled[first + r] = s[PULLED + r]
    for k in range(0, n * d, LANES):
        store(kept, first * d + k, load(s, v + k))


@block
def gather_channels(
    first: int, n: int, last: int, indptr: Any, indices: Any, owners: Any, d: int, z: Any, b: Any, table: Any, index:
    Any, weighted: int, edge: Any, c: float, s: Any, v: int, push: int, keep: int, memo: Any, at: int, apart: int,
) -> None:  # fmt: skip
    """:func:`gather_edges` for weights per channel, without the row's scale; ``push`` is a buffer."""
    for k in range(0, n * d, LANES):
        store(s, v + k, spread(0.0))
        store(s, push + k, spread(0.0))
    end, row = indptr[first + n], 0
    for start in range(indptr[first], end, CHUNK):
        stop = min(start + CHUNK, end)
        chunk_products(start, stop, owners, indices, z, b, d, last, c, s)
        for k in range(stop - start):
            s[A + k] = edge[start + k] if weighted != 0 else 1.0
        chunk_scalars(s, stop - start)
        remember(s, start, stop, keep, memo, at, apart)
        e = start
        while e < stop:
            while indptr[first + row + 1] <= e:
                row += 1
            upto = min(stop, indptr[first + row + 1])
            for k in range(0, d, LANES):
                place = row * d + k
                own, sums, pushes = wide(z, first * d + place), load(s, v + place), load(s, push + place)
                for o in range(e, upto):
                    a = wide(table, index[o] * d + k)
                    sums = fma(s[S + o - start] * a, wide(z, indices[o] * d + k) - own, sums)
                    pushes = fma(s[OUT + o - start], a, pushes)
                store(s, push + place, pushes)
                store(s, v + place, sums)
            e = upto
    for r in range(n):
        for k in range(0, d, LANES):
            place = r * d + k
            own = wide(z, first * d + place)
            store(s, v + place, b[first + r] * load(s, v + place) - load(s, push + place) * own)


@block
def step_edges(
    part: int, s: Any, blocks: Any, indptr: Any, indices: Any, owners: Any, d: int, z: Any, b: Any, values: Any, origin:
    Any, anchored: int, z0: Any, mode: int, code: int, e0: float, e1: float, e2: float, c: float, margin: float, keep:
    int, kept: Any, pulled: Any, memo: Any, apart: int, out: Any, b_out: Any, partial: Any,
) -> None:  # fmt: skip
    """``out = F(z)`` and its ``b_out`` for the rows of a block; if ``keep``, the sums go to ``kept``,
    ``PULLED`` to ``pulled``, and what is dear of the edges to ``memo`` unless ``apart`` is zero."""
    v, moved, rows = BUFFERS, BUFFERS + STRIP * d, strip_rows(d)
    last = indptr[blocks[part + 1]] - 1
    for first in range(blocks[part], blocks[part + 1], rows):
        n = min(rows, blocks[part + 1] - first)
        # The next strip, which no processor foresees between rows from anywhere; beyond the last it does no harm.
        for k in range((first + rows) * d, (first + 2 * rows) * d, line(z)):
            prefetch(z, k)
            prefetch_to_write(out, k)
        gather_edges(
            first, n, last, indptr, indices, owners, d, z, b, values, origin, anchored, c, s, v, keep * min(apart, 1),
            memo, 0, apart,
        )  # fmt: skip
        if keep != 0:
            keep_sums(first, n, d, s, v, kept, pulled)
        partial[part * PARTIALS + PROJECTED] += flow_strip(
            z, first, n, d, z0, s, v, moved, mode, code, e0, e1, e2, c, margin, out
        )
        conformal(first, first + n, d, out, c, margin, b_out)


@block
def step_channels(
    part: int, s: Any, blocks: Any, indptr: Any, indices: Any, owners: Any, d: int, z: Any, b: Any, table: Any, index:
    Any, weighted: int, edge: Any, scale: Any, z0: Any, mode: int, code: int, e0: float, e1: float, e2: float, c: float,
    margin: float, keep: int, kept: Any, memo: Any, apart: int, out: Any, b_out: Any, partial: Any,
) -> None:  # fmt: skip
    """:func:`step_edges` for weights per channel; ``kept`` are the sums before they are scaled."""
    v, moved, push, rows = BUFFERS, BUFFERS + STRIP * d, BUFFERS + 2 * STRIP * d, strip_rows(d)
    last = indptr[blocks[part + 1]] - 1
    for first in range(blocks[part], blocks[part + 1], rows):
        n = min(rows, blocks[part + 1] - first)
        gather_channels(
            first,
            n,
            last,
            indptr,
            indices,
            owners,
            d,
            z,
            b,
            table,
            index,
            weighted,
            edge,
            c,
            s,
            v,
            push,
            keep,
            memo,
            0,
            apart,
        )
        for k in range(0, n * d, LANES):
            if keep != 0:
                store(kept, first * d + k, load(s, v + k))
            store(s, v + k, load(s, v + k) * wide(scale, first * d + k))
        partial[part * PARTIALS + PROJECTED] += flow_strip(
            z, first, n, d, z0, s, v, moved, mode, code, e0, e1, e2, c, margin, out
        )
        conformal(first, first + n, d, out, c, margin, b_out)
