"""Elementary functions in the precision of their argument, and how to stay in it.

A kernel over ``Reals`` is compiled for singles and for doubles. numba makes a double of a single that meets a Python
constant, so constants go through :func:`real`, and the functions below have a body for each precision: singles are
twice as many to a register and need half the terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from hgde.kernels.cpu.compile import inlined
from hgde.kernels.cpu.lanes import fma, smaller
from hgde.kernels.cpu.scalars import log_above_one, sigmoid

_F: Any = np.float32
_SQRT_HALF_BITS = np.uint32(0x3F3504F3)
_TWO_23_BITS = np.uint32(0x4B000000)
_MANTISSA = np.uint32(23)
_BIAS = np.uint32(127)
_TWO_23 = _F(8388608.0)
_OPTIONS = {"forceinline": True, "nogil": True, "error_model": "numpy", "no_cpython_wrapper": True}


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
def real(typingctx: Any, number: Any, array: Any) -> Any:
    """A number rounded to the dtype of an array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], signature.args[0], signature.return_type)

    return array.dtype(number, array), codegen


@intrinsic
def reals(typingctx: Any, buffer: Any, at: Any, array: Any) -> Any:
    """The place ``at`` of a buffer of doubles as a pointer to numbers of the array's dtype."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = ir.FloatType() if signature.return_type.dtype == types.float32 else ir.DoubleType()
        return builder.bitcast(builder.gep(args[0], [args[1]]), element.as_pointer())

    return array(buffer, types.intp, array), codegen


@inlined
def _sigmoid32(x: Any) -> Any:
    y = smaller(abs(x), _F(80.0))
    n = narrow(bits32(fma(y, _F(1.44269504), _TWO_23)) - _TWO_23_BITS)
    whole = from_bits32(n | _TWO_23_BITS) - _TWO_23
    r = fma(whole, _F(-2.12194440e-4), fma(whole, _F(0.693359375), -y))
    p = fma(r, fma(r, fma(r, fma(r, _F(1 / 720), _F(1 / 120)), _F(1 / 24)), _F(1 / 6)), _F(0.5))
    decay = fma(r * r, p, _F(1.0) + r) * from_bits32(narrow(narrow(_BIAS - n) << _MANTISSA))
    small = decay / (_F(1.0) + decay)
    return _F(1.0) - small if x >= _F(0.0) else small


@inlined
def _log32(x: Any) -> Any:
    n = bits32(x)
    e = narrow(narrow(n - _SQRT_HALF_BITS) >> _MANTISSA)
    f = from_bits32(narrow(n - narrow(e << _MANTISSA))) - _F(1.0)
    # Fitted to (log(1 + f) - f + f^2/2) / f^3 where 1 + f lies between sqrt(1/2) and sqrt(2): within 8e-9 of log.
    p = fma(f, fma(f, fma(f, _F(-0.07362868), _F(0.12620327)), _F(-0.13202104)), _F(0.14227115))
    p = fma(f, fma(f, fma(f, fma(f, p, _F(-0.16621371)), _F(0.19999826)), _F(-0.25000852)), _F(0.33333355))
    square = f * f
    rest = fma(f * square, p, _F(-0.5) * square)
    return fma(from_bits32(e | _TWO_23_BITS) - _TWO_23, _F(0.69314718), rest + f)


def sigmoid_of(x: Any) -> Any:
    """``1 / (1 + exp(-x))``."""


def log_of(x: Any) -> Any:
    """``log x`` for ``x >= 1``."""


def _by_precision(name: Any, single: Any, double: Any) -> None:
    def in_single(x: Any) -> Any:
        return single(x)

    def in_double(x: Any) -> Any:
        return double(x)

    @overload(name, jit_options=_OPTIONS)
    def choose(x: Any) -> Any:
        return in_single if x == types.float32 else in_double


_by_precision(sigmoid_of, _sigmoid32, sigmoid)
_by_precision(log_of, _log32, log_above_one)
