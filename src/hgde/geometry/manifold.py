"""The contract a space offers to solvers and models, with the Poincaré ball and flat space behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from hgde.geometry import ball, numerics
from hgde.geometry.curvature import Curvature


class Manifold(nn.Module, ABC):
    """Maps of a Riemannian manifold. Base point first; the last axis is the manifold axis; scalars drop it.

    ``max_order`` is the order a solver can reach with the maps at hand: ``None`` (no bound) when :meth:`dexp_inv` is
    the inverse differential of exp, a number when it is an approximation such as a transport. ``is_flat`` says that
    tangent spaces need no carrying at all.
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
    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Geodesic distance."""

    @abstractmethod
    def project(self, x: Tensor) -> Tensor:
        """The nearest valid point; valid points come back as they are."""

    @abstractmethod
    def egrad2rgrad(self, x: Tensor, g: Tensor) -> Tensor:
        """Riemannian gradient from the Euclidean one."""

    @abstractmethod
    def dexp(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        """``d exp_x(v)[w]``, a tangent vector at ``y = expmap(x, v)``; give ``y`` if it is at hand."""

    @abstractmethod
    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        """The inverse of :meth:`dexp`: ``w`` at ``y`` taken to the tangent space at ``x``."""

    @abstractmethod
    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        """A reference point repeated to ``size``, the last number being the width."""

    @abstractmethod
    def random(
        self,
        *size: int,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | None = None,
    ) -> Tensor:
        """Points ``exp_o(v)`` with ``v`` normal of standard deviation ``scale`` in the metric, per coordinate."""

    def norm(self, x: Tensor, v: Tensor) -> Tensor:
        """Length of a tangent vector at ``x``; gradient 0 at ``v = 0``."""
        return numerics.safe_sqrt(self.inner(x, v, v))

    def geodesic(self, x: Tensor, y: Tensor, s: float | Tensor) -> Tensor:
        """The point that divides the geodesic from ``x`` to ``y`` in proportion ``s``.

        (eq:hyperbolic-linear-interpolation)
        """
        return self.expmap(x, s * self.logmap(x, y))

    def problems(self, x: Tensor) -> list[str]:
        """What is wrong with ``x`` as a point, in words; empty when nothing is."""
        found = []
        if not x.is_floating_point():
            return [f"expected floating point coordinates, got {x.dtype}; try x.float()"]
        if x.dim() == 0:
            return ["expected the manifold's coordinates on the last axis, got a tensor without axes"]
        bad = int((~torch.isfinite(x.detach())).sum())
        if bad:
            found.append(f"expected finite coordinates, got {bad} of {x.numel()} that are NaN or infinite")
        return found


class Euclidean(Manifold):
    """Flat space behind the same contract: ``exp_x(v) = x + v``, transport is the identity."""

    is_flat = True

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        return x + v

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        return y - x

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return v

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return (u * v).sum(dim=-1)

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        return numerics.safe_norm(x - y).squeeze(-1)

    def project(self, x: Tensor) -> Tensor:
        return x

    def egrad2rgrad(self, x: Tensor, g: Tensor) -> Tensor:
        return g

    def dexp(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return w

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return w

    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        return torch.zeros(*size, dtype=dtype, device=device)

    def random(
        self,
        *size: int,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | None = None,
    ) -> Tensor:
        return scale * torch.randn(*size, generator=generator, dtype=dtype, device=device)


class PoincareBall(Manifold):
    """The ball of curvature ``-c``; ``c`` is a number, trained on request, or a shared :class:`Curvature`."""

    def __init__(self, c: float | Curvature = 1.0, learnable: bool = False) -> None:
        super().__init__()
        self.curvature = c if isinstance(c, Curvature) else Curvature(c, learnable)

    @property
    def c(self) -> Tensor:
        """The curvature magnitude, a 0-d tensor that carries gradient when learnable."""
        value: Tensor = self.curvature()
        return value

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        return ball.expmap(x, v, self.c)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        return ball.logmap(x, y, self.c)

    def expmap0(self, v: Tensor) -> Tensor:
        return ball.expmap0(v, self.c)

    def logmap0(self, y: Tensor) -> Tensor:
        return ball.logmap0(y, self.c)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return ball.transport(x, y, v, self.c)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return ball.inner(x, u, v, self.c)

    def norm(self, x: Tensor, v: Tensor) -> Tensor:
        return ball.norm(x, v, self.c)

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        return ball.dist(x, y, self.c)

    def dist0(self, x: Tensor) -> Tensor:
        return ball.dist0(x, self.c)

    def project(self, x: Tensor) -> Tensor:
        return ball.project(x, self.c)

    def egrad2rgrad(self, x: Tensor, g: Tensor) -> Tensor:
        return ball.egrad2rgrad(x, g, self.c)

    def dexp(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return ball.dexp(x, v, w, self.c, y)

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return ball.dexp_inv(x, v, w, self.c, y)

    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        return torch.zeros(*size, dtype=dtype, device=device)

    def random(
        self,
        *size: int,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | None = None,
    ) -> Tensor:
        # The metric at the origin is 4 <u, v>, so a coordinate of length `scale` is `scale / 2` in numbers.
        v = 0.5 * scale * torch.randn(*size, generator=generator, dtype=dtype, device=device)
        return ball.expmap0(v, self.c.detach())

    def problems(self, x: Tensor) -> list[str]:
        found = super().problems(x)
        if found:
            return found
        if x.dtype not in numerics.LIMITS:
            return [f"expected float32 or float64 points, got {x.dtype}; try x.float()"]
        with torch.no_grad():
            c = float(self.c)
            radius = numerics.safe_norm(x).squeeze(-1) * c**0.5
            bound = 1.0 - numerics.limits(x.dtype).margin
            outside = radius > bound * (1.0 + 4.0 * torch.finfo(x.dtype).eps)
            count = int(outside.sum())
        if not count:
            return []
        return [
            f"expected points with sqrt(c)|x| <= {bound:.12g} (c = {c:.6g}, {x.dtype}), got {count} of "
            f"{outside.numel()} beyond it, the farthest at {float(radius.max()):.12g}; map vectors in "
            "with expmap0, or pull the points back with project"
        ]

    def to_geoopt(self) -> Any:
        """A ``geoopt.PoincareBall`` with this curvature, live: see :func:`hgde.geometry.interop.to_geoopt`."""
        from hgde.geometry.interop import to_geoopt

        return to_geoopt(self)
