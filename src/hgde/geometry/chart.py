"""The ball's formulas for callers that know more than a point's coordinates.

``B_x = 1 - c|x|^2`` and ``s = y - x`` are where rounding is lost near the boundary, and some callers have them exactly:
:mod:`hgde.geometry.lorentz` works in the ball's coordinates but reads both off the hyperboloid, where neither cancels.
So every formula here takes them as arguments. Tensors ``x, y, s, u, v, w`` are ``[..., d]``, ``b_x, b_y`` ``[..., 1]``;
``c`` is a float or a 0-d tensor.
"""

from __future__ import annotations

from torch import Tensor

from hgde.geometry import numerics
from hgde.geometry.numerics import dot, squared_norm

Scalar = float | Tensor


def translate(x: Tensor, total: Tensor, c: Scalar, b_x: Tensor, b_y: Tensor) -> tuple[Tensor, Tensor]:
    """``x (+) y`` with ``total = x + y``: numerator ``B_x s + c|s|^2 x`` and denominator ``B_x B_y + c|s|^2``.

    ``1 - c|x (+) y|^2`` is ``B_x B_y`` over the same denominator.
    """
    spread = c * squared_norm(total)
    return b_x * total + spread * x, b_x * b_y + spread


def exp(x: Tensor, v: Tensor, c: Scalar, b_x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``exp_x(v)`` as numerator, denominator, and the product ``B_x B_y`` of :func:`translate`."""
    half = v / b_x
    q = c * squared_norm(half)
    b_y = numerics.sech2(q)
    numerator, denominator = translate(x, x + numerics.tanhc(q) * half, c, b_x, b_y)
    return numerator, denominator, b_x * b_y


def sinh2_half(s: Tensor, c: Scalar, b_x: Tensor, b_y: Tensor) -> Tensor:
    """``sinh^2(sqrt(c) d(x,y) / 2) = c|s|^2 / (B_x B_y)``. ``[..., 1]``"""
    return c * squared_norm(s) / (b_x * b_y)


def log(x: Tensor, s: Tensor, c: Scalar, b_x: Tensor, b_y: Tensor) -> Tensor:
    """``log_x(y) = B_x (asinh(sqrt q) / sqrt q) (B_x s - c|s|^2 x) / sqrt(B_x B_y D)``, ``D = B_x B_y + c|s|^2``.

    ``q = c|s|^2 / (B_x B_y)`` is the squared hyperbolic sine of half the distance. No norm is taken, hence it is smooth
    at ``x = y``.
    """
    spread = c * squared_norm(s)
    product = b_x * b_y
    factor = b_x * numerics.asinhc(spread / product) * (product * (product + spread)).rsqrt()
    return factor * (b_x * s - spread * x)


def rotate(x: Tensor, s: Tensor, v: Tensor, c: Scalar, b_x: Tensor, b_y: Tensor) -> Tensor:
    """``gyr[y, -x] v`` as ``v + (2c/D) W(c W v - p v)``.

    ``p = 1 - c<x,y> = (B_x + B_y + c|s|^2) / 2`` and ``W v = <x,v> s - <s,v> x``, which generates rotations of the
    plane and vanishes with ``s``, so the gyration between near points is accurate.
    """
    x_v, s_v = dot(x, v), dot(s, v)
    x_x, x_s, s_s = squared_norm(x), dot(x, s), squared_norm(s)
    p = 0.5 * (b_x + b_y + c * s_s)
    scale = 2.0 * c / (b_x * b_y + c * s_s)
    along_s = c * (x_s * x_v - x_x * s_v) - p * x_v
    along_x = c * (s_s * x_v - x_s * s_v) - p * s_v
    return v + scale * (along_s * s - along_x * x)


def transport(x: Tensor, s: Tensor, v: Tensor, c: Scalar, b_x: Tensor, b_y: Tensor) -> Tensor:
    """Parallel transport along the geodesic, ``(lambda_x / lambda_y) gyr[y, -x] v``."""
    return (b_y / b_x) * rotate(x, s, v, c, b_x, b_y)


def stretched(v: Tensor, w: Tensor, c: Scalar, b_x: Tensor) -> Tensor:
    """``w`` with its part across ``v`` multiplied by ``sinh r / r``, ``r = sqrt(c) lambda_x |v|``."""
    metric = 4.0 * c / b_x.square()
    v_v = squared_norm(v)
    return w + metric * numerics.stretch(metric * v_v) * (v_v * w - dot(w, v) * v)


def shrunk(v: Tensor, w: Tensor, c: Scalar, b_x: Tensor) -> Tensor:
    """``w`` with its part across ``v`` multiplied by ``r / sinh r``, the inverse of :func:`stretched`."""
    metric = 4.0 * c / b_x.square()
    v_v = squared_norm(v)
    return w - metric * numerics.shrink(metric * v_v) * (v_v * w - dot(w, v) * v)
