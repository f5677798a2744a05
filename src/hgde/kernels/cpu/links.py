"""Log-odds of links from distances: pairs forward, the pairs around each node backward, nothing of size pairs x width.

With ``delta = c|x - y|^2``, ``p = B_x B_y``, ``D = p + delta``, ``w = delta / D``, ``phi = artanh(sqrt w) / sqrt w``
and ``psi = phi / D``, the squared distance is ``f = 4 w phi^2 / c`` and

    df/dx = 8 psi ((x - y) + (delta / B_x) x),
    df/dc = -f/c + 4 psi delta / c^2 + 4 psi delta / (c p) (|x|^2 B_y + |y|^2 B_x),

where a point at the limit, whose ``B`` is held, has no part in ``|x|^2`` and ``delta / B_x``. So the backward pass
takes no logarithm: it reads ``psi`` and ``delta`` of a pair, and adds up differences in the order of the pairs. In flat
space ``f = |x - y|^2`` and ``df/dx = 2 (x - y)``: the same sum, without the term along ``x``.
"""

from __future__ import annotations

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, kernel
from hgde.kernels.cpu.lanes import LANES, fma, load, prefetch, spread, store, total, wide
from hgde.kernels.cpu.scalars import artanh_ratio
from hgde.kernels.cpu.sizes import CHUNK

DELTA, B_X, B_Y, IN_X, IN_Y, PSI, SLOPE, SQUARE = tuple(CHUNK * n for n in range(8))
_AHEAD = 6


@kernel
def norms(begin: Int, end: Int, s: Doubles, d: Int, z: Reals, out: Doubles) -> None:
    """``out_i = |z_i|^2``; a block is a node."""
    for i in range(begin, end):
        sums = spread(0.0)
        for m in range(0, d, LANES):
            x = wide(z, i * d + m)
            sums = fma(x, x, sums)
        out[i] = total(sums)


@kernel
def logits(
    begin: Int, end: Int, s: Doubles, count: Int, d: Int, first: Ints, second: Ints, z: Reals, b: Doubles,
    held: Doubles, c: Double, r: Double, rate: Double, out: Reals, psi: Doubles, across: Doubles, slope: Doubles,
) -> None:  # fmt: skip
    """``out = (r - f) rate``, and of each pair ``psi``, ``delta`` and ``df/dc``; a block is a chunk of pairs.

    ``held [N]`` is ``|x|^2``, 0 at the limit.
    """
    for part in range(begin, end):
        start = part * CHUNK
        n = min(CHUNK, count - start)
        for k in range(n):
            ahead = min(start + k + _AHEAD, count - 1)
            for m in range(0, d, 16):
                prefetch(z, first[ahead] * d + m)
                prefetch(z, second[ahead] * d + m)
            i, j = first[start + k], second[start + k]
            sums = spread(0.0)
            for m in range(0, d, LANES):
                t = wide(z, i * d + m) - wide(z, j * d + m)
                sums = fma(t, t, sums)
            s[DELTA + k] = c * total(sums)
            s[B_X + k], s[B_Y + k], s[IN_X + k], s[IN_Y + k] = b[i], b[j], held[i], held[j]
        for k in range(n, CHUNK):
            s[DELTA + k], s[B_X + k], s[B_Y + k], s[IN_X + k], s[IN_Y + k] = 0.0, 1.0, 1.0, 0.0, 0.0
        for k in range(CHUNK):
            delta, p = s[DELTA + k], s[B_X + k] * s[B_Y + k]
            low = p + delta
            over = 1.0 / low
            w = delta * over
            phi = artanh_ratio(w, low / p)
            square = 4.0 * w * phi * phi / c
            four = 4.0 * phi * over * delta / c
            s[PSI + k], s[SQUARE + k] = phi * over, square
            s[SLOPE + k] = (four - square) / c + four / p * (s[IN_X + k] * s[B_Y + k] + s[IN_Y + k] * s[B_X + k])
        for k in range(n):
            out[start + k] = (r - s[SQUARE + k]) * rate
            psi[start + k], across[start + k], slope[start + k] = s[PSI + k], s[DELTA + k], s[SLOPE + k]


@kernel
def squares(
    begin: Int, end: Int, s: Doubles, count: Int, d: Int, first: Ints, second: Ints, z: Reals, out: Reals
) -> None:  # fmt: skip
    """``|z_i - z_j|^2`` of each pair, in flat space; a block is a chunk of pairs."""
    for k in range(begin * CHUNK, min(end * CHUNK, count)):
        ahead = min(k + _AHEAD, count - 1)
        for m in range(0, d, 16):
            prefetch(z, first[ahead] * d + m)
            prefetch(z, second[ahead] * d + m)
        i, j = first[k], second[k]
        sums = spread(0.0)
        for m in range(0, d, LANES):
            t = wide(z, i * d + m) - wide(z, j * d + m)
            sums = fma(t, t, sums)
        out[k] = total(sums)


@kernel
def around(
    begin: Int, end: Int, s: Doubles, nodes: Int, count: Int, first: Ints, second: Ints, start: Ints, pair: Ints,
    other: Ints,
) -> None:  # fmt: skip
    """The pairs around each node in their order: places ``start [N + 1]`` in ``pair, other [2 count]``. One block."""
    for i in range(nodes + 1):
        start[i] = 0
    for k in range(count):
        start[first[k]] += 1
        start[second[k]] += 1
    place = 0
    for i in range(nodes + 1):
        here = start[i]
        start[i] = place
        place += here
    for k in range(count):
        at = start[first[k]]
        pair[at], other[at] = k, second[k]
        start[first[k]] = at + 1
        at = start[second[k]]
        pair[at], other[at] = k, first[k]
        start[second[k]] = at + 1
    for i in range(nodes, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0


@kernel
def gradient(
    begin: Int, end: Int, s: Doubles, nodes: Int, size: Int, d: Int, start: Ints, pair: Ints, other: Ints, z: Reals,
    bend: Doubles, weight: Doubles, across: Doubles, gz: Reals,
) -> None:  # fmt: skip
    """``gz_i = sum_p weight_p ((z_i - z_j) + bend_i delta_p z_i)``; ``bend = 1 / B``, 0 at the limit."""
    for i in range(begin * size, min(end * size, nodes)):
        for m in range(0, d, LANES):
            store(s, m, spread(0.0))
        along = 0.0
        for at in range(start[i], start[i + 1]):
            ahead = other[min(at + _AHEAD, start[nodes] - 1)]
            for m in range(0, d, 16):
                prefetch(z, ahead * d + m)
            p, j = pair[at], other[at]
            along += weight[p] * across[p]
            for m in range(0, d, LANES):
                t = wide(z, i * d + m) - wide(z, j * d + m)
                store(s, m, fma(weight[p], t, load(s, m)))
        along *= bend[i]
        for m in range(0, d, LANES):
            store(gz, i * d + m, fma(along, wide(z, i * d + m), load(s, m)))
