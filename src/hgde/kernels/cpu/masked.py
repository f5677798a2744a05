"""Sums over all places under a mask: those before a row's cut of one table, the others of another.

``mask [n, N]``, ``table [N, 2, d]`` with ``d`` a multiple of sixteen. ``rank [n]`` has the rows in the order of their
cuts: four of them are worked together, so that an entry of the table is read once for four, and those that follow each
other have nearly all places on the same side.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Doubles, Int, Ints, Reals, block, kernel
from hgde.kernels.cpu.lanes import LANES, fma, load, store

TOGETHER = 4


@kernel
def permuted(begin: Int, end: Int, s: Doubles, blocks: Ints, nodes: Int, mask: Reals, order: Ints, out: Reals) -> None:
    """``out_ij = mask_i,order(j)``."""
    for i in range(blocks[begin], blocks[end]):
        for j in range(nodes):
            out[i * nodes + j] = mask[i * nodes + order[j]]


@block
def add_one(mask: Any, row: int, nodes: int, begin: int, end: int, d: int, side: int, table: Any, out: Any) -> None:
    """Places from ``begin`` to ``end`` to one row's sums."""
    m, at = row * nodes, (2 * row + side) * d
    for k in range(0, d, 2 * LANES):
        one, two = load(out, at + k), load(out, at + k + LANES)
        for j in range(begin, end):
            place = (2 * j + side) * d + k
            one = fma(mask[m + j], load(table, place), one)
            two = fma(mask[m + j], load(table, place + LANES), two)
        store(out, at + k, one)
        store(out, at + k + LANES, two)


@block
def add_four(
    mask: Any, r0: int, r1: int, r2: int, r3: int, nodes: int, begin: int, end: int, d: int, side: int, table: Any,
    out: Any,
) -> None:  # fmt: skip
    """Places from ``begin`` to ``end`` to the sums of four rows."""
    m0, m1, m2, m3 = r0 * nodes, r1 * nodes, r2 * nodes, r3 * nodes
    for k in range(0, d, 2 * LANES):
        own = side * d + k
        at0, at1, at2, at3 = 2 * r0 * d + own, 2 * r1 * d + own, 2 * r2 * d + own, 2 * r3 * d + own
        a0, b0 = load(out, at0), load(out, at0 + LANES)
        a1, b1 = load(out, at1), load(out, at1 + LANES)
        a2, b2 = load(out, at2), load(out, at2 + LANES)
        a3, b3 = load(out, at3), load(out, at3 + LANES)
        for j in range(begin, end):
            place = (2 * j + side) * d + k
            x, y = load(table, place), load(table, place + LANES)
            a0, b0 = fma(mask[m0 + j], x, a0), fma(mask[m0 + j], y, b0)
            a1, b1 = fma(mask[m1 + j], x, a1), fma(mask[m1 + j], y, b1)
            a2, b2 = fma(mask[m2 + j], x, a2), fma(mask[m2 + j], y, b2)
            a3, b3 = fma(mask[m3 + j], x, a3), fma(mask[m3 + j], y, b3)
        store(out, at0, a0)
        store(out, at0 + LANES, b0)
        store(out, at1, a1)
        store(out, at1 + LANES, b1)
        store(out, at2, a2)
        store(out, at2 + LANES, b2)
        store(out, at3, a3)
        store(out, at3 + LANES, b3)


@kernel
def sums(
    begin: Int, end: Int, s: Doubles, blocks: Ints, rows: Int, nodes: Int, d: Int, mask: Reals, cuts: Ints, rank: Ints,
    table: Reals, out: Reals,
) -> None:  # fmt: skip
    """Add ``sum_{j < cut} m_ij table_j0`` to ``out_i0`` and ``sum_{j >= cut} m_ij table_j1`` to ``out_i1``.

    Blocks are of fours of rows.
    """
    for four in range(blocks[begin], blocks[end]):
        first, after = TOGETHER * four, min(TOGETHER * four + TOGETHER, rows)
        low, high = cuts[rank[first]], cuts[rank[after - 1]]
        if after - first == TOGETHER:
            r0, r1, r2, r3 = rank[first], rank[first + 1], rank[first + 2], rank[first + 3]
            add_four(mask, r0, r1, r2, r3, nodes, 0, low, d, 0, table, out)
            add_four(mask, r0, r1, r2, r3, nodes, high, nodes, d, 1, table, out)
        else:
            for place in range(first, after):
                add_one(mask, rank[place], nodes, 0, low, d, 0, table, out)
                add_one(mask, rank[place], nodes, high, nodes, d, 1, table, out)
        for place in range(first, after):
            row = rank[place]
            add_one(mask, row, nodes, low, cuts[row], d, 0, table, out)
            add_one(mask, row, nodes, cuts[row], high, d, 1, table, out)


