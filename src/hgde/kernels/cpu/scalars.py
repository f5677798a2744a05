"""Scalar functions without calls or branches, in double precision: loops over many arguments vectorise.

They are written out, instead of calling a mathematical library, so that every machine gives the same bits.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import inlined, instruction
from hgde.compiler.values import DOUBLE, SINGLE, WHOLE, WORD
from hgde.kernels.cpu.lanes import fma, larger, root, smaller

SERIES_BELOW = 1 / 16
"""Below this a series takes the place of ``artanh`` or ``tanh`` of a root: no root, logarithm or exponential."""
_LN2 = 0.6931471805599453
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_MANTISSA = 52
_BIAS = 1023
_TWO_52_BITS = 0x4330000000000000
_TWO_52 = 4503599627370496.0


@instruction
def bits(builder: Any, x: Any) -> Any:
    """The bit pattern of a double, or of a single as a word."""
    return builder.bitcast(x, WORD if x.type == SINGLE else WHOLE)


@instruction
def from_bits(builder: Any, n: Any) -> Any:
    """The double with a bit pattern, or the single with that of a word."""
    return builder.bitcast(n, SINGLE if n.type == WORD else DOUBLE)


@inlined
def log_above_one(x: float) -> float:
    """``log x`` for ``x >= 1``: with ``x = 2^e m``, ``log m = 2 artanh((m - 1) / (m + 1))``."""
    n = bits(x)
    e = (n - _SQRT_HALF_BITS) >> _MANTISSA
    m = from_bits(n - (e << _MANTISSA))
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    p = fma(t, fma(t, fma(t, 1 / 21, 1 / 19), 1 / 17), 1 / 15)
    p = fma(t, fma(t, fma(t, fma(t, p, 1 / 13), 1 / 11), 1 / 9), 1 / 7)
    p = fma(t, fma(t, fma(t, p, 1 / 5), 1 / 3), 1.0)
    return fma(from_bits(e | _TWO_52_BITS) - _TWO_52, _LN2, 2.0 * s * p)


@inlined
def exp_negative(x: float) -> float:
    """``exp(-x)`` for ``x >= 0``; beyond 700 the value at 700."""
    y = smaller(x, 700.0)
    # The addition of 2^52 rounds to an integer, left in the low bits.
    n = bits(fma(y, 1.4426950408889634, _TWO_52)) - _TWO_52_BITS
    whole = from_bits(n | _TWO_52_BITS) - _TWO_52
    r = fma(whole, 1.90821492927058770002e-10, fma(whole, 0.693147180369123816490, -y))
    p = fma(r, fma(r, fma(r, fma(r, 1 / 479001600, 1 / 39916800), 1 / 3628800), 1 / 362880), 1 / 40320)
    p = fma(r, fma(r, fma(r, fma(r, p, 1 / 5040), 1 / 720), 1 / 120), 1 / 24)
    p = fma(r, fma(r, fma(r, fma(r, p, 1 / 6), 1 / 2), 1.0), 1.0)
    return p * from_bits((_BIAS - n) << _MANTISSA)


@inlined
def artanh_ratio_near(w: float) -> float:
    """:func:`artanh_ratio` below :data:`SERIES_BELOW`: ``1 + w / 3 + w^2 / 5 + ...``."""
    p = fma(w, fma(w, fma(w, fma(w, 1 / 25, 1 / 23), 1 / 21), 1 / 19), 1 / 17)
    p = fma(w, fma(w, fma(w, fma(w, p, 1 / 15), 1 / 13), 1 / 11), 1 / 9)
    return fma(w, fma(w, fma(w, fma(w, p, 1 / 7), 1 / 5), 1 / 3), 1.0)


@inlined
def artanh_ratio(w: float, inverse_rest: float) -> float:
    """``artanh(sqrt w) / sqrt w``; ``inverse_rest = 1 / (1 - w)``."""
    r = root(larger(w, SERIES_BELOW))
    far = 0.5 * log_above_one((1.0 + r) * (1.0 + r) * inverse_rest) / r
    return artanh_ratio_near(w) if w < SERIES_BELOW else far


@inlined
def artanh_ratio_slope(w: float, inverse_rest: float, ratio: float) -> float:
    """Derivative of :func:`artanh_ratio` in ``w``, given its value."""
    far = (inverse_rest - ratio) / (2.0 * larger(w, SERIES_BELOW))
    p = fma(w, fma(w, fma(w, fma(w, 13 / 27, 12 / 25), 11 / 23), 10 / 21), 9 / 19)
    p = fma(w, fma(w, fma(w, fma(w, p, 8 / 17), 7 / 15), 6 / 13), 5 / 11)
    near = fma(w, fma(w, fma(w, fma(w, p, 4 / 9), 3 / 7), 2 / 5), 1 / 3)
    return near if w < SERIES_BELOW else far


@inlined
def tanh_ratio_near(rho: float) -> tuple[float, float, float]:
    """:func:`tanh_ratio` below :data:`SERIES_BELOW`."""
    p = fma(rho, fma(rho, 18888466084 / 194896477400625, -443861162 / 1856156927625), 6404582 / 10854718875)
    p = fma(rho, fma(rho, fma(rho, fma(rho, p, -929569 / 638512875), 21844 / 6081075), -1382 / 155925), 62 / 2835)
    value = fma(rho, fma(rho, fma(rho, fma(rho, p, -17 / 315), 2 / 15), -1 / 3), 1.0)
    q = fma(rho, -1253202410482 / 2900518163668125, 188884660840 / 194896477400625)
    q = fma(rho, fma(rho, fma(rho, q, -3994750458 / 1856156927625), 51236656 / 10854718875), -6506983 / 638512875)
    q = fma(rho, fma(rho, fma(rho, q, 131064 / 6081075), -6910 / 155925), 248 / 2835)
    slope = fma(rho, fma(rho, fma(rho, q, -51 / 315), 4 / 15), -1 / 3)
    return value, slope, 1.0 - rho * value * value


@inlined
def tanh_ratio(rho: float) -> tuple[float, float, float]:
    """``T = tanh(r) / r`` for ``r = sqrt rho``, its derivative in ``rho``, and ``1 / cosh^2 r``."""
    safe = larger(rho, SERIES_BELOW)
    r = root(safe)
    decay = exp_negative(2.0 * r)
    inverse = 1.0 / (1.0 + decay)
    far = (1.0 - decay) * inverse / r
    far_sech = 4.0 * decay * inverse * inverse
    far_slope = (far_sech - far) / (2.0 * safe)
    near, near_slope, near_sech = tanh_ratio_near(rho)
    small = rho < SERIES_BELOW
    return near if small else far, near_slope if small else far_slope, near_sech if small else far_sech


@inlined
def sigmoid(x: float) -> float:
    """``1 / (1 + exp(-x))``."""
    decay = exp_negative(abs(x))
    small = decay / (1.0 + decay)
    return 1.0 - small if x >= 0 else small


@inlined
def exp_minus_one(x: float) -> float:
    """``exp(x) - 1`` for ``x <= 0``."""
    y = larger(x, -0.35)
    p = fma(y, fma(y, fma(y, fma(y, 1 / 479001600, 1 / 39916800), 1 / 3628800), 1 / 362880), 1 / 40320)
    p = fma(y, fma(y, fma(y, fma(y, p, 1 / 5040), 1 / 720), 1 / 120), 1 / 24)
    near = y * fma(y, fma(y, fma(y, p, 1 / 6), 1 / 2), 1.0)
    return near if x > -0.35 else exp_negative(-x) - 1.0


@inlined
def tanh(x: float) -> float:
    """The hyperbolic tangent."""
    return x * tanh_ratio(x * x)[0]
