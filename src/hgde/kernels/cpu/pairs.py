"""Tiles of the all-pairs sum: matrix products are torch's, everything between them is one pass over the tile.

Elements are worked out in the arrays' dtype, 64 columns at a time; sums of a row are doubles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hgde.kernels.cpu.compile import Double, Doubles, Int, Reals, block, inlined, kernel
from hgde.kernels.cpu.lanes import LANES, fma, larger, load, root, smaller, total
from hgde.kernels.cpu.scalars import artanh_ratio, sigmoid

CHUNK = 64
A, S, OUT, LOW, NEAR, GRAM, SCORE, SQUARE, B_COLUMN = tuple(CHUNK * n for n in range(9))
SCRATCH = 9 * CHUNK

_F: Any = np.float32
_SQRT_HALF_BITS = np.uint32(0x3F3504F3)
_TWO_23_BITS = np.uint32(0x4B000000)
_MANTISSA = np.uint32(23)
_BIAS = np.uint32(127)
_TWO_23 = _F(8388608.0)


@intrinsic
def bits32(typingctx: Any, x: Any) -> Any:
    """The bit pattern of a single."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(types.float32), codegen


@intrinsic
def from_bits32(typingctx: Any, n: Any) -> Any:
    """The single with a bit pattern."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), codegen


@intrinsic
def narrow(typingctx: Any, n: Any) -> Any:
    """The low 32 bits of a whole number, which numba widens at every step."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.trunc(args[0], ir.IntType(32))

    return types.uint32(types.uint64), codegen


@intrinsic
def is_single(typingctx: Any, array: Any) -> Any:
    """Whether an array holds singles; known while compiling, so that the other branch is dropped."""
    single = array.dtype == types.float32

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.IntType(1), int(single))

    return types.boolean(array), codegen


@inlined
def sigmoid32(x: Any) -> Any:
    """``1 / (1 + exp(-x))`` in single precision throughout: twice the lanes and half the terms."""
    y = smaller(abs(x), _F(80.0))
    n = narrow(bits32(fma(y, _F(1.44269504), _TWO_23)) - _TWO_23_BITS)
    whole = from_bits32(n | _TWO_23_BITS) - _TWO_23
    r = fma(whole, _F(-2.12194440e-4), fma(whole, _F(0.693359375), -y))
    p = fma(r, fma(r, fma(r, fma(r, _F(1 / 720), _F(1 / 120)), _F(1 / 24)), _F(1 / 6)), _F(0.5))
    decay = fma(r * r, p, _F(1.0) + r) * from_bits32(narrow(narrow(_BIAS - n) << _MANTISSA))
    small = decay / (_F(1.0) + decay)
    return _F(1.0) - small if x >= _F(0.0) else small


@inlined
def artanh_ratio32(w: Any, inverse_rest: Any) -> Any:
    """``artanh(sqrt w) / sqrt w`` in single precision throughout; ``inverse_rest = 1 / (1 - w)``."""
    r = root(larger(w, _F(0.02)))
    n = bits32((_F(1.0) + r) * (_F(1.0) + r) * inverse_rest)
    e = narrow(narrow(n - _SQRT_HALF_BITS) >> _MANTISSA)
    m = from_bits32(narrow(n - narrow(e << _MANTISSA)))
    s = (m - _F(1.0)) / (m + _F(1.0))
    t = s * s
    series = fma(t, fma(t, fma(t, fma(t, _F(1 / 9), _F(1 / 7)), _F(1 / 5)), _F(1 / 3)), _F(1.0))
    far = fma(from_bits32(e | _TWO_23_BITS) - _TWO_23, _F(0.34657359), s * series) / r
    near = fma(w, fma(w, fma(w, fma(w, _F(1 / 9), _F(1 / 7)), _F(1 / 5)), _F(1 / 3)), _F(1.0))
    return near if w < _F(0.02) else far


@inlined
def added(s: Any, at: int, count: int) -> float:
    """The sum of ``count`` doubles of a chunk, the places beyond them cleared."""
    for k in range(count, CHUNK):
        s[at + k] = 0.0
    sums = load(s, at)
    for k in range(LANES, CHUNK, LANES):
        sums = sums + load(s, at + k)
    return total(sums)


@kernel
def affinity(
    begin: Int, end: Int, s: Doubles, columns: Int, score: Reals, sums: Doubles, share: Double, adding: Int, out: Reals
) -> None:
    """``sums_i += sum_j sigmoid(score_ij)``; if ``adding``, ``out_ij += share sigmoid(score_ij) / sums_i`` instead."""
    for i in range(begin, end):
        for start in range(i * columns, (i + 1) * columns, CHUNK):
            n = min(CHUNK, (i + 1) * columns - start)
            for k in range(n):
                s[A + k] = sigmoid32(score[start + k]) if is_single(score) else sigmoid(score[start + k])
            if adding != 0:
                factor = share / sums[i]
                for k in range(n):
                    out[start + k] += s[A + k] * factor
            else:
                sums[i] += added(s, A, n)


