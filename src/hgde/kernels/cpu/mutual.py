"""The gradient of a step along edges that all go both ways: one visit for an edge and its reverse.

Both directions share the distance and the dear functions of it. So a first pass, by rows, brings the gradient back to
the sums and leaves it beside the points, and a second visits the edges: row ``i`` finds point and gradient of its
neighbour ``j`` in one place, and takes what it gets as receiver of ``(i, j)`` and as sender of ``(j, i)`` together.
Nothing is left for edges and nothing is scattered. :mod:`~hgde.kernels.cpu.gradients` serves other patterns.

With ``f_ij = a_ij R B_i h_i``, ``h_i = B_i <g_i, z_j - z_i> - delta <g_i, z_i>``, ``R = artanhc / den``, the row takes
the derivatives of ``f_ij + f_ji`` in its own point. Those of ``f_ij`` in the curvature are counted once, by its
receiver. What a row gets as a receiver nearly cancels with what its exponential gave. So the two are joined before they
are rounded, by a factor that the pass which made the sums has left, and for itself a row has its gradient unrounded.
"""

from __future__ import annotations

from typing import Any

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
    OVER,
    PULL,
    RATIO,
    TO_NEIGHBOUR,
    TO_Z,
    VALUE,
    A,
    S,
    chunk_ratios,
)  # fmt: skip
from hgde.kernels.cpu.elementary import reals
from hgde.kernels.cpu.exponential import GX as ROW_GX
from hgde.kernels.cpu.exponential import PULLED, XV, rounded
from hgde.kernels.cpu.exponential import B as ROW_B
from hgde.kernels.cpu.lanes import LANES, fma, line, load, prefetch, spread, store, total, wide, widened, zeros
from hgde.kernels.cpu.maps import put
from hgde.kernels.cpu.scalars import artanh_ratio_slope
from hgde.kernels.cpu.sizes import BUFFERS, PARTIALS, STRIP, pairs_together, strip_rows

A_BACK, GE_BACK, GX_BACK = S, OUT, PULL
"""Of the reverse edge: its weight, ``<g_j, z_i - z_j>`` and ``<g_j, z_j>``."""
SUM_Z = XV
"""What a row's point is multiplied by in the end."""


@block
def leave_rows(first: int, n: int, d: int, b: Any, g: Any, s: Any, gz: int, gu: int, nodes: Any, own: Any) -> None:
    """``1 - c|z_i|^2`` and ``<g_i, z_i>`` of a strip's rows, for their neighbours, and for themselves what is lost of
    ``g`` by rounding, and ``gz`` with what ``g`` gives a receiver's own point."""
    for r in range(n):
        nodes[2 * (first + r)], nodes[2 * (first + r) + 1] = b[first + r], s[ROW_GX + r]
        for k in range(0, d, LANES):
            at, place = r * d + k, 2 * (first + r) * d + k
            along = load(s, gu + at)
            store(own, place, along - wide(g, place + d))
            store(own, place + d, fma(-s[PULLED + r], along, load(s, gz + at)))


