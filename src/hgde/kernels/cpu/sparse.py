"""Sparse matrix times dense matrix, by rows or by columns of the sparse one, and dropout of its values."""

from __future__ import annotations

from typing import Any

import numpy as np

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, inlined, kernel
from hgde.kernels.cpu.lanes import LANES, fma, load, store, zeros


@kernel
def product(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, ordered: Int, order: Ints,
    values: Reals, d: Int, dense: Reals, out: Reals,
) -> None:  # fmt: skip
    """``out_i = sum_p values[order[p]] dense[indices[p]]``; without ``order`` the values follow the rows.

    Zeros left behind by dropout are multiplied all the same: a branch on them is wrong half the time and costs more.
    """
    for i in range(blocks[begin], blocks[end]):
        first, last = indptr[i], indptr[i + 1]
        # Columns outside, entries inside: the sums stay in registers.
        for k in range(0, d, LANES):
            sums = zeros(dense)
            if ordered != 0:
                for p in range(first, last):
                    sums = fma(values[order[p]], load(dense, indices[p] * d + k), sums)
            else:
                for p in range(first, last):
                    sums = fma(values[p], load(dense, indices[p] * d + k), sums)
            store(out, i * d + k, sums)


@kernel
def scattered(
    begin: Int, end: Int, s: Doubles, rows: Int, columns: Int, indptr: Ints, indices: Ints, values: Reals, d: Int,
    strip: Int, dense: Reals, out: Reals,
) -> None:  # fmt: skip
    """The transpose's product, without one: ``out_j = sum_p values[p] dense[row of p]`` of the entries in column ``j``.

    A block is a strip of the dense columns, of which ``out`` stays in cache while rows go by. Entries are added in the
    order of the rows, as :func:`product` adds those of the transpose: the same bits.
    """
    for part in range(begin, end):
        low, high = part * strip, min(part * strip + strip, d)
        for j in range(columns):
            for k in range(low, high, LANES):
                store(out, j * d + k, zeros(dense))
        for i in range(rows):
            for p in range(indptr[i], indptr[i + 1]):
                at = indices[p] * d
                for k in range(low, high, LANES):
                    store(out, at + k, fma(values[p], load(dense, i * d + k), load(out, at + k)))


@inlined
def mixed(n: Any) -> Any:
    """A bijection of 32-bit numbers under which neighbours share no more bits than chance (MurmurHash3's last step)."""
    n = (n ^ (n >> 16)) * 0x85EBCA6B
    n = (n ^ (n >> 13)) * 0xC2B2AE35
    return n ^ (n >> 16)


@kernel
def drop(
    begin: Int, end: Int, s: Doubles, blocks: Ints, one: Int, two: Int, least: Int, scale: Double, values: Reals,
    out: Reals,
) -> None:  # fmt: skip
    """``out_i = scale values_i`` where the hash of ``i`` under two keys is ``least`` or more, else 0."""
    key, other, bound = np.uint32(one), np.uint32(two), np.uint32(least)
    for i in range(blocks[begin], blocks[end]):
        drawn = mixed(mixed(np.uint32(i) ^ key) + other)
        out[i] = values[i] * scale if drawn >= bound else 0.0
