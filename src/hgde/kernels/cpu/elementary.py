"""Elementary functions in the precision of their argument, and how to stay in it.

A kernel over ``Reals`` is compiled for singles and for doubles. A single that meets one of Python's constants becomes a
double, so constants go through :func:`real`, and the functions below have a body for each precision: singles are
twice as many to a register and need half the terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hgde.compiler.dialect import inlined, instruction
from hgde.compiler.values import SINGLE, WHOLE, converted, type_of
from hgde.kernels.cpu.lanes import fma, smaller
from hgde.kernels.cpu.scalars import bits, from_bits, log_above_one, sigmoid

_F: Any = np.float32
_SQRT_HALF_BITS = np.uint32(0x3F3504F3)
_TWO_23_BITS = np.uint32(0x4B000000)
_MANTISSA = np.uint32(23)
_BIAS = np.uint32(127)
_TWO_23 = _F(8388608.0)


@instruction
def is_single(builder: Any, x: Any) -> bool:
    """Known when a kernel is compiled, so only one branch is."""
    return bool(type_of(x) == SINGLE)


@instruction
def real(builder: Any, number: Any, array: Any) -> Any:
    """A number rounded to the dtype of an array."""
    return converted(builder, number, array.type.pointee)


@instruction
def reals(builder: Any, buffer: Any, at: Any, array: Any) -> Any:
    """The place ``at`` of a buffer of doubles as a pointer to numbers of the array's dtype."""
    return builder.bitcast(builder.gep(buffer, [converted(builder, at, WHOLE)]), array.type)


@inlined
def _sigmoid32(x: Any) -> Any:
    y = smaller(abs(x), _F(80.0))
    n = bits(fma(y, _F(1.44269504), _TWO_23)) - _TWO_23_BITS
    whole = from_bits(n | _TWO_23_BITS) - _TWO_23
    r = fma(whole, _F(-2.12194440e-4), fma(whole, _F(0.693359375), -y))
    p = fma(r, fma(r, fma(r, fma(r, _F(1 / 720), _F(1 / 120)), _F(1 / 24)), _F(1 / 6)), _F(0.5))
    decay = fma(r * r, p, _F(1.0) + r) * from_bits((_BIAS - n) << _MANTISSA)
    small = decay / (_F(1.0) + decay)
    return _F(1.0) - small if x >= _F(0.0) else small


@inlined
def _log32(x: Any) -> Any:
    n = bits(x)
    e = (n - _SQRT_HALF_BITS) >> _MANTISSA
    f = from_bits(n - (e << _MANTISSA)) - _F(1.0)
    # Fitted to (log(1 + f) - f + f^2/2) / f^3 where 1 + f lies between sqrt(1/2) and sqrt(2): within 8e-9 of log.
    p = fma(f, fma(f, fma(f, _F(-0.07362868), _F(0.12620327)), _F(-0.13202104)), _F(0.14227115))
    p = fma(f, fma(f, fma(f, fma(f, p, _F(-0.16621371)), _F(0.19999826)), _F(-0.25000852)), _F(0.33333355))
    square = f * f
    rest = fma(f * square, p, _F(-0.5) * square)
    return fma(from_bits(e | _TWO_23_BITS) - _TWO_23, _F(0.69314718), rest + f)


@inlined
def sigmoid_of(x: Any) -> Any:
    """``1 / (1 + exp(-x))``."""
    return _sigmoid32(x) if is_single(x) else sigmoid(x)


@inlined
def log_of(x: Any) -> Any:
    """``log x`` for ``x >= 1``."""
    return _log32(x) if is_single(x) else log_above_one(x)
