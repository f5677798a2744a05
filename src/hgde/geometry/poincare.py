"""The Poincaré ball behind the contract of manifolds; its formulas are the functions of :mod:`hgde.geometry.ball`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.geometry import ball, numerics
from hgde.geometry.contract import Points, Weights
from hgde.geometry.spaces import SPACES, Hyperbolic


@SPACES.register("ball")
class PoincareBall(Hyperbolic):
    """The ball of curvature ``-c``; ``c`` is a number, trained on request, or a shared :class:`Curvature`.

    >>> import torch
    >>> ball = PoincareBall(c=1.0)
    >>> x = ball.expmap0(torch.tensor([0.5, 0.0]))
    >>> round(ball.dist0(x).item(), 4), ball.problems(x)
    (1.0, [])
    """

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        return ball.expmap(x, v, self.c)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        return ball.logmap(x, y, self.c)

    def expmap0(self, v: Tensor) -> Tensor:
        return ball.expmap0(v, self.c)

    def logmap0(self, x: Tensor) -> Tensor:
        return ball.logmap0(x, self.c)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return ball.transport(x, y, v, self.c)

    def transport0(self, x: Tensor, v: Tensor) -> Tensor:
        return ball.transport0(x, v, self.c)

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

    def midpoint(self, points: Points, weights: Weights) -> Tensor:
        """The gyromidpoint; see :func:`hgde.geometry.ball.gyromidpoint`."""
        return ball.gyromidpoint(points, weights, self.c)

    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        return torch.zeros(*size, dtype=dtype, device=device)

    def problems(self, x: Tensor) -> list[str]:
        problems = super().problems(x)
        if problems:
            return problems
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
            "with expmap0, or move the points inside with project"
        ]

    def to_geoopt(self) -> Any:
        """A ``geoopt.PoincareBall`` with this curvature, live: see :func:`hgde.geometry.geoopt.to_geoopt`."""
        from hgde.geometry.geoopt import to_geoopt

        return to_geoopt(self)
