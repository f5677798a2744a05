"""What the Lorentzian models share: inner products, centroids over neighbours, features on the hyperboloid.

Points are ``[N, d + 1]`` with time first, ``<x, x>_L = -1/c``. The papers' ``exp_o(v)`` lies at distance ``|v|``; the
package's ``expmap0`` takes the ball's coordinates, in which the same point is ``v / 2``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hgde.geometry import Lorentz
from hgde.geometry.lorentz import with_time
from hgde.geometry.numerics import safe_sqrt, sinhc, squared_norm
from hgde.graph import Features, SparseFeatures
from hgde.models.zoo._common import edge_dot


def exp0(space: Lorentz, v: Tensor) -> Tensor:
    """``exp_o`` of the papers: the point at distance ``|v|`` in direction ``v``. ``[N, d] -> [N, d + 1]``"""
    return space.expmap0(0.5 * v)


def log0(space: Lorentz, x: Tensor) -> Tensor:
    """Inverse of :func:`exp0`: spatial coordinates of ``log_o(x)``. ``[N, d + 1] -> [N, d]``"""
    return 2.0 * space.logmap0(x)


def mirrored(y: Tensor) -> Tensor:
    """``(-y_0, y_s)``, whose ordinary inner product with ``x`` is ``<x, y>_L``."""
    return torch.cat([-y[:, :1], y[:, 1:]], dim=1)


def edge_inner(edges: SparseFeatures, x: Tensor, y: Tensor) -> Tensor:
    """``<x_i, y_j>_L`` of every edge, ``[N, d + 1], [N, d + 1] -> [E]``."""
    return edge_dot(edges, x, mirrored(y))


def pairwise_inner(x: Tensor, y: Tensor) -> Tensor:
    """``<x_i, y_k>_L`` of all pairs, ``[N, d + 1], [K, d + 1] -> [N, K]``."""
    return x @ mirrored(y).T


def centroid(total: Tensor, c: Tensor) -> Tensor:
    """``s / (sqrt(c) sqrt(-<s, s>_L))``: the point in the direction of a weighted sum of points, ``[N, d + 1]``.

    It minimises the weighted sum of squared Lorentzian distances.
    """
    space = total[:, 1:]
    squared = (total[:, :1].square() - squared_norm(space)).clamp_min(torch.finfo(total.dtype).tiny ** 0.5)
    return with_time(space * (c * squared).rsqrt(), c)


def on_hyperboloid(features: Features, c: Tensor) -> tuple[Tensor, Features]:
    """``exp_o`` of the features, time ``[N, 1]`` and space ``[N, F]`` apart, so that sparse ones stay sparse.

    ``(cosh(r) / sqrt(c), sinh(r) / r v)`` with ``r = sqrt(c)|v|``. Rows so long that the square of a coordinate would
    overflow keep their direction at the greatest length that does not: one outlier must not cost a whole training.
    """
    if isinstance(features, SparseFeatures):
        squares = features.values.new_zeros(features.shape[0]).index_add(0, features.rows, features.values.square())
        q = c * squares[:, None]
    else:
        q = c * squared_norm(features)
    most = (0.45 * math.log(torch.finfo(q.dtype).max)) ** 2
    kept = q.clamp_max(most)
    factor = sinhc(kept) * torch.where(q > most, (most / q.clamp_min(most)).sqrt(), 1.0)
    time = torch.cosh(safe_sqrt(kept)) / c.sqrt()
    if isinstance(features, SparseFeatures):
        return time, features.with_values(features.values * factor[features.rows, 0])
    return time, features * factor