@block
def chunk_single(s: Any, c: float, square: float, b: float, close: float, single: int) -> None:
    """The scalars of a chunk in single precision: ``A`` the weight, ``S``, ``OUT = S c|x - y|^2``, ``LOW`` the
    denominator and ``NEAR``, 1 where it is below ``close``."""
    c_, p, b_i, close_ = _F(c), _F(square), _F(b), _F(close)
    if single != 0:
        for k in range(CHUNK):
            s[A + k] = sigmoid32(_F(s[SCORE + k]))
    else:
        for k in range(CHUNK):
            s[A + k] = s[SCORE + k]
    for k in range(CHUNK):
        across = c_ * larger(p + _F(s[SQUARE + k]) - _F(2.0) * _F(s[GRAM + k]), _F(0.0))
        product = b_i * _F(s[B_COLUMN + k])
        den = product + across
        over = _F(1.0) / den
        value = _F(s[A + k]) * b_i * over * artanh_ratio32(across * over, den / product)
        s[S + k], s[OUT + k], s[LOW + k], s[NEAR + k] = value, value * across, den, 1.0 if den < close_ else 0.0


@block
def chunk_double(s: Any, c: float, square: float, b: float, close: float, single: int) -> None:
    """:func:`chunk_single` in double precision."""
    for k in range(CHUNK):
        s[A + k] = sigmoid(s[SCORE + k]) if single != 0 else s[SCORE + k]
    for k in range(CHUNK):
        across = c * larger(square + s[SQUARE + k] - 2 * s[GRAM + k], 0.0)
        product = b * s[B_COLUMN + k]
        den = product + across
        over = 1 / den
        value = s[A + k] * b * over * artanh_ratio(across * over, den / product)
        s[S + k], s[OUT + k], s[LOW + k], s[NEAR + k] = value, value * across, den, 1.0 if den < close else 0.0


@block
def recompute(
    i: int, start: int, n: int, offset: int, d: int, gram: Any, rows: Any, columns: Any, b: Any, b_columns: Any,
    c: float, close: float, s: Any,
) -> None:  # fmt: skip
    """Pairs of a chunk that are close together near the boundary: the distance must come from differences after all."""
    for k in range(n):
        if s[LOW + k] < 2 * close:
            j = offset + k
            delta = load(rows, i * d) * 0.0
            for m in range(0, d, LANES):
                t = load(columns, j * d + m) - load(rows, i * d + m)
                delta = fma(t, t, delta)
            across = c * total(delta)
            product = b[i] * b_columns[j]
            den = product + across
            value = s[A + k] * b[i] / den * artanh_ratio(across / den, den / product)
            gram[start + k], s[S + k], s[OUT + k] = value, value, value * across


@kernel
def pair_rows(
    begin: Int, end: Int, s: Doubles, count: Int, d: Int, gram: Reals, weight: Reals, single: Int, rows: Reals,
    columns: Reals, squares: Doubles, b: Doubles, column_squares: Doubles, b_columns: Doubles, c: Double,
    close: Double, sums: Doubles,
) -> None:  # fmt: skip
    """Turn ``gram_ij = <x_i, y_j>`` into ``s_ij`` in place; ``sums_i += (sum of weights, sum s, sum s c|x - y|^2)``.

    With ``single`` the weights are still scores of the only head, normalised at the end.
    """
    for i in range(begin, end):
        for start in range(0, count, CHUNK):
            n = min(CHUNK, count - start)
            at = i * count + start
            # Through the buffer, so that the long loop has one array, which the compiler sees not to overlap.
            for k in range(n):
                s[GRAM + k] = gram[at + k]
            for k in range(n):
                s[SCORE + k] = weight[at + k]
            for k in range(n):
                s[SQUARE + k] = column_squares[start + k]
            for k in range(n):
                s[B_COLUMN + k] = b_columns[start + k]
            if is_single(gram):
                chunk_single(s, c, squares[i], b[i], close, single)
            else:
                chunk_double(s, c, squares[i], b[i], close, single)
            for k in range(n):
                gram[at + k] = s[S + k]
            if added(s, NEAR, n) > 0:
                recompute(i, at, n, start, d, gram, rows, columns, b, b_columns, c, close, s)
            sums[3 * i] += added(s, A, n)
            sums[3 * i + 1] += added(s, S, n)
            sums[3 * i + 2] += added(s, OUT, n)
