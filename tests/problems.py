"""Equations for the solver tests: fields on any manifold, with parameters, and an answer where there is one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hgde.geometry import Manifold, PoincareBall, ball
from hgde.solvers.orders import Spiral

__all__ = ["DrawnField", "Spiral", "swing"]


def swing(t: Tensor, x: Tensor) -> Tensor:
    """A nonlinear field of flat space that depends on time, bounded and with Lipschitz constant about one."""
    return torch.sin(x.roll(1, -1) + t) - 0.5 * x + 0.2 * torch.cos(2.0 * t)


class DrawnField(nn.Module):
    """A field on the ball with parameters: points are drawn to a centre and turned, smoothly and not along geodesics.

    Stated with geodesic notions alone, so that moving ``centre`` and the matrix by an isometry moves the field.
    """

    def __init__(self, manifold: Manifold, dim: int = 2, seed: int = 0) -> None:
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.manifold = manifold
        self.centre = 0.3 * torch.randn(dim, generator=g, dtype=torch.float64)
        a = torch.randn(dim, dim, generator=g, dtype=torch.float64)
        self.matrix = nn.Parameter(0.6 * (a - a.T) - 0.4 * torch.eye(dim, dtype=torch.float64))
        if isinstance(manifold, PoincareBall):
            self.centre = ball.expmap0(self.centre, manifold.c.detach())

    def forward(self, t: Tensor, x: Tensor) -> Tensor:
        p = self.centre.expand_as(x)
        u = self.manifold.logmap(p, x)
        return self.manifold.dexp(p, u, (1.0 + 0.3 * torch.sin(3.0 * t)) * (u @ self.matrix.T), x)
