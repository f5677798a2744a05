"""The contract a space offers to solvers and models.

A new space is one file with a subclass of :class:`Manifold`. It must bring exp, log, transport, the metric, the origin
and the Riemannian gradient; everything else has a default made from those, which a space replaces where it knows
better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from hgde.geometry import numerics

Weights = Tensor | Sequence[float | Tensor]
Points = Tensor | Sequence[Tensor]

#: Steps towards the Karcher mean in the default midpoint. For points within one radius of curvature of each other the
#: error falls about tenfold with each.
MIDPOINT_STEPS = 10


class Manifold(nn.Module, ABC):
    """Maps of a Riemannian manifold. Base point first; the last axis is the manifold axis; scalars drop it.

    A space of dimension ``width`` has ``ambient(width)`` coordinates. Maps whose name ends in ``0`` work at the
    reference point :meth:`origin` and take or give ``[..., width]``: tangent vectors there in an orthonormal frame, in
    units of *half* a length, so that ``expmap0(v)`` lies at distance ``2|v|``. These are the coordinates that the unit
    ball has anyway (its metric at the origin is ``4<u,v>``); with them every space shares the parameters of a model.

    ``max_order`` is the order a solver can reach with the maps at hand: ``None`` (no bound) when :meth:`dexp_inv` is
    the inverse differential of exp, a number when it is an approximation such as a transport. ``is_flat`` says that
    tangent spaces need no carrying at all.

    >>> from hgde import PoincareBall
    >>> isinstance(PoincareBall(), Manifold)
    True
    """

    has_dexp: bool = True
    is_flat: bool = False
    max_order: int | None = None

    @abstractmethod
    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        """Where the geodesic from ``x`` with velocity ``v`` is after unit time."""

    @abstractmethod
    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        """The tangent vector at ``x`` with ``expmap(x, v) = y``."""

    @abstractmethod
    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """Parallel transport of ``v`` from ``x`` to ``y``."""

    @abstractmethod
    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Inner product of tangent vectors at ``x``."""

    @abstractmethod
    def egrad2rgrad(self, x: Tensor, g: Tensor) -> Tensor:
        """Riemannian gradient from the Euclidean one."""

    @abstractmethod
    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        """The reference point repeated to a tensor of shape ``size``; its last number is that of the coordinates."""

    def project(self, x: Tensor) -> Tensor:
        """The nearest valid point; valid points come back as they are. By default every point is valid."""
        return x

    def tangent(self, x: Tensor, u: Tensor) -> Tensor:
        """The part of ``u`` that is tangent at ``x``; tangent vectors come back as they are. By default all are."""
        return u

    def norm(self, x: Tensor, v: Tensor) -> Tensor:
        """Length of a tangent vector at ``x``; gradient 0 at ``v = 0``."""
        return numerics.safe_sqrt(self.inner(x, v, v))

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Geodesic distance."""
        return self.norm(x, self.logmap(x, y))

    def geodesic(self, x: Tensor, y: Tensor, s: float | Tensor) -> Tensor:
        """The point that divides the geodesic from ``x`` to ``y`` in proportion ``s``.

        (eq:hyperbolic-linear-interpolation)
        """
        return self.expmap(x, s * self.logmap(x, y))

    def dexp(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        """``d exp_x(v)[w]``, a tangent vector at ``y = expmap(x, v)``; give ``y`` if it is at hand.

        By default :meth:`expmap` is differentiated in forward mode, which keeps the result differentiable itself.
        """
        return derivative(lambda u: self.expmap(x, u), v, w)

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        """The inverse of :meth:`dexp`: ``w`` at ``y`` taken to the tangent space at ``x``. By default through log."""
        end = self.expmap(x, v) if y is None else y
        return derivative(lambda point: self.logmap(x, point), end, w)

    def ambient(self, width: int) -> int:
        """How many coordinates a point of the space of dimension ``width`` has."""
        return width

    def dimension(self, coordinates: int) -> int:
        """The dimension of the space whose points have so many coordinates; the inverse of :meth:`ambient`."""
        return coordinates

    def frame0(self, coordinates: int, *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """An orthonormal basis of the tangent space at the origin, ``[dimension, coordinates]``.

        By default every vector is a tangent vector, and the unit vectors are made orthonormal in the metric.
        """
        o = self.origin(coordinates, coordinates, dtype=dtype, device=device)
        unit = torch.eye(coordinates, dtype=dtype, device=device)
        size = (coordinates, coordinates, coordinates)
        gram = self.inner(o[:, None].expand(size), unit[:, None].expand(size), unit[None].expand(size))
        return torch.linalg.solve_triangular(torch.linalg.cholesky(gram), unit, upper=False)

    def _origin_like(self, x: Tensor) -> Tensor:
        return self.origin(*x.shape, dtype=x.dtype, device=x.device)

    def expmap0(self, v: Tensor) -> Tensor:
        """The point at distance ``2|v|`` from the origin in direction ``v``. ``[..., width] -> [..., coordinates]``"""
        coordinates = self.ambient(v.shape[-1])
        o = self.origin(*v.shape[:-1], coordinates, dtype=v.dtype, device=v.device)
        return self.expmap(o, 2.0 * v @ self.frame0(coordinates, dtype=v.dtype, device=v.device))

    def logmap0(self, x: Tensor) -> Tensor:
        """The inverse of :meth:`expmap0`. ``[..., coordinates] -> [..., width]``"""
        o = self._origin_like(x)
        return 0.5 * self._components0(o, self.logmap(o, x))

    def transport0(self, x: Tensor, v: Tensor) -> Tensor:
        """``v [..., width]`` at the origin carried to ``x`` along the geodesic; its length there is ``2|v|``."""
        frame = self.frame0(x.shape[-1], dtype=x.dtype, device=x.device)
        return self.transport(self._origin_like(x), x, 2.0 * v @ frame)

    def dist0(self, x: Tensor) -> Tensor:
        """Distance to the origin."""
        return self.dist(self._origin_like(x), x)

    def _components0(self, o: Tensor, v: Tensor) -> Tensor:
        """The components of tangent vectors at the origin in :meth:`frame0`. ``[..., width]``"""
        frame = self.frame0(v.shape[-1], dtype=v.dtype, device=v.device)
        size = (*v.shape[:-1], *frame.shape)
        return self.inner(o.unsqueeze(-2).expand(size), v.unsqueeze(-2).expand(size), frame.expand(size))

    def midpoint(self, points: Points, weights: Weights) -> Tensor:
        """Weighted midpoint of ``J`` points.

        ``points`` is stacked on axis 0, ``[J, ..., coordinates]``, or a list of ``J``; ``weights`` are ``J`` numbers or
        tensors that broadcast against ``[..., 1]``. A negative weight acts as the positive one at the point's mirror
        image through the origin. Only ratios of weights matter; if all vanish there is no midpoint and the result is
        NaN.

        By default ``MIDPOINT_STEPS`` steps ``x <- exp_x(sum |w_j| log_x(p_j) / sum |w_j|)`` towards the Karcher mean.
        """
        parts, sizes, signs = weighted(points, weights)
        placed = [part if sign is None else self._mirrored(part, sign) for part, sign in zip(parts, signs, strict=True)]
        total = sum(sizes[1:], sizes[0])
        shares = [size / total for size in sizes]
        x = placed[0]
        for _ in range(MIDPOINT_STEPS):
            logs = [share * self.logmap(x, part) for share, part in zip(shares, placed, strict=True)]
            x = self.expmap(x, sum(logs[1:], logs[0]))
        return x

    def _mirrored(self, x: Tensor, sign: float | Tensor) -> Tensor:
        """``x`` where ``sign`` is positive, its mirror image through the origin where it is negative."""
        return self.expmap0(sign * self.logmap0(x))

    def random(
        self,
        *size: int,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | None = None,
    ) -> Tensor:
        """Points ``exp_o(v)`` with ``v`` normal of standard deviation ``scale`` in the metric, per dimension.

        ``size`` is the shape of the tensor, its last number that of the coordinates.
        """
        shape = (*size[:-1], self.dimension(size[-1]))
        v = 0.5 * scale * torch.randn(*shape, generator=generator, dtype=dtype, device=device)
        return self.expmap0(v).detach()

    def problems(self, x: Tensor) -> list[str]:
        """What is wrong with ``x`` as a point, in words; empty when nothing is."""
        if not x.is_floating_point():
            return [f"expected floating point coordinates, got {x.dtype}; try x.float()"]
        if x.dim() == 0:
            return ["expected the manifold's coordinates on the last axis, got a tensor without axes"]
        bad = int((~torch.isfinite(x.detach())).sum())
        if bad:
            return [f"expected finite coordinates, got {bad} of {x.numel()} that are NaN or infinite"]
        return []


def derivative(function: Callable[[Tensor], Tensor], at: Tensor, along: Tensor) -> Tensor:
    """Directional derivative in forward mode."""
    result: Tensor = torch.func.jvp(function, (at,), (along,))[1]
    return result


def weighted(
    points: Points, weights: Weights
) -> tuple[list[Tensor], list[float | Tensor], list[float | Tensor | None]]:
    """Points, sizes ``|w|`` and signs of a weighted midpoint, one each; a sign that is surely plus is ``None``."""
    parts = list(points.unbind(0)) if isinstance(points, Tensor) else list(points)
    etas: list[float | Tensor] = list(weights.unbind(0)) if isinstance(weights, Tensor) else list(weights)
    if len(parts) != len(etas) or not parts:
        raise ValueError(f"expected one weight per point, got {len(parts)} points and {len(etas)} weights")
    sizes = [eta.abs() if isinstance(eta, Tensor) else abs(eta) for eta in etas]
    signs: list[float | Tensor | None] = [
        torch.sign(eta) if isinstance(eta, Tensor) else (None if eta > 0 else float(-1 if eta < 0 else 0))
        for eta in etas
    ]
    return parts, sizes, signs
