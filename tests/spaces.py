"""Every manifold the package offers, with its number of coordinates and its dimension."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from hgde.geometry import Euclidean, GeooptManifold, Lorentz, Manifold, PoincareBall, Product


def _geoopt(make: Callable[[], object], differential: str | None = None) -> Callable[[], Manifold]:
    return lambda: GeooptManifold(make(), differential)


def _sphere() -> object:
    import geoopt

    return geoopt.Sphere()


def _lorentz() -> object:
    import geoopt

    return geoopt.Lorentz(k=torch.tensor(2.0, dtype=torch.float64))


def _stereographic() -> object:
    import geoopt

    return geoopt.Stereographic(k=torch.tensor(-0.7, dtype=torch.float64))


def _product() -> object:
    import geoopt

    return geoopt.ProductManifold((geoopt.Sphere(), 3), (geoopt.Euclidean(ndim=1), 2))


@dataclass(frozen=True)
class Space:
    """``width`` coordinates, dimension ``dim``. ``karcher``: midpoints are those of the contract's default."""

    make: Callable[[], Manifold]
    width: int
    dim: int
    karcher: bool = False


SPACES = {
    "flat": Space(Euclidean, 3, 3),
    "flat, the ball's scale": Space(lambda: Euclidean(scale=2.0), 3, 3),
    "ball c=1": Space(lambda: PoincareBall(1.0), 3, 3),
    "ball c=0.3": Space(lambda: PoincareBall(0.3), 3, 3),
    "ball c=4": Space(lambda: PoincareBall(4.0), 3, 3),
    "lorentz c=1": Space(lambda: Lorentz(1.0), 4, 3),
    "lorentz c=0.3": Space(lambda: Lorentz(0.3), 4, 3),
    "lorentz c=4": Space(lambda: Lorentz(4.0), 4, 3),
    "ball x flat": Space(lambda: Product([PoincareBall(0.7), Euclidean(2.0)], [2, 2]), 4, 4),
    "lorentz x ball x flat": Space(lambda: Product([Lorentz(2.0), PoincareBall(0.5), Euclidean()], [2, 2, 1]), 6, 5),
    "geoopt stereographic": Space(_geoopt(_stereographic), 3, 3, karcher=True),
    "geoopt sphere": Space(_geoopt(_sphere), 3, 2, karcher=True),
    "geoopt sphere, autograd": Space(_geoopt(_sphere, "autograd"), 3, 2, karcher=True),
    "geoopt lorentz": Space(_geoopt(_lorentz), 4, 3, karcher=True),
    "geoopt product": Space(_geoopt(_product), 5, 4, karcher=True),
}