@block
def leave_bystanders(
    part: int, parts: int, moved: Any, present: Any, earlier: Any, d: int, z: Any, b: Any, g: Any, nodes: Any, own: Any
) -> None:  # fmt: skip
    """Rows that a step did not move, so that no gradient arrives there: those that are ``present`` are neighbours of
    ``moved`` ones, and their points count; the others are neighbours of these, and whatever is finite will do for them.
    The three are blocks of rows; a part takes an even share of the rows beyond those moved."""
    beyond, more = moved[parts], earlier[parts] - moved[parts]
    for i in range(beyond + more * part // parts, beyond + more * (part + 1) // parts):
        nodes[2 * i], nodes[2 * i + 1] = 1.0, 0.0
        if i < present[parts]:
            nodes[2 * i] = b[i]
        for k in range(0, d, LANES):
            point = zeros(g)
            if i < present[parts]:
                point = load(z, i * d + k)
            store(g, 2 * i * d + k, point)
            store(g, 2 * i * d + d + k, zeros(g))
            for part in range(2):
                store(own, (2 * i + part) * d + k, zeros(own))


@inlined
def mutual_products(
    first: int, start: int, stop: int, last: int, owners: Any, indices: Any, d: int, g: Any, nodes: Any,
    values: Any, back: Any, c: float, s: Any, own_z: int, own_g: int,
) -> None:  # fmt: skip
    """Inner products and scalars of the edges of a chunk."""
    for o in range(start, stop):
        i, j, ahead, p = owners[o], indices[o], indices[min(o + AHEAD, last)], o - start
        at, mine = 2 * j * d, (i - first) * d
        prefetch(nodes, 2 * ahead)
        for k in range(2 * ahead * d, 2 * (ahead + 1) * d, line(g)):
            prefetch(g, k)
        delta, here, there = spread(0.0), spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            t = wide(g, at + k) - load(s, own_z + mine + k)
            here = fma(load(s, own_g + mine + k), t, here)
            there = fma(wide(g, at + d + k), t, there)
            delta = fma(t, t, delta)
        s[DELTA + p], s[GE + p], s[GE_BACK + p] = c * total(delta), total(here), -total(there)
        s[A + p], s[A_BACK + p] = values[o], back[o]
        s[BI + p], s[GX + p] = s[ROW_B + i - first], s[ROW_GX + i - first]
        s[BJ + p], s[GX_BACK + p] = nodes[2 * j], nodes[2 * j + 1]


@inlined
def mutual_terms(n: int, c: float, s: Any) -> None:
    """What the rows of a chunk's edges get, as owners and as senders."""
    for k in range(rounded(n)):
        b_i, b_j, delta, ratio, over = s[BI + k], s[BJ + k], s[DELTA + k], s[RATIO + k], s[OVER + k]
        product = b_i * b_j
        den = product + delta
        slope = artanh_ratio_slope(delta * over, den / product, ratio)
        scale = ratio * over
        h_i, h_j = b_i * s[GE + k] - delta * s[GX + k], b_j * s[GE_BACK + k] - delta * s[GX_BACK + k]
        a_i, a_j = s[A + k] * b_i, s[A_BACK + k] * b_j
        f_den = -(scale + slope * delta * over * over) * over
        f_ratio = slope * over * over + f_den
        in_i, in_j = a_i * h_i, a_j * h_j
        f_delta = in_i * f_ratio - a_i * s[GX + k] * scale
        f_b = s[A + k] * (h_i + b_i * s[GE + k]) * scale + in_i * f_den * b_j
        s[EC + k] = f_delta * delta - f_b * (1 - b_i) - in_i * f_den * b_i * (1 - b_j)
        f_delta += in_j * f_ratio - a_j * s[GX_BACK + k] * scale
        f_b += in_j * f_den * b_j
        s[VALUE + k] = h_i * b_i * scale
        s[ALONG + k] = -2 * c * f_delta
        s[TO_NEIGHBOUR + k] = a_j * b_j * scale
        s[TO_Z + k] = -2 * c * f_b


@block
def mutual_edges(
    part: int, s: Any, blocks: Any, indptr: Any, indices: Any, owners: Any, d: int, g: Any, nodes: Any,
    own: Any, values: Any, back: Any, c: float, wanted: int, gvalues: Any, gz: Any, add: int, partial: Any,
) -> None:  # fmt: skip
    """Second pass over a block: ``gz``, ``add``ed to what is there or not, after :func:`leave_rows` of all;
    ``gvalues`` only if ``wanted``."""
    size, rows = STRIP * d, strip_rows(d)
    own_z, own_g, sums = BUFFERS, BUFFERS + size, reals(s, BUFFERS + 2 * size, g)
    last = indptr[blocks[part + 1]] - 1
    for first in range(blocks[part], blocks[part + 1], rows):
        n = min(rows, blocks[part + 1] - first)
        for r in range(n):
            s[ROW_B + r], s[ROW_GX + r] = nodes[2 * (first + r)], nodes[2 * (first + r) + 1]
            s[SUM_Z + r] = 0.0
            for k in range(0, d, LANES):
                at = 2 * (first + r) * d + k
                store(s, own_z + r * d + k, wide(g, at))
                store(s, own_g + r * d + k, wide(g, at + d) + wide(own, at))
                store(sums, r * d + k, zeros(g))
        end, ec = indptr[first + n], 0.0
        for start in range(indptr[first], end, pairs_together(d)):
            stop = min(start + pairs_together(d), end)
            mutual_products(first, start, stop, last, owners, indices, d, g, nodes, values, back, c, s, own_z, own_g)
            chunk_ratios(s, stop - start)
            mutual_terms(stop - start, c, s)
            if wanted != 0:
                for o in range(start, stop):
                    gvalues[o] += s[VALUE + o - start]
            for o in range(start, stop):
                r, j, p = owners[o] - first, indices[o], o - start
                s[SUM_Z + r] += s[TO_Z + p]
                ec += s[EC + p]
                for k in range(0, d, LANES):
                    t = load(g, 2 * j * d + k) - load(g, 2 * (first + r) * d + k)
                    across = fma(s[TO_NEIGHBOUR + p], load(g, 2 * j * d + d + k), load(sums, r * d + k))
                    store(sums, r * d + k, fma(s[ALONG + p], t, across))
        for r in range(n):
            for k in range(0, d, LANES):
                at, place = r * d + k, 2 * (first + r) * d + d + k
                rest = fma(s[SUM_Z + r], load(s, own_z + at), wide(own, place))
                put(gz, (first + r) * d + k, rest + widened(load(sums, at)), add)
        partial[part * PARTIALS] += ec / c
