"""A hyperbolic random graph: points of the hyperbolic disk, joined where they are close."""

from __future__ import annotations

import math

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.sets._simulated import Array, assembled, enough, noisy_features, simulated
from hgde.data.spec import register

_SAMPLE = 256


def make(
    seed: int = 0,
    num_nodes: int = 2000,
    classes: int = 6,
    degree: float = 8.0,
    exponent: float = 2.6,
    num_features: int = 16,
    signal: float = 1.5,
) -> Dataset:
    """Krioukov et al. (2010): angles uniform, radii of density ``sinh(a r)`` in a disk, joined within its radius.

    ``a = (exponent - 1) / 2`` gives degrees a power law of that exponent. The disk's radius is chosen so that the mean
    degree of some of the nodes is ``degree``. A node's class is the sector it lies in. Cost: ``N^2``.
    """
    enough(num_nodes, 50)
    if exponent <= 2:
        raise ValueError(f"exponent must be greater than 2, got {exponent}")
    random = np.random.RandomState(seed)
    angle = 2 * math.pi * random.random_sample(num_nodes)
    share = random.random_sample(num_nodes)
    steepness = (exponent - 1) / 2

    def neighbours(rows: Array, disk: float) -> Array:
        radius = np.arccosh(1 + share * (math.cosh(steepness * disk) - 1)) / steepness
        return _close(angle, radius, rows, disk)

    # Radii are evenly represented: a hub more or less would change the mean.
    every = max(1, num_nodes // _SAMPLE)
    sample = np.argsort(share, kind="stable")[every // 2 :: every]
    low, high = 1.0, 4 * math.log(num_nodes)
    for _ in range(24):
        disk = (low + high) / 2
        # Every node is close to itself.
        too_many = neighbours(sample, disk).sum() - sample.size > degree * sample.size
        low, high = (disk, high) if too_many else (low, disk)
    blocks = [np.arange(start, min(start + _SAMPLE, num_nodes)) for start in range(0, num_nodes, _SAMPLE)]
    pairs = np.concatenate([_pairs(rows, neighbours(rows, disk)) for rows in blocks], axis=1)
    labels = (angle / (2 * math.pi) * classes).astype(np.int64)
    features = noisy_features(random, labels, num_features, signal)
    return assembled("hyperbolic-sim", pairs, labels, features, seed=seed, radius=round(disk, 4), exponent=exponent)


def _close(angle: Array, radius: Array, rows: Array, disk: float) -> Array:
    """Where ``cosh d = cosh r cosh r' - sinh r sinh r' cos(angle)`` is at most ``cosh disk``, ``[rows, N]``."""
    cosh, sinh = np.cosh(radius), np.sinh(radius)
    apart = np.cos(angle[rows, None] - angle[None, :])
    return np.asarray(cosh[rows, None] * cosh - sinh[rows, None] * sinh * apart <= math.cosh(disk))


def _pairs(rows: Array, close: Array) -> Array:
    u, v = close.nonzero()
    u = rows[u]
    return np.stack([u[u < v], v[u < v]])


SPEC = register(simulated("hyperbolic-sim", "a hyperbolic random graph; classes are sectors of its disk", make))