@block
def give_one(mask: Any, row: int, nodes: int, begin: int, end: int, d: int, side: int, grad: Any, out: Any) -> None:
    """One row's gradient to the places from ``begin`` to ``end``."""
    m, at = row * nodes, (2 * row + side) * d
    for k in range(0, d, 2 * LANES):
        x, y = load(grad, at + k), load(grad, at + k + LANES)
        for j in range(begin, end):
            place = (2 * j + side) * d + k
            store(out, place, fma(mask[m + j], x, load(out, place)))
            store(out, place + LANES, fma(mask[m + j], y, load(out, place + LANES)))


@block
def give_four(
    mask: Any, r0: int, r1: int, r2: int, r3: int, nodes: int, begin: int, end: int, d: int, side: int, grad: Any,
    out: Any,
) -> None:  # fmt: skip
    """The gradients of four rows to the places from ``begin`` to ``end``."""
    m0, m1, m2, m3 = r0 * nodes, r1 * nodes, r2 * nodes, r3 * nodes
    for k in range(0, d, 2 * LANES):
        own = side * d + k
        x0, y0 = load(grad, 2 * r0 * d + own), load(grad, 2 * r0 * d + own + LANES)
        x1, y1 = load(grad, 2 * r1 * d + own), load(grad, 2 * r1 * d + own + LANES)
        x2, y2 = load(grad, 2 * r2 * d + own), load(grad, 2 * r2 * d + own + LANES)
        x3, y3 = load(grad, 2 * r3 * d + own), load(grad, 2 * r3 * d + own + LANES)
        for j in range(begin, end):
            place = 2 * j * d + own
            a, b = load(out, place), load(out, place + LANES)
            a, b = fma(mask[m0 + j], x0, a), fma(mask[m0 + j], y0, b)
            a, b = fma(mask[m1 + j], x1, a), fma(mask[m1 + j], y1, b)
            a, b = fma(mask[m2 + j], x2, a), fma(mask[m2 + j], y2, b)
            a, b = fma(mask[m3 + j], x3, a), fma(mask[m3 + j], y3, b)
            store(out, place, a)
            store(out, place + LANES, b)


@kernel
def gradients(
    begin: Int, end: Int, s: Doubles, blocks: Ints, rows: Int, nodes: Int, d: Int, mask: Reals, cuts: Ints, rank: Ints,
    grad: Reals, out: Reals,
) -> None:  # fmt: skip
    """The transpose of :func:`sums`, added to ``out [N, 2, d]``. Blocks are of places; rows come one after the other,
    so that a sum is the same however many threads there are."""
    for part in range(begin, end):
        here, there = blocks[part], blocks[part + 1]
        for first in range(0, rows, TOGETHER):
            after = min(first + TOGETHER, rows)
            low = min(max(cuts[rank[first]], here), there)
            high = min(max(cuts[rank[after - 1]], here), there)
            if after - first == TOGETHER:
                r0, r1, r2, r3 = rank[first], rank[first + 1], rank[first + 2], rank[first + 3]
                give_four(mask, r0, r1, r2, r3, nodes, here, low, d, 0, grad, out)
                give_four(mask, r0, r1, r2, r3, nodes, high, there, d, 1, grad, out)
            else:
                for place in range(first, after):
                    give_one(mask, rank[place], nodes, here, low, d, 0, grad, out)
                    give_one(mask, rank[place], nodes, high, there, d, 1, grad, out)
            for place in range(first, after):
                row = rank[place]
                cut = min(max(cuts[row], here), there)
                give_one(mask, row, nodes, low, cut, d, 0, grad, out)
                give_one(mask, row, nodes, cut, high, d, 1, grad, out)
