"""The hyperboloid of curvature ``-c``: points ``x = (x_0, x_s)`` with ``x_0^2 - |x_s|^2 = 1/c``, time first.

The spatial part ``x_s`` determines the point, and so does the spatial part of a tangent vector; time coordinates are
written but never read, so their rounding, and a curvature that training has moved, do no harm. The textbook formulas
subtract numbers of size ``exp(2d)`` at distance ``d`` from the origin and keep nothing in float32 beyond ``d = 8``.
Here points are taken to the ball, which is isometric,

    ``b = x_s / (1 + g)``,  ``1 - c|b|^2 = 2 / (1 + g)``,  ``g = sqrt(1 + c|x_s|^2)``,

and the ball's formulas are used with that ``B`` and with differences of points that are worked out on the hyperboloid:
neither cancels. Errors then grow as ``exp(d)``, which is what a rounding of the coordinates is worth.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from hgde.geometry import chart, numerics
from hgde.geometry.contract import Points, Weights, weighted
from hgde.geometry.numerics import dot, squared_norm
from hgde.geometry.spaces import SPACES, Hyperbolic


class Place(NamedTuple):
    """A point in the ball's coordinates: ``space`` is ``x_s``, ``g`` its Lorentz factor, ``b`` and ``B`` as above."""

    space: Tensor
    g: Tensor
    b: Tensor
    B: Tensor


def place(x: Tensor, c: Tensor) -> Place:
    """Where ``x [..., d + 1]`` is in the ball."""
    space = x[..., 1:]
    g = (1.0 + c * squared_norm(space)).sqrt()
    return Place(space, g, space / (1.0 + g), 2.0 / (1.0 + g))


def between(p: Place, q: Place, c: Tensor) -> Tensor:
    """``b_q - b_p`` without cancellation: ``(s - b_q (g_q - g_p)) / (1 + g_p)`` with ``s`` the spatial difference."""
    s = q.space - p.space
    delta = c * dot(s, p.space + q.space) / (p.g + q.g)
    return (s - delta * q.b) / (1.0 + p.g)


def with_time(space: Tensor, c: Tensor) -> Tensor:
    """The point with these spatial coordinates. ``[..., d] -> [..., d + 1]``"""
    return torch.cat([(squared_norm(space) + 1.0 / c).sqrt(), space], dim=-1)


