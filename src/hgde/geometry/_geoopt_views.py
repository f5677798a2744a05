"""Our spaces as geoopt sees them. A module of its own, so that geoopt is imported only when asked for."""

from __future__ import annotations

from typing import Any

import geoopt
import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.geometry.poincare import PoincareBall


class SharedBall(geoopt.PoincareBall):  # type: ignore[misc]  # geoopt is untyped
    """A ``geoopt.PoincareBall`` whose ``c`` is that of ``source`` at every call, trained or not.

    geoopt's own constructor is left out: it registers a parameter under the name of a property, which torch refuses.
    """

    name = "PoincareBall"

    def __init__(self, source: PoincareBall) -> None:
        geoopt.manifolds.base.Manifold.__init__(self)
        self.source = source

    @property
    def c(self) -> Tensor:
        return self.source.c


class SharedManifold(geoopt.manifolds.base.Manifold):  # type: ignore[misc]  # geoopt is untyped
    """What geoopt's optimisers ask of a manifold, answered by ``source``."""

    name = "hgde"
    ndim = 1
    reversible = True

    def __init__(self, source: Manifold) -> None:
        super().__init__()
        self.source = source

    def retr(self, x: Tensor, u: Tensor) -> Tensor:
        return self.source.expmap(x, u)

    def expmap(self, x: Tensor, u: Tensor) -> Tensor:
        return self.source.expmap(x, u)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        return self.source.logmap(x, y)

    def transp(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return self.source.transport(x, y, v)

    def inner(self, x: Tensor, u: Tensor, v: Tensor | None = None, *, keepdim: bool = False) -> Tensor:
        value = self.source.inner(x, u, u if v is None else v)
        return value.unsqueeze(-1) if keepdim else value

    def dist(self, x: Tensor, y: Tensor, *, keepdim: bool = False) -> Tensor:
        value = self.source.dist(x, y)
        return value.unsqueeze(-1) if keepdim else value

    def projx(self, x: Tensor) -> Tensor:
        return self.source.project(x)

    def proju(self, x: Tensor, u: Tensor) -> Tensor:
        return self.source.tangent(x, u)

    def egrad2rgrad(self, x: Tensor, u: Tensor) -> Tensor:
        return self.source.egrad2rgrad(x, u)

    def random(self, *size: int, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> Tensor:
        return self.source.random(*size, dtype=dtype, device=device)

    def origin(self, *size: int, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> Tensor:
        return self.source.origin(*size, dtype=dtype, device=device).detach()

    def _check_point_on_manifold(self, x: Tensor, **_: Any) -> tuple[bool, str | None]:
        problems = self.source.problems(x)
        return not problems, "; ".join(problems) or None

    def _check_vector_on_tangent(self, x: Tensor, u: Tensor, **_: Any) -> tuple[bool, str | None]:
        valid = bool(torch.allclose(self.proju(x, u), u, rtol=1e-4, atol=1e-5))
        return valid, None if valid else "the vector is not tangent"
