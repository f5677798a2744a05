"""Compiled scalar functions without calls, branches or exceptions: loops over many arguments vectorise."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hgde.kernels.compiled import inlined

_SERIES_BELOW = 1e-2
_LN2 = 0.6931471805599453
_SQRT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)
_MANTISSA = np.uint64(52)
_TWO_52_BITS = np.uint64(0x4330000000000000)
_TWO_52 = 4503599627370496.0


def _prefetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array_type = signature.args[0]
    value = context.make_array(array_type)(context, builder, args[0])
    place = cgutils.get_item_pointer(context, builder, array_type, value, args[1:], wraparound=False)
    flag = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    pointer = builder.bitcast(place, cgutils.voidptr_t)
    builder.call(function, [pointer, flag(0), flag(3), flag(1)])
    return context.get_dummy_value()


@intrinsic
def prefetch(typingctx: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of ``array[row, column]`` before it is needed: neighbours' rows lie anywhere in memory."""
    return types.void(array, types.intp, types.intp), _prefetch


@intrinsic
def prefetch_entry(typingctx: Any, array: Any, place: Any) -> Any:
    """:func:`prefetch` for a vector."""
    return types.void(array, types.intp), _prefetch


@intrinsic
def _bits(typingctx: Any, x: Any) -> Any:
    """The bit pattern of a double."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), codegen


@intrinsic
def _from_bits(typingctx: Any, n: Any) -> Any:
    """The double with a bit pattern."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), codegen


@inlined
def log_above_one(x: float) -> float:
    """``log x`` for ``x >= 1``: with ``x = 2^e m``, ``log m = 2 artanh((m - 1) / (m + 1))``."""
    n = _bits(x)
    e = (n - _SQRT_HALF_BITS) >> _MANTISSA
    m = _from_bits(n - (e << _MANTISSA))
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    series = 1 / 15 + t * (1 / 17 + t * (1 / 19 + t * (1 / 21)))
    series = 1.0 + t * (1 / 3 + t * (1 / 5 + t * (1 / 7 + t * (1 / 9 + t * (1 / 11 + t * (1 / 13 + t * series))))))
    return (_from_bits(e | _TWO_52_BITS) - _TWO_52) * _LN2 + 2.0 * s * series


@inlined
def exp_negative(x: float) -> float:
    """``exp(-x)`` for ``x >= 0``; beyond 700 the value at 700."""
    y = min(x, 700.0)
    # The addition of 2^52 rounds to an integer, left in the low bits. Reading it back through the bits keeps the
    # compiler from cancelling the two additions.
    n = _bits(y * 1.4426950408889634 + _TWO_52) - _TWO_52_BITS
    whole = _from_bits(n | _TWO_52_BITS) - _TWO_52
    r = whole * 0.693147180369123816490 - y + whole * 1.90821492927058770002e-10
    p = 1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r * (1 / 39916800 + r * (1 / 479001600)))))
    p = 1.0 + r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * p))))))
    return p * _from_bits((np.uint64(1023) - n) << _MANTISSA)


@inlined
def artanh_ratio(w: float, inverse_rest: float) -> float:
    """``artanh(sqrt w) / sqrt w``; ``inverse_rest = 1 / (1 - w)``."""
    root = np.sqrt(max(w, _SERIES_BELOW))
    far = 0.5 * log_above_one((1.0 + root) * (1.0 + root) * inverse_rest) / root
    near = 1 / 9 + w * (1 / 11 + w * (1 / 13 + w * (1 / 15 + w * (1 / 17))))
    near = 1.0 + w * (1 / 3 + w * (1 / 5 + w * (1 / 7 + w * near)))
    return near if w < _SERIES_BELOW else far


@inlined
def artanh_ratio_slope(w: float, inverse_rest: float, ratio: float) -> float:
    """Derivative of :func:`artanh_ratio` in ``w``, given its value."""
    far = (inverse_rest - ratio) / (2.0 * max(w, _SERIES_BELOW))
    near = 5 / 11 + w * (6 / 13 + w * (7 / 15 + w * (8 / 17 + w * (9 / 19))))
    near = 1 / 3 + w * (2 / 5 + w * (3 / 7 + w * (4 / 9 + w * near)))
    return near if w < _SERIES_BELOW else far


