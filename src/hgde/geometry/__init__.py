"""Hyperbolic space as ball and hyperboloid, flat space, products and geoopt's manifolds behind one contract."""

from hgde.geometry import ball
from hgde.geometry.contract import Manifold
from hgde.geometry.curvature import Curvature
from hgde.geometry.euclidean import Euclidean
from hgde.geometry.geoopt import GeooptManifold, manifold_parameter, to_geoopt
from hgde.geometry.lorentz import Lorentz
from hgde.geometry.numerics import LIMITS, count_projections, counting_projections, record_projections
from hgde.geometry.poincare import PoincareBall
from hgde.geometry.product import Product
from hgde.geometry.spaces import SPACES, make_space

__all__ = [
    "LIMITS",
    "SPACES",
    "Curvature",
    "Euclidean",
    "GeooptManifold",
    "Lorentz",
    "Manifold",
    "PoincareBall",
    "Product",
    "ball",
    "count_projections",
    "counting_projections",
    "make_space",
    "manifold_parameter",
    "record_projections",
    "to_geoopt",
]
