"""Channels of a tangent vector on any manifold, and the way to the origin.

Channel-wise weights and activations act on the coordinates a tangent vector has in the ball: there, parallel transport
from the origin multiplies by ``B_x = 1 - c|x|^2 > 0`` and turns nothing, so the axes at the origin are axes everywhere.
In any other model of the same space the vector is carried to the origin, its coordinates times ``B_x`` are the ball's,
and the result is carried back: models of one space give the same flow.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from hgde.geometry import Euclidean, Manifold, PoincareBall, Product, numerics


def in_frame(manifold: Manifold, x: Tensor, v: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """``function`` applied to the channels, ``[..., width]``, of tangent vectors ``v`` at points ``x``."""
    return from_channels(manifold, x, function(to_channels(manifold, x, v)))


def to_channels(manifold: Manifold, x: Tensor, v: Tensor) -> Tensor:
    """The channels of tangent vectors, ``[..., coordinates] -> [..., width]``."""
    if isinstance(manifold, PoincareBall | Euclidean):
        return v
    if isinstance(manifold, Product):
        pieces = zip(manifold.factors, manifold.split(x), manifold.split(v), strict=True)
        return torch.cat([to_channels(*piece) for piece in pieces], dim=-1)
    return _conformal(manifold, x) * _to_origin(manifold, x, v)


def from_channels(manifold: Manifold, x: Tensor, u: Tensor) -> Tensor:
    """The inverse of :func:`to_channels`."""
    if isinstance(manifold, PoincareBall | Euclidean):
        return u
    if isinstance(manifold, Product):
        pieces = zip(manifold.factors, manifold.split(x), u.split(manifold.widths, dim=-1), strict=True)
        return torch.cat([from_channels(*piece) for piece in pieces], dim=-1)
    return manifold.transport0(x, u / _conformal(manifold, x))


def log_to_origin(manifold: Manifold, x: Tensor) -> Tensor:
    """``log_x(o)``: the way back along the geodesic that came from the origin, ``-PT_{o -> x}(log_o x)``."""
    return manifold.transport0(x, -manifold.logmap0(x))


def _conformal(manifold: Manifold, x: Tensor) -> Tensor:
    """``B_x = sech^2(sqrt(c) |log_o x|)``, ``[..., 1]``."""
    c = getattr(manifold, "c", None)
    if c is None:
        return torch.ones_like(x[..., :1])
    return numerics.sech2(c * numerics.squared_norm(manifold.logmap0(x)))


def _to_origin(manifold: Manifold, x: Tensor, v: Tensor) -> Tensor:
    """The inverse of ``transport0(x, .)``: tangent vectors at ``x`` as coordinates at the origin, ``[..., width]``."""
    coordinates = x.shape[-1]
    width = manifold.dimension(coordinates)
    at_origin = manifold.transport(x, manifold.origin(*x.shape, dtype=x.dtype, device=x.device), v)
    base = manifold.origin(width, coordinates, dtype=x.dtype, device=x.device)
    axes = manifold.transport0(base, torch.eye(width, dtype=x.dtype, device=x.device))
    return at_origin @ torch.linalg.pinv(axes)