@inlined
def tanh_ratio(rho: float) -> tuple[float, float, float]:
    """``T = tanh(r) / r`` for ``r = sqrt rho``, its derivative in ``rho``, and ``1 / cosh^2 r``."""
    safe = max(rho, _SERIES_BELOW)
    decay = exp_negative(2.0 * np.sqrt(safe))
    inverse = 1.0 / (1.0 + decay)
    far = (1.0 - decay) * inverse / np.sqrt(safe)
    far_sech = 4.0 * decay * inverse * inverse
    far_slope = (far_sech - far) / (2.0 * safe)
    near = 62 / 2835 - rho * (1382 / 155925 - rho * (21844 / 6081075 - rho * (929569 / 638512875)))
    near = 1.0 - rho * (1 / 3 - rho * (2 / 15 - rho * (17 / 315 - rho * near)))
    near_slope = 248 / 2835 - rho * (6910 / 155925 - rho * (131064 / 6081075 - rho * (6506983 / 638512875)))
    near_slope = -1 / 3 + rho * (4 / 15 - rho * (51 / 315 - rho * near_slope))
    small = rho < _SERIES_BELOW
    value = near if small else far
    return value, near_slope if small else far_slope, 1.0 - rho * near * near if small else far_sech


# Single-precision twins for loops over all pairs, where twice the lanes and half the terms count.

_F: Any = np.float32
_SQRT_HALF_BITS32 = np.uint32(0x3F3504F3)
_TWO_23_BITS = np.uint32(0x4B000000)
_MANTISSA32 = np.uint32(23)


@intrinsic
def _bits32(typingctx: Any, x: Any) -> Any:
    """The bit pattern of a single."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(types.float32), codegen


@intrinsic
def _from_bits32(typingctx: Any, n: Any) -> Any:
    """The single with a bit pattern."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), codegen


@inlined
def sigmoid(x: float) -> float:
    """``1 / (1 + exp(-x))``."""
    decay = exp_negative(abs(x))
    small = decay / (1.0 + decay)
    return 1.0 - small if x >= 0 else small


@inlined
def sigmoid32(x: Any) -> Any:
    """:func:`sigmoid` in single precision throughout."""
    y = min(abs(x), _F(80.0))
    n = _bits32(y * _F(1.44269504) + _F(8388608.0)) - _TWO_23_BITS
    whole = _from_bits32(n | _TWO_23_BITS) - _F(8388608.0)
    r = whole * _F(0.693359375) - y - whole * _F(2.12194440e-4)
    p = _F(0.5) + r * (_F(1 / 6) + r * (_F(1 / 24) + r * (_F(1 / 120) + r * _F(1 / 720))))
    decay = (_F(1.0) + r + r * r * p) * _from_bits32((np.uint32(127) - n) << _MANTISSA32)
    small = decay / (_F(1.0) + decay)
    return _F(1.0) - small if x >= _F(0.0) else small


@inlined
def artanh_ratio32(w: Any, inverse_rest: Any) -> Any:
    """:func:`artanh_ratio` in single precision throughout."""
    root = np.sqrt(max(w, _F(0.02)))
    x = (_F(1.0) + root) * (_F(1.0) + root) * inverse_rest
    n = _bits32(x)
    e = (n - _SQRT_HALF_BITS32) >> _MANTISSA32
    m = _from_bits32(n - (e << _MANTISSA32))
    s = (m - _F(1.0)) / (m + _F(1.0))
    t = s * s
    series = _F(1.0) + t * (_F(1 / 3) + t * (_F(1 / 5) + t * (_F(1 / 7) + t * _F(1 / 9))))
    whole = _from_bits32(e | _TWO_23_BITS) - _F(8388608.0)
    far = (whole * _F(0.34657359) + s * series) / root
    near = _F(1.0) + w * (_F(1 / 3) + w * (_F(1 / 5) + w * (_F(1 / 7) + w * _F(1 / 9))))
    return near if w < _F(0.02) else far
