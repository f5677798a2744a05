"""The second backward pass: what every edge contributes to the gradients of its two ends, in one visit of each pair.

``around, neighbours, in_edge, out_edge`` list all neighbours of a node with the edge's place among the graph's edges in
either direction, -1 where there is none. The distance, and with it every transcendental function, is shared by the two
directions.
"""

from __future__ import annotations

from typing import Any

from hgde.kernels.cpu.compile import Double, Doubles, Int, Ints, Reals, inlined, kernel
from hgde.kernels.cpu.edges import (
    AHEAD,
    AI,
    ALONG,
    AO,
    BI,
    BJ,
    BUFFERS,
    DELTA,
    EC,
    GEI,
    GEO,
    GXI,
    GXO,
    OUT,
    PULL,
    TO_G,
    TO_NEIGHBOUR,
    TO_Z,
    VALUE,
)  # fmt: skip
from hgde.kernels.cpu.lanes import LANES, fma, load, prefetch, spread, store, total, wide, widened, zeros
from hgde.kernels.cpu.scalars import artanh_ratio, artanh_ratio_slope
from hgde.kernels.cpu.sizes import CHUNK, PARTIALS


@inlined
def pair_terms(
    b_x: float, b_y: float, delta: float, ratio: float, slope: float, over: float, t1: float, t2: float, c: float
) -> tuple[float, float, float, float, float]:
    """Derivatives of ``f = <g, log_x(y)>`` for one pair, ``t1 = <g, y - x>``, ``t2 = <g, x>``, ``delta = c|x - y|^2``.

    Returns ``(f, s, df/d|x-y|^2, df/dB_x, df/dB_y)`` with ``log_x(y) = s (B_x (y - x) - delta x)``.
    """
    s = b_x * ratio * over
    h = b_x * t1 - delta * t2
    f_w = h * b_x * slope * over
    f_den = -(h * s + f_w * delta * over) * over
    f_delta = c * (-s * t2 + f_w * over + f_den)
    f_x = s * t1 + h * ratio * over + f_den * b_y
    return h * s, s, f_delta, f_x, f_den * b_x


