"""geoopt's Poincaré ball reading our curvature. A module of its own, so that geoopt is imported only when asked for."""

from __future__ import annotations

import geoopt
from torch import Tensor

from hgde.geometry.manifold import PoincareBall


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
