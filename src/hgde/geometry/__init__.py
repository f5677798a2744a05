"""Hyperbolic geometry on the Poincaré ball, flat space and geoopt's manifolds behind one contract."""

from hgde.geometry import ball
from hgde.geometry.curvature import Curvature
from hgde.geometry.interop import GeooptManifold, manifold_parameter, to_geoopt
from hgde.geometry.manifold import Euclidean, Manifold, PoincareBall
from hgde.geometry.numerics import LIMITS, count_pullbacks, record_pullbacks

__all__ = [
    "LIMITS",
    "Curvature",
    "Euclidean",
    "GeooptManifold",
    "Manifold",
    "PoincareBall",
    "ball",
    "count_pullbacks",
    "manifold_parameter",
    "record_pullbacks",
    "to_geoopt",
]
