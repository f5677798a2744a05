"""The Poincaré ball of curvature ``-c`` as pure functions: base point first, last axis the manifold axis.

``c`` is a float or a 0-d tensor and everything is differentiable in it. Points satisfy ``sqrt(c)|x| < 1``.
Written with ``B_x = 1 - c|x|^2`` and differences of points, three identities keep every formula free of cancellation:

* ``D(x, y) = 1 - 2c<x,y> + c^2|x|^2|y|^2 = B_x B_y + c|x-y|^2``, a sum of positive terms;
* ``(-x) (+) y = (B_x (y-x) - c|y-x|^2 x) / D``, exactly zero at ``x = y``;
* ``sinh^2(sqrt(c) d(x,y) / 2) = c|x-y|^2 / (B_x B_y)``, accurate for the nearest and the farthest points.

Maps into the ball end with :func:`project`, which counts the points that had left it. Cost is a few passes over the
points unless a docstring says otherwise. The conformal factor, Möbius operations, exp, log, distance and parallel
transport are those of the paper's appendix on hyperbolic geometry (eq:expmap to eq:poincare-distance).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hgde.geometry import chart, numerics
from hgde.geometry.chart import Scalar
from hgde.geometry.contract import weighted
from hgde.geometry.numerics import dot, squared_norm


def _b(x: Tensor, c: Scalar) -> Tensor:
    """``B_x = 1 - c|x|^2 = 2 / lambda_x``, never below the dtype's margin, half of what it is at its limit."""
    return (1.0 - c * squared_norm(x)).clamp_min(numerics.limits(x.dtype).margin)


def _squeeze(value: Tensor, keepdim: bool) -> Tensor:
    return value if keepdim else value.squeeze(-1)


def lambda_x(x: Tensor, c: Scalar, *, keepdim: bool = False) -> Tensor:
    """Conformal factor ``2 / (1 - c|x|^2)``. ``[..., d] -> [...]``"""
    return _squeeze(2.0 / _b(x, c), keepdim)


def inner(x: Tensor, u: Tensor, v: Tensor, c: Scalar, *, keepdim: bool = False) -> Tensor:
    """Inner product ``lambda_x^2 <u, v>`` in the tangent space at ``x``. ``[...]``"""
    return _squeeze(4.0 * dot(u, v) / _b(x, c).square(), keepdim)


def norm(x: Tensor, v: Tensor, c: Scalar, *, keepdim: bool = False) -> Tensor:
    """Length ``lambda_x |v|`` of a tangent vector at ``x``. ``[...]``"""
    return _squeeze(2.0 * numerics.safe_norm(v) / _b(x, c), keepdim)


def egrad2rgrad(x: Tensor, g: Tensor, c: Scalar) -> Tensor:
    """Riemannian gradient ``g / lambda_x^2`` from the Euclidean one."""
    return g * (_b(x, c).square() / 4.0)


def project(x: Tensor, c: Scalar) -> Tensor:
    """Points beyond the dtype's limit moved to it along their radius; the others are returned as they are.

    How many there were goes to :func:`hgde.geometry.numerics.record_projections`.
    """
    bound = 1.0 - numerics.limits(x.dtype).margin
    squared = c * squared_norm(x)
    outside = squared > bound * bound
    scale = torch.where(outside, bound * torch.where(outside, squared, 1.0).rsqrt(), 1.0)
    if numerics.counting_projections():
        # A point already at the limit and rescaled to it again by rounding alone was not projected.
        numerics.record_projections((scale < 1.0 - 4.0 * torch.finfo(x.dtype).eps).sum())
    return x * scale


def mobius_add(x: Tensor, y: Tensor, c: Scalar) -> Tensor:
    """Möbius addition ``x (+) y = (B_x s + c|s|^2 x) / (B_x B_y + c|s|^2)`` with ``s = x + y``."""
    numerator, denominator = chart.translate(x, x + y, c, _b(x, c), _b(y, c))
    return project(numerator / denominator, c)


def expmap0(v: Tensor, c: Scalar) -> Tensor:
    """Exponential map at the origin, ``tanh(sqrt(c)|v|) v / (sqrt(c)|v|)``."""
    return project(numerics.tanhc(c * squared_norm(v)) * v, c)


def logmap0(y: Tensor, c: Scalar) -> Tensor:
    """Logarithmic map at the origin, ``artanh(sqrt(c)|y|) y / (sqrt(c)|y|)``."""
    return numerics.artanhc(c * squared_norm(y)) * y


def expmap(x: Tensor, v: Tensor, c: Scalar) -> Tensor:
    """Exponential map, ``x (+) tanh(sqrt(c) lambda_x |v| / 2) v / (sqrt(c)|v|)`` (eq:expmap)."""
    numerator, denominator, _ = chart.exp(x, v, c, _b(x, c))
    return project(numerator / denominator, c)


def logmap(x: Tensor, y: Tensor, c: Scalar) -> Tensor:
    """Logarithmic map, the tangent vector at ``x`` that :func:`expmap` takes to ``y``; smooth at ``x = y``."""
    return chart.log(x, y - x, c, _b(x, c), _b(y, c))


def dist(x: Tensor, y: Tensor, c: Scalar, *, keepdim: bool = False) -> Tensor:
    """Distance ``(2 / sqrt(c)) asinh(sqrt(c)|x-y| / sqrt(B_x B_y))`` (eq:poincare-distance).

    The gradient at ``x = y`` is 0.
    """
    squared = squared_norm(x - y)
    product = _b(x, c) * _b(y, c)
    distance = 2.0 * numerics.asinhc(c * squared / product) * numerics.safe_sqrt(squared / product)
    return _squeeze(distance, keepdim)