@inlined
def chunk_terms(n: int, c: float, s: Any) -> None:
    """Everything the edges of a chunk contribute, in both directions, from their inner products."""
    for k in range((n + 7) // 8 * 8):
        b_i, b_j, squared = s[BI + k], s[BJ + k], s[DELTA + k]
        delta = c * squared
        product = b_i * b_j
        den = product + delta
        over, inverse_rest = 1 / den, den / product
        ratio = artanh_ratio(delta * over, inverse_rest)
        slope = artanh_ratio_slope(delta * over, inverse_rest, ratio)
        a = s[AI + k]
        f, factor, f_delta, f_x, f_y = pair_terms(b_i, b_j, delta, ratio, slope, over, s[GEI + k], s[GXI + k], c)
        along, to_z = a * f_delta, a * f_x
        s[VALUE + k], s[PULL + k], s[OUT + k] = f, factor * b_i, factor * delta
        s[TO_G + k] = -a * factor * (b_i + delta)
        s[EC + k] = a * (f_delta * squared - f_x * (1 - b_i) - f_y * (1 - b_j)) / c
        a = s[AO + k]
        f, factor, f_delta, f_x, f_y = pair_terms(b_j, b_i, delta, ratio, slope, over, -s[GEO + k], s[GXO + k], c)
        s[ALONG + k] = -2 * (along + a * f_delta)
        s[TO_Z + k] = -2 * c * (to_z + a * f_y)
        s[TO_NEIGHBOUR + k] = a * factor * b_j


@inlined
def add_row(i: int, d: int, z: Any, g: Any, to_g: float, to_z: float, s: Any, sums: int, gz: Any) -> None:
    """``gz_i`` from what it holds, the sums over the edges, and their parts along ``g_i`` and ``z_i``."""
    for k in range(0, d, LANES):
        own = fma(to_g, wide(g, i * d + k), fma(to_z, wide(z, i * d + k), load(s, sums + k)))
        store(gz, i * d + k, wide(gz, i * d + k) + own)
        store(s, sums + k, spread(0.0))


@kernel
def backward_edges(
    begin: Int, end: Int, s: Doubles, blocks: Ints, around: Ints, neighbours: Ints, in_edge: Ints, out_edge: Ints,
    d: Int, z: Reals, g: Reals, rest: Reals, known: Doubles, values: Reals, c: Double, gz: Reals, wanted: Int,
    gvalues: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """``gz_i += ...`` from every edge that arrives at ``i`` or leaves it; ``gvalues`` only if ``wanted``."""
    sums, mine = BUFFERS, BUFFERS + d
    for k in range(0, d, LANES):
        store(s, sums + k, spread(0.0))
    for part in range(begin, end):
        low, high = blocks[part], blocks[part + 1]
        row, summed, to_g, to_z, ec = low, low, 0.0, 0.0, 0.0
        last = around[high] - 1
        for start in range(around[low], around[high], CHUNK):
            stop = min(start + CHUNK, around[high])
            e, i = start, row
            while e < stop:
                while around[i + 1] <= e:
                    i += 1
                upto = min(stop, around[i + 1])
                b_i, zg = known[2 * i], known[2 * i + 1]
                # The row's own gradient before it was rounded: the curvature's is a sum of terms of both signs.
                for k in range(0, d, LANES):
                    store(s, mine + k, wide(g, i * d + k) + wide(rest, i * d + k))
                for place in range(e, upto):
                    o = place - start
                    j, ahead = neighbours[place], neighbours[min(place + AHEAD, last)]
                    here, there = in_edge[place], out_edge[place]
                    prefetch(values, max(out_edge[min(place + AHEAD, last)], 0))
                    delta, ge_in, ge_out = spread(0.0), spread(0.0), spread(0.0)
                    for k in range(0, d, LANES):
                        prefetch(z, ahead * d + k)
                        prefetch(g, ahead * d + k)
                        t = wide(z, j * d + k) - wide(z, i * d + k)
                        delta = fma(t, t, delta)
                        ge_in = fma(load(s, mine + k), t, ge_in)
                        ge_out = fma(wide(g, j * d + k), t, ge_out)
                    s[DELTA + o], s[GEI + o], s[GEO + o] = total(delta), total(ge_in), total(ge_out)
                    s[BI + o], s[GXI + o], s[BJ + o], s[GXO + o] = b_i, zg, known[2 * j], known[2 * j + 1]
                    s[AI + o] = values[here] if here >= 0 else 0.0
                    s[AO + o] = values[there] if there >= 0 else 0.0
                e = upto
            chunk_terms(stop - start, c, s)
            e = start
            while e < stop:
                while around[row + 1] <= e:
                    row += 1
                if row != summed:
                    add_row(summed, d, z, g, to_g, to_z, s, sums, gz)
                    summed, to_g, to_z = row, 0.0, 0.0
                upto = min(stop, around[row + 1])
                for o in range(e - start, upto - start):
                    ec += s[EC + o]
                    to_z += s[TO_Z + o]
                    to_g += s[TO_G + o]
                if wanted != 0:
                    for place in range(e, upto):
                        if in_edge[place] >= 0:
                            gvalues[in_edge[place]] += s[VALUE + place - start]
                for k in range(0, d, LANES):
                    own, here = load(z, row * d + k), zeros(z)
                    for place in range(e, upto):
                        o, at = place - start, neighbours[place] * d + k
                        here = fma(s[ALONG + o], load(z, at) - own, fma(s[TO_NEIGHBOUR + o], load(g, at), here))
                    store(s, sums + k, load(s, sums + k) + widened(here))
                e = upto
        if high > low:
            add_row(summed, d, z, g, to_g, to_z, s, sums, gz)
        partial[part * PARTIALS] += ec


@kernel
def backward_channels(
    begin: Int, end: Int, s: Doubles, blocks: Ints, group: Int, around: Ints, neighbours: Ints, in_edge: Ints,
    out_edge: Ints, d: Int, z: Reals, g: Reals, rest: Reals, known: Doubles, table: Reals, index: Ints, weighted: Int,
    edge: Reals, c: Double, gz: Reals, gtable: Reals, stride: Int, wanted: Int, gedge: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """The same for weights per channel; block ``p`` adds to copy ``p // group`` of the table's gradient."""
    sums, mine = BUFFERS, BUFFERS + d
    for k in range(0, d, LANES):
        store(s, sums + k, spread(0.0))
    for part in range(begin, end):
        low, high = blocks[part], blocks[part + 1]
        row, summed, to_z, ec = low, low, 0.0, 0.0
        last, copy = around[high] - 1, part // group * stride
        for start in range(around[low], around[high], CHUNK):
            stop = min(start + CHUNK, around[high])
            e, i = start, row
            while e < stop:
                while around[i + 1] <= e:
                    i += 1
                upto = min(stop, around[i + 1])
                b_i = known[2 * i]
                for k in range(0, d, LANES):
                    store(s, mine + k, wide(g, i * d + k) + wide(rest, i * d + k))
                for place in range(e, upto):
                    o = place - start
                    j, ahead = neighbours[place], neighbours[min(place + AHEAD, last)]
                    here, there = in_edge[place], out_edge[place]
                    row_in, row_out = index[max(here, 0)] * d, index[max(there, 0)] * d
                    prefetch(index, max(out_edge[min(place + AHEAD, last)], 0))
                    delta, ge_in, ge_out = spread(0.0), spread(0.0), spread(0.0)
                    gx_in, gx_out = spread(0.0), spread(0.0)
                    for k in range(0, d, LANES):
                        prefetch(z, ahead * d + k)
                        prefetch(g, ahead * d + k)
                        y, own = wide(z, j * d + k), wide(z, i * d + k)
                        outward = wide(g, j * d + k) * wide(table, row_out + k)
                        inward = load(s, mine + k) * wide(table, row_in + k)
                        t = y - own
                        delta = fma(t, t, delta)
                        ge_in = fma(inward, t, ge_in)
                        ge_out = fma(outward, t, ge_out)
                        gx_in = fma(inward, own, gx_in)
                        gx_out = fma(outward, y, gx_out)
                    s[DELTA + o], s[GEI + o], s[GEO + o] = total(delta), total(ge_in), total(ge_out)
                    s[BI + o], s[BJ + o], s[GXI + o], s[GXO + o] = b_i, known[2 * j], total(gx_in), total(gx_out)
                    s[AI + o] = 0.0 if here < 0 else (edge[here] if weighted != 0 else 1.0)
                    s[AO + o] = 0.0 if there < 0 else (edge[there] if weighted != 0 else 1.0)
                e = upto
            chunk_terms(stop - start, c, s)
            e = start
            while e < stop:
                while around[row + 1] <= e:
                    row += 1
                if row != summed:
                    add_row(summed, d, z, g, 0.0, to_z, s, sums, gz)
                    summed, to_z = row, 0.0
                upto = min(stop, around[row + 1])
                for o in range(e - start, upto - start):
                    ec += s[EC + o]
                    to_z += s[TO_Z + o]
                for k in range(0, d, LANES):
                    own, here, ours = load(z, row * d + k), zeros(z), load(g, row * d + k)
                    for place in range(e, upto):
                        o, at = place - start, neighbours[place] * d + k
                        row_in, row_out = index[max(in_edge[place], 0)] * d, index[max(out_edge[place], 0)] * d
                        outward = load(g, at) * load(table, row_out + k)
                        here = fma(s[ALONG + o], load(z, at) - own, fma(s[TO_NEIGHBOUR + o], outward, here))
                        here = fma(s[TO_G + o] * ours, load(table, row_in + k), here)
                    store(s, sums + k, load(s, sums + k) + widened(here))
                if wanted != 0:
                    for place in range(e, upto):
                        if in_edge[place] >= 0:
                            gedge[in_edge[place]] += s[VALUE + place - start]
                for place in range(e, upto):
                    if in_edge[place] >= 0:
                        o, at, row_in = place - start, neighbours[place] * d, copy + index[in_edge[place]] * d
                        pull, out = s[AI + o] * s[PULL + o], s[AI + o] * s[OUT + o]
                        for k in range(0, d, LANES):
                            own = load(z, row * d + k)
                            log = pull * (load(z, at + k) - own) - out * own
                            store(gtable, row_in + k, fma(load(g, row * d + k), log, load(gtable, row_in + k)))
                e = upto
        partial[part * PARTIALS] += ec
        if high > low:
            add_row(summed, d, z, g, 0.0, to_z, s, sums, gz)
