"""Sums over all nodes under a mask: those before a row's cut of one table, the others of another.

``mask [n, N]`` is by the nodes' own numbers, ``table [N, 2, d]`` in the order in which they are cut; ``order [N]`` has
the number at each place. ``d`` is a multiple of sixteen.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Doubles, Int, Ints, Reals, block, kernel
from hgde.kernels.cpu.elementary import reals
from hgde.kernels.cpu.lanes import LANES, fma, load, store, zeros


@block
def add_up(kept: Any, begin: int, end: int, d: int, side: int, table: Any, out: Any, at: int) -> None:
    for k in range(0, d, 2 * LANES):
        one, two = zeros(table), zeros(table)
        for j in range(begin, end):
            place = (2 * j + side) * d + k
            one = fma(kept[j], load(table, place), one)
            two = fma(kept[j], load(table, place + LANES), two)
        store(out, at + k, one)
        store(out, at + k + LANES, two)


@kernel
def sums(
    begin: Int, end: Int, s: Doubles, blocks: Ints, nodes: Int, d: Int, mask: Reals, cuts: Ints, order: Ints,
    table: Reals, out: Reals,
) -> None:  # fmt: skip
    """``out_i0 = sum_{j < cut} m_ij table_j0``, ``out_i1 = sum_{j >= cut} m_ij table_j1``: ``[n, 2, d]``."""
    kept = reals(s, 0, mask)
    for i in range(blocks[begin], blocks[end]):
        for j in range(nodes):
            kept[j] = mask[i * nodes + order[j]]
        add_up(kept, 0, cuts[i], d, 0, table, out, 2 * i * d)
        add_up(kept, cuts[i], nodes, d, 1, table, out, (2 * i + 1) * d)


@block
def add_to(
    mask: Any, row: int, order: Any, begin: int, end: int, d: int, side: int, grad: Any, at: int, out: Any
) -> None:
    for k in range(0, d, 2 * LANES):
        one, two = load(grad, at + k), load(grad, at + k + LANES)
        for j in range(begin, end):
            kept, place = mask[row + order[j]], (2 * j + side) * d + k
            store(out, place, fma(kept, one, load(out, place)))
            store(out, place + LANES, fma(kept, two, load(out, place + LANES)))


@kernel
def spread(
    begin: Int, end: Int, s: Doubles, blocks: Ints, rows: Int, nodes: Int, d: Int, mask: Reals, cuts: Ints, order: Ints,
    grad: Reals, out: Reals,
) -> None:  # fmt: skip
    """The transpose of :func:`sums`, added to ``out [N, 2, d]``: blocks of places, rows one after the other."""
    for part in range(begin, end):
        first, after = blocks[part], blocks[part + 1]
        for i in range(rows):
            cut = min(max(cuts[i], first), after)
            add_to(mask, i * nodes, order, first, cut, d, 0, grad, 2 * i * d, out)
            add_to(mask, i * nodes, order, cut, after, d, 1, grad, (2 * i + 1) * d, out)