def dist0(x: Tensor, c: Scalar, *, keepdim: bool = False) -> Tensor:
    """Distance to the origin, ``(2 / sqrt(c)) artanh(sqrt(c)|x|)``; gradient 0 at the origin."""
    squared = squared_norm(x)
    return _squeeze(2.0 * numerics.artanhc(c * squared) * numerics.safe_sqrt(squared), keepdim)


def mobius_scalar(r: Scalar, x: Tensor, c: Scalar) -> Tensor:
    """Möbius scalar product ``r (x) x = exp_o(r log_o(x))`` (eq:mscalar-multi-ext); ``r`` broadcasts against ``x``."""
    return expmap0(r * logmap0(x, c), c)


def mobius_matvec(m: Tensor, x: Tensor, c: Scalar) -> Tensor:
    """Möbius matrix product ``exp_o(M log_o(x))`` (eq:mvector-multi). ``m [e, d]``, ``x [..., d] -> [..., e]``"""
    return expmap0(logmap0(x, c) @ m.transpose(-1, -2), c)


def half(m: Tensor, c: Scalar) -> Tensor:
    """``1/2 (x) m = m / (1 + sqrt(1 - c|m|^2))``, without artanh."""
    return m / (1.0 + _b(m, c).sqrt())


def gyration(x: Tensor, y: Tensor, v: Tensor, c: Scalar) -> Tensor:
    """``gyr[x, y] v = -(x (+) y) (+) (x (+) (y (+) v))``, which is a rotation in the plane of ``x`` and ``y``."""
    return chart.rotate(-y, x + y, v, c, _b(y, c), _b(x, c))


def transport(x: Tensor, y: Tensor, v: Tensor, c: Scalar) -> Tensor:
    """Parallel transport of ``v`` from ``x`` to ``y`` along the geodesic, ``(lambda_x / lambda_y) gyr[y, -x] v``."""
    return chart.transport(x, y - x, v, c, _b(x, c), _b(y, c))


def transport0(y: Tensor, v: Tensor, c: Scalar) -> Tensor:
    """Parallel transport from the origin to ``y``, ``(1 - c|y|^2) v``."""
    return _b(y, c) * v


def dexp(x: Tensor, v: Tensor, w: Tensor, c: Scalar, y: Tensor | None = None) -> Tensor:
    """Differential of exp, ``d exp_x(v)[w]`` in the tangent space at ``y = exp_x(v)``.

    In constant curvature ``d exp_x(v)[w] = PT(w_par + (sinh r / r) w_perp)`` with ``r = sqrt(c) lambda_x |v|`` and
    ``w_par`` the part of ``w`` along ``v``. Give ``y`` if it is at hand; it saves an exponential.
    """
    end = expmap(x, v, c) if y is None else y
    return transport(x, end, chart.stretched(v, w, c, _b(x, c)), c)


def dexp_inv(x: Tensor, v: Tensor, w: Tensor, c: Scalar, y: Tensor | None = None) -> Tensor:
    """Inverse of :func:`dexp`: takes ``w`` at ``y = exp_x(v)`` to the tangent space at ``x``.

    Parallel transport back to ``x``, then the part across ``v`` is multiplied by ``r / sinh r``. A field carried
    back so is the field in normal coordinates at ``x``, in which a Runge-Kutta method keeps its order.
    """
    end = expmap(x, v, c) if y is None else y
    return chart.shrunk(v, transport(end, x, w, c), c, _b(x, c))


def gyromidpoint(points: Tensor | Sequence[Tensor], weights: Tensor | Sequence[Scalar], c: Scalar) -> Tensor:
    """Weighted midpoint ``1/2 (x) (sum eta lambda z / sum |eta| (lambda - 1))`` (eq:mobius-gyromidpoint-residual).

    ``points`` is stacked on axis 0, ``[J, ..., d]``, or a list of ``J``; ``weights`` are ``J`` numbers or tensors that
    broadcast against ``[..., 1]``. A negative weight acts as the positive one at the point's mirror image ``-z``.

    ``1/2 (x) (N/S) = N / (S + sqrt(S^2 - c|N|^2))``, and ``S^2 - c|N|^2`` is the Lorentz square of a sum of points,
    ``(sum |eta|)^2 + 4 sum_{j<k} |eta_j eta_k| sinh^2(d_jk / 2)``: no cancellation near the boundary, at a cost of
    ``J^2 / 2`` distances. If all weights vanish there is no midpoint and the result is NaN.
    """
    parts, sizes, signs = weighted(points, weights)
    signed = [part if sign is None else sign * part for part, sign in zip(parts, signs, strict=True)]
    bs = [_b(part, c) for part in parts]
    numerator: Tensor | float = 0.0
    total: Tensor | float = 0.0
    weight: Tensor | float = 0.0
    spread: Tensor | float = 0.0
    for j, (size, part, b) in enumerate(zip(sizes, signed, bs, strict=True)):
        numerator = numerator + (2.0 * size / b) * part
        total = total + size * (2.0 / b - 1.0)
        weight = weight + size
        for k in range(j):
            spread = spread + size * sizes[k] * squared_norm(part - signed[k]) / (b * bs[k])
    square = weight * weight + 4.0 * c * spread
    root = square.sqrt() if isinstance(square, Tensor) else square**0.5
    return project(torch.as_tensor(numerator / (total + root)), c)
