"""Points of one model of hyperbolic space in another: ball, Lorentz (hyperboloid), Klein and half-space.

Curvature is ``-c`` in every model. With ``x`` in the ball of ``d`` dimensions, ``sqrt(c)|x| < 1``, ``B = 1 - c|x|^2``:

* Lorentz, ``d + 1`` numbers, time first, ``-t^2 + |s|^2 = -1/c``: ``t = (1 + c|x|^2) / (sqrt(c) B)``, ``s = 2x / B``;
* Klein, ``d`` numbers, geodesics are straight: ``k = 2x / (1 + c|x|^2)``;
* half-space, ``d`` numbers, the last one positive: the ball's image under the inversion that takes the last axis's
  upper end to infinity, ``(2u, 1 - |x|^2) / (|u|^2 + (1 - v)^2)`` at ``c = 1`` with ``x = (u, v)``.

Maps back to the ball end where the dtype's limit is, as all maps into the ball do. Cost: one pass.

>>> x = torch.tensor([[0.3, -0.2]], dtype=torch.float64)
>>> bool(torch.allclose(from_model(to_model(x, 1.0, "klein"), 1.0, "klein"), x))
True
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from hgde.geometry import ball
from hgde.geometry.chart import Scalar
from hgde.geometry.numerics import squared_norm


def _root(c: Scalar) -> Scalar:
    return c.sqrt() if isinstance(c, Tensor) else c**0.5


def ball_to_lorentz(x: Tensor, c: Scalar) -> Tensor:
    """``[..., d] -> [..., d + 1]``, time first."""
    squared = c * squared_norm(x)
    b = 1.0 - squared
    return torch.cat([(1.0 + squared) / (_root(c) * b), 2.0 * x / b], dim=-1)


def lorentz_to_ball(y: Tensor, c: Scalar) -> Tensor:
    """``[..., d + 1] -> [..., d]``, ``x = s / (1 + sqrt(c) t)``."""
    return ball.project(y[..., 1:] / (1.0 + _root(c) * y[..., :1]), c)


def ball_to_klein(x: Tensor, c: Scalar) -> Tensor:
    """``[..., d] -> [..., d]``, ``k = 2x / (1 + c|x|^2)``."""
    return 2.0 * x / (1.0 + c * squared_norm(x))


def klein_to_ball(k: Tensor, c: Scalar) -> Tensor:
    """``[..., d] -> [..., d]``, ``x = k / (1 + sqrt(1 - c|k|^2))``.

    Klein's coordinates crowd at the boundary: a point at distance ``r`` has ``1 - |k| ~ 2 exp(-2r)``, so in float32
    distances from the origin beyond about 8 are lost.
    """
    return ball.project(k / (1.0 + (1.0 - c * squared_norm(k)).clamp_min(0.0).sqrt()), c)


def ball_to_half_space(x: Tensor, c: Scalar) -> Tensor:
    """``[..., d] -> [..., d]``, the last coordinate positive; the origin goes to ``(0, ..., 0, 1/sqrt(c))``."""
    unit = _root(c) * x
    u, v = unit[..., :-1], unit[..., -1:]
    scale = 1.0 / (squared_norm(u) + (1.0 - v).square())
    return torch.cat([2.0 * u * scale, (1.0 - squared_norm(unit)) * scale], dim=-1) / _root(c)


def half_space_to_ball(h: Tensor, c: Scalar) -> Tensor:
    """``[..., d] -> [..., d]``, the inverse of :func:`ball_to_half_space`."""
    unit = _root(c) * h
    u, v = unit[..., :-1], unit[..., -1:]
    scale = 1.0 / (squared_norm(u) + (1.0 + v).square())
    return ball.project(torch.cat([2.0 * u, squared_norm(unit) - 1.0], dim=-1) * scale / _root(c), c)


def _same(x: Tensor, c: Scalar) -> Tensor:
    return x


# Name: to the model, from the model.
MODELS: dict[str, tuple[Callable[[Tensor, Scalar], Tensor], Callable[[Tensor, Scalar], Tensor]]] = {
    "ball": (_same, _same),
    "lorentz": (ball_to_lorentz, lorentz_to_ball),
    "klein": (ball_to_klein, klein_to_ball),
    "half-space": (ball_to_half_space, half_space_to_ball),
}


def to_model(x: Tensor, c: Scalar, model: str) -> Tensor:
    """Points of the ball in the named model of :data:`MODELS`."""
    return _maps(model)[0](x, c)


def from_model(y: Tensor, c: Scalar, model: str) -> Tensor:
    """Points of the named model of :data:`MODELS` in the ball."""
    return _maps(model)[1](y, c)


def _maps(model: str) -> tuple[Callable[[Tensor, Scalar], Tensor], Callable[[Tensor, Scalar], Tensor]]:
    if model not in MODELS:
        raise ValueError(f"expected a model of hyperbolic space, one of {', '.join(MODELS)}; got {model!r}")
    return MODELS[model]
