"""A model's first layer in one call each way: sparse features times a matrix, translation, activation, ``exp_o``.

``z = exp_o^t(act(log_o^s(exp_o^s(u) ⊕ b)))`` with ``u = dropout(x) W``, the spaces ``s`` and ``t`` having curvatures of
their own. A strip of rows goes through all of it while it is in cache, in doubles from the product on. Dropout is a
hash of an entry's place (:mod:`hgde.kernels.cpu.sparse`), worked out where the entry is used, so no dropped values are
stored. The backward pass goes by rows to the gradient of the product, then by columns to that of the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, block, inlined, kernel
from hgde.kernels.cpu.exponential import activate, activate_backward
from hgde.kernels.cpu.lanes import LANES, fma, load, spread, store, total, wide, zeros
from hgde.kernels.cpu.origin import A_H, A_NU, B_NU, NU, SN, A, B, H, coefficients, own_square, translation
from hgde.kernels.cpu.phases import meet, next_part, offset, take
from hgde.kernels.cpu.sizes import CHUNK, ENCODER_BUFFERS, EXP, STRIP, TRANSLATE
from hgde.kernels.cpu.sparse import mixed

SECOND = 10 * STRIP
"""Where the scalars of the exponential begin; before them those of the translation."""
ENTRIES = 20 * STRIP


@inlined
def entries(
    first: int, stop: int, ordered: int, order: Any, values: Any, drops: int, one: int, two: int, least: int,
    scale: float, s: Any,
) -> None:  # fmt: skip
    """The values of a chunk of entries after dropout, ``s[ENTRIES + ...]``."""
    key, other, bound = np.uint32(one), np.uint32(two), np.uint32(least)
    if ordered != 0:
        for p in range(first, stop):
            s[ENTRIES + p - first] = values[order[p]]
        if drops != 0:
            for p in range(first, stop):
                drawn = mixed(mixed(np.uint32(order[p]) ^ key) + other)
                s[ENTRIES + p - first] = s[ENTRIES + p - first] * scale if drawn >= bound else 0.0
    else:
        for p in range(first, stop):
            s[ENTRIES + p - first] = values[p]
        if drops != 0:
            for p in range(first, stop):
                drawn = mixed(mixed(np.uint32(p) ^ key) + other)
                s[ENTRIES + p - first] = s[ENTRIES + p - first] * scale if drawn >= bound else 0.0


@block
def product_row(
    begin: int, end: int, indices: Any, ordered: int, order: Any, values: Any, drops: int, one: int, two: int,
    least: int, scale: float, s: Any, d: int, dense: Any, out: Any, at: int,
) -> None:  # fmt: skip
    """``out[at:] = sum_p dropout(values)[p] dense[indices[p]]`` over the entries of a row, or of a column."""
    for k in range(0, d, LANES):
        store(out, at + k, zeros(dense))
    for first in range(begin, end, CHUNK):
        stop = min(first + CHUNK, end)
        entries(first, stop, ordered, order, values, drops, one, two, least, scale, s)
        for k in range(0, d, LANES):
            sums = load(out, at + k)
            for p in range(first, stop):
                sums = fma(s[ENTRIES + p - first], load(dense, indices[p] * d + k), sums)
            store(out, at + k, sums)


@block
def encode_strip(
    product: Any, first: int, n: int, d: int, point: Any, own: float, code: int, c: float, c_out: float, margin: float,
    s: Any, t: int,
) -> int:  # fmt: skip
    """Tangent vectors at ``s[t:]`` from products, and the coefficients of both maps; points projected."""
    coefficients(product, first, n, d, point, TRANSLATE, c, margin, s)
    translation(n, own, c, margin, s, 0)
    for r in range(n):
        for k in range(0, d, LANES):
            here = fma(s[A + r], wide(product, (first + r) * d + k), s[B + r] * wide(point, k))
            store(s, t + r * d + k, here)
    activate(s, t, n * d, code)
    return coefficients(offset(s, t), 0, n, d, point, EXP, c_out, margin, offset(s, SECOND))


@kernel
def forward(
    s: Doubles, sync: Ints, parts: Int, blocks: Ints, rows: Ints, indptr: Ints, indices: Ints, values: Reals, drops:
    Int, one: Int, two: Int, least: Int, scale: Double, d: Int, weight: Reals, point: Reals, code: Int, c: Double,
    c_out: Double, margin: Double, product: Reals, out: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """``out`` of some ``rows``, and for the backward pass the product; ``partial[block]`` counts points projected."""
    own, t = c * own_square(point, d), ENCODER_BUFFERS
    part = take(sync, 0, parts)
    while part < parts:
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            for i in range(first, first + n):
                row = rows[i]
                product_row(
                    indptr[row], indptr[row + 1], indices, 0, indices, values, drops, one, two, least, scale, s, d,
                    weight, product, i * d,
                )  # fmt: skip
            partial[part] += encode_strip(product, first, n, d, point, own, code, c, c_out, margin, s, t)
            for r in range(n):
                for k in range(r * d, r * d + d, LANES):
                    store(out, first * d + k, s[SECOND + A + r] * load(s, t + k))
        part = next_part(sync, 0, parts)
    meet(sync, 0, parts)


@block
def encode_backward(
    product: Any, first: int, n: int, d: int, point: Any, own: float, code: int, c: float, c_out: float, margin: float,
    s: Any, t: int, grad: Any, gproduct: Any, partial: Any, line: int, gpoint: Any, row: int,
) -> None:  # fmt: skip
    """From ``grad`` at the points: ``gproduct``; added to are ``partial``, of ``c`` and ``c_out``, and ``gpoint``."""
    encode_strip(product, first, n, d, point, own, code, c, c_out, margin, s, t)
    gt = t + STRIP * d
    for r in range(n):
        along = spread(0.0)
        for k in range(0, d, LANES):
            along = fma(wide(grad, (first + r) * d + k), load(s, t + r * d + k), along)
        slope = s[SECOND + A_NU + r] * total(along)
        partial[line + 1] += slope * s[SECOND + NU + r]
        twice, scale = 2 * c_out * slope, s[SECOND + A + r]
        for k in range(0, d, LANES):
            at = r * d + k
            store(s, gt + at, fma(scale, wide(grad, first * d + at), twice * load(s, t + at)))
    activate_backward(s, t, gt, n * d, code)
    for r in range(n):
        along, across = spread(0.0), spread(0.0)
        for k in range(0, d, LANES):
            g = load(s, gt + r * d + k)
            along = fma(g, wide(product, (first + r) * d + k), along)
            across = fma(g, wide(point, k), across)
        s[A_NU + r], s[B_NU + r] = total(along), total(across)
    translation(n, own, c, margin, s, 1)
    for r in range(n):
        partial[line] += s[A_NU + r] * s[NU + r] + s[A_H + r] * s[H + r] + s[SN + r] * own / c
        twice, h, m = 2 * c * s[A_NU + r], c * s[A_H + r], 2 * c * s[SN + r]
        for k in range(0, d, LANES):
            at = (first + r) * d + k
            x, g, b = wide(product, at), load(s, gt + r * d + k), wide(point, k)
            store(gproduct, at, fma(s[A + r], g, fma(twice, x, h * b)))
            store(gpoint, row + k, load(gpoint, row + k) + fma(s[B + r], g, fma(h, x, m * b)))


@kernel
def backward(
    s: Doubles, sync: Ints, parts: Int, blocks: Ints, columns: Int, cuts: Ints, start: Ints, rows: Ints, order: Ints,
    values: Reals, drops: Int, one: Int, two: Int, least: Int, scale: Double, d: Int, point: Reals, code: Int,
    c: Double, c_out: Double, margin: Double, product: Reals, grad: Reals, gproduct: Reals, gweight: Reals,
    partial: Doubles, gpoint: Doubles,
) -> None:  # fmt: skip
    """``gweight``; ``partial[block]`` are the gradients of both curvatures, ``gpoint[block]`` that of the point."""
    own, t = c * own_square(point, d), ENCODER_BUFFERS
    part = take(sync, 0, parts)
    while part < parts:
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            encode_backward(
                product, first, n, d, point, own, code, c, c_out, margin, s, t, grad, gproduct, partial, 2 * part,
                gpoint, part * d,
            )  # fmt: skip
        part = next_part(sync, 0, parts)
    meet(sync, 0, parts)
    part = take(sync, 1, columns)
    while part < columns:
        for j in range(cuts[part], cuts[part + 1]):
            product_row(
                start[j], start[j + 1], rows, 1, order, values, drops, one, two, least, scale, s, d, gproduct, gweight,
                j * d,
            )  # fmt: skip
        part = next_part(sync, 1, columns)
    meet(sync, 1, columns)