@SPACES.register("lorentz")
class Lorentz(Hyperbolic):
    """Hyperbolic space on the hyperboloid of curvature ``-c``, isometric to the ball of the same ``c``.

    ``c`` is a number, trained on request, or a shared :class:`Curvature`. A space of dimension ``d`` has ``d + 1``
    coordinates. Points are kept as near to the origin as the ball's are, so that both models do the same.

    >>> import torch
    >>> space = Lorentz(c=1.0)
    >>> x = space.expmap0(torch.tensor([0.5, 0.0]))         # time first, and at distance 2 * 0.5
    >>> x.shape, round(space.dist0(x).item(), 4)
    (torch.Size([3]), 1.0)
    """

    def ambient(self, width: int) -> int:
        return width + 1

    def dimension(self, coordinates: int) -> int:
        return coordinates - 1

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        c = self.c
        p = place(x, c)
        numerator, denominator, product = chart.exp(p.b, _to_ball(p, v, c), c, p.B)
        return self._point(numerator / denominator, product / denominator, c)

    def _point(self, b: Tensor, B: Tensor, c: Tensor) -> Tensor:
        """The point at ``b`` of the ball, ``B = 1 - c|b|^2``, moved to the dtype's limit if it is beyond."""
        limit = numerics.limits(b.dtype)
        outside = limit.smallest_b > B
        farthest = limit.largest_sinh * (c * torch.where(outside, squared_norm(b), 1.0 / c)).rsqrt()
        _count(outside & (B * (1.0 + 8.0 * torch.finfo(b.dtype).eps) < limit.smallest_b))
        return with_time(torch.where(outside, farthest, 2.0 / torch.where(outside, 1.0, B)) * b, c)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        c = self.c
        p, q = place(x, c), place(y, c)
        return _from_ball(p, chart.log(p.b, between(p, q, c), c, p.B, q.B), c)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        c = self.c
        p, q = place(x, c), place(y, c)
        return _from_ball(q, chart.transport(p.b, between(p, q, c), _to_ball(p, v, c), c, p.B, q.B), c)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        c = self.c
        p = place(x, c)
        return (4.0 * dot(_to_ball(p, u, c), _to_ball(p, v, c)) / p.B.square()).squeeze(-1)

    def norm(self, x: Tensor, v: Tensor) -> Tensor:
        c = self.c
        p = place(x, c)
        return (2.0 * numerics.safe_norm(_to_ball(p, v, c)) / p.B).squeeze(-1)

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        c = self.c
        p, q = place(x, c), place(y, c)
        squared = squared_norm(between(p, q, c)) / (p.B * q.B)
        return (2.0 * numerics.asinhc(c * squared) * numerics.safe_sqrt(squared)).squeeze(-1)

    def project(self, x: Tensor) -> Tensor:
        """The point with the same spatial coordinates, moved towards the origin to the dtype's limit if beyond it."""
        c = self.c
        space = x[..., 1:]
        squared = c * squared_norm(space)
        bound = numerics.limits(x.dtype).largest_sinh
        outside = squared > bound * bound
        scale = torch.where(outside, bound * torch.where(outside, squared, 1.0).rsqrt(), 1.0)
        _count(scale < 1.0 - 4.0 * torch.finfo(x.dtype).eps)
        return with_time(space * scale, c)

    def tangent(self, x: Tensor, u: Tensor) -> Tensor:
        """``u + c <x, u>_L x``."""
        c = self.c
        space = x[..., 1:]
        time = (squared_norm(space) + 1.0 / c).sqrt()
        along = dot(space, u[..., 1:]) - time * u[..., :1]
        return _tangent(space, u[..., 1:] + c * along * space, c)

    def egrad2rgrad(self, x: Tensor, g: Tensor) -> Tensor:
        """``(-g_0, g_s)`` made tangent."""
        return self.tangent(x, torch.cat([-g[..., :1], g[..., 1:]], dim=-1))

    def dexp(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        c = self.c
        p = place(x, c)
        stretched = chart.stretched(_to_ball(p, v, c), _to_ball(p, w, c), c, p.B)
        return self.transport(x, self.expmap(x, v) if y is None else y, _from_ball(p, stretched, c))

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        c = self.c
        p, q = place(x, c), place(self.expmap(x, v) if y is None else y, c)
        back = chart.transport(q.b, between(q, p, c), _to_ball(q, w, c), c, q.B, p.B)
        return _from_ball(p, chart.shrunk(_to_ball(p, v, c), back, c, p.B), c)

    def frame0(self, coordinates: int, *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.eye(coordinates, dtype=dtype, device=device)[1:]

    def expmap0(self, v: Tensor) -> Tensor:
        """``x_s = sinh(2 sqrt(c)|v|) v / (sqrt(c)|v|)``, at most at the dtype's reach."""
        c = self.c
        q = 4.0 * c * squared_norm(v)
        reach = numerics.limits(v.dtype).reach
        outside = q > reach * reach
        scale = torch.where(outside, reach * torch.where(outside, q, 1.0).rsqrt(), 1.0)
        _count(scale < 1.0 - 4.0 * torch.finfo(v.dtype).eps)
        return with_time((2.0 * scale * numerics.sinhc(torch.where(outside, reach * reach, q))) * v, c)

    def logmap0(self, x: Tensor) -> Tensor:
        """``asinh(sqrt(c)|x_s|) x_s / (2 sqrt(c)|x_s|)``."""
        return 0.5 * numerics.asinhc(self.c * squared_norm(x[..., 1:])) * x[..., 1:]

    def transport0(self, x: Tensor, v: Tensor) -> Tensor:
        c = self.c
        p = place(x, c)
        return _from_ball(p, p.B * v, c)

    def dist0(self, x: Tensor) -> Tensor:
        squared = squared_norm(x[..., 1:])
        return (numerics.asinhc(self.c * squared) * numerics.safe_sqrt(squared)).squeeze(-1)

    def midpoint(self, points: Points, weights: Weights) -> Tensor:
        """The sum ``sum |w_j| x_j`` scaled to the hyperboloid, mirror images through the origin for negative weights.

        Its Lorentz square is ``(sum |w|)^2 + 4 sum_{j<k} |w_j w_k| sinh^2(d_jk / 2)``, without cancellation, at a cost
        of ``J^2 / 2`` distances. It is the ball's gyromidpoint.
        """
        c = self.c
        parts, sizes, signs = weighted(points, weights)
        places = [
            place(part, c) if sign is None else _mirrored(place(part, c), sign)
            for part, sign in zip(parts, signs, strict=True)
        ]
        terms = [size * p.space for size, p in zip(sizes, places, strict=True)]
        total = sum(sizes[1:], sizes[0])
        square: Tensor | float = total * total
        for j, p in enumerate(places):
            for k in range(j):
                apart = chart.sinh2_half(between(p, places[k], c), c, p.B, places[k].B)
                square = square + 4.0 * sizes[j] * sizes[k] * apart
        root = square.sqrt() if isinstance(square, Tensor) else square**0.5
        return self.project(with_time(sum(terms[1:], terms[0]) / root, c))

    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        zeros = torch.zeros(*size[:-1], size[-1] - 1, dtype=dtype, device=device)
        return with_time(zeros, self.c.to(zeros.device))

    def problems(self, x: Tensor) -> list[str]:
        problems = super().problems(x)
        if problems:
            return problems
        if x.dtype not in numerics.LIMITS:
            return [f"expected float32 or float64 points, got {x.dtype}; try x.float()"]
        if x.shape[-1] < 2:
            return [f"expected a time coordinate and at least one of space, got {x.shape[-1]} coordinates"]
        with torch.no_grad():
            c = float(self.c)
            time = (squared_norm(x[..., 1:]) + 1.0 / c).sqrt()
            off = (x[..., :1] - time).abs() > 64.0 * torch.finfo(x.dtype).eps * time
            far = c**0.5 * numerics.safe_norm(x[..., 1:]) > (1.0 + 1e-3) * numerics.limits(x.dtype).largest_sinh
            count, beyond = int(off.sum()), int(far.sum())
        if count:
            return [
                f"expected points with x_0 = sqrt(1/c + |x_s|^2), time first (c = {c:.6g}), got {count} of "
                f"{off.numel()} off the hyperboloid; map vectors in with expmap0, or set the time with project"
            ]
        if beyond:
            reach = numerics.limits(x.dtype).reach
            return [
                f"expected points within {reach:.4g} radii of curvature of the origin ({x.dtype}), got {beyond} of "
                f"{far.numel()} beyond; move them inside with project"
            ]
        return []


def _to_ball(p: Place, v: Tensor, c: Tensor) -> Tensor:
    """A tangent vector of the hyperboloid in the ball's coordinates: ``(v_s - b dg) / (1 + g)``, ``dg = c<x,v>/g``."""
    space = v[..., 1:]
    return (space - (c * dot(p.space, space) / p.g) * p.b) / (1.0 + p.g)


def _from_ball(p: Place, v: Tensor, c: Tensor) -> Tensor:
    """The inverse of :func:`_to_ball`: ``v_s = (2/B)(v + (2c/B)<b,v> b)``."""
    return _tangent(p.space, (2.0 / p.B) * (v + (c * dot(p.space, v)) * p.b), c)


def _tangent(space: Tensor, v: Tensor, c: Tensor) -> Tensor:
    """The tangent vector with the spatial part ``v``: its time part is ``<x_s, v> / x_0``."""
    return torch.cat([dot(space, v) * (squared_norm(space) + 1.0 / c).rsqrt(), v], dim=-1)


def _mirrored(p: Place, sign: float | Tensor) -> Place:
    return Place(sign * p.space, p.g, sign * p.b, p.B)


def _count(outside: Tensor) -> None:
    if numerics.counting_projections():
        numerics.record_projections(outside.sum())
