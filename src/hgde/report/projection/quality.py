"""How true a picture is: distortion of distances and preservation of neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.geometry import ball


@dataclass(frozen=True)
class Quality:
    """``distortion``: mean of ``|d'/d - 1|`` over pairs, 0 is perfect. ``neighbours``: mean share of a node's ``k``
    nearest nodes that are among its ``k`` nearest in the picture, 1 is perfect.

    >>> Quality(0.1, 0.9, 10).as_dict()
    {'distortion': 0.1, '10-neighbour overlap': 0.9}
    """

    distortion: float
    neighbours: float
    k: int

    def as_dict(self) -> dict[str, float]:
        return {"distortion": self.distortion, f"{self.k}-neighbour overlap": self.neighbours}


def distortion(z: Tensor, points: Tensor, pairs: Tensor) -> float:
    """Mean ``|d'(i,j) / d(i,j) - 1|`` over ``pairs [2, P]``; pairs of equal points are left out."""
    true = ball.dist(z[pairs[0]], z[pairs[1]], 1.0)
    seen = ball.dist(points[pairs[0]], points[pairs[1]], 1.0)
    apart = true > 1e-9
    return float((seen[apart] / true[apart] - 1.0).abs().mean()) if bool(apart.any()) else 0.0


def neighbour_overlap(z: Tensor, points: Tensor, k: int, queries: Tensor) -> float:
    """Mean share of the ``k`` nearest nodes of each query that stay among the ``k`` nearest. ``O(Q N d)``"""
    shared = 0
    for part in queries.split(max(1, 4_000_000 // (len(z) * z.shape[1]))):
        sets = []
        for space in (z, points):
            away = ball.dist(space[part, None], space[None], 1.0)
            away[torch.arange(len(part)), part] = float("inf")
            sets.append(away.topk(k, largest=False).indices)
        shared += int((sets[0][:, :, None] == sets[1][:, None, :]).sum())
    return shared / (k * len(queries))


def measure_quality(z: Tensor, points: Tensor, *, k: int = 10, seed: int = 0) -> Quality:
    """Both measures, on all pairs up to 500 points and on a sample of 100,000 pairs and 300 queries beyond.

    >>> import torch
    >>> z = torch.eye(3, dtype=torch.float64) / 2
    >>> measure_quality(z, z)
    Quality(distortion=0.0, neighbours=1.0, k=2)
    """
    n = len(z)
    k = max(1, min(k, n - 1))
    if n < 2:
        return Quality(0.0, 1.0, k)
    generator = torch.Generator().manual_seed(seed)
    if n <= 500:
        pairs = torch.triu_indices(n, n, 1)
        queries = torch.arange(n)
    else:
        first = torch.randint(n, (100_000,), generator=generator)
        pairs = torch.stack([first, (first + torch.randint(1, n, (100_000,), generator=generator)) % n])
        queries = torch.randperm(n, generator=generator)[:300]
    return Quality(distortion(z, points, pairs), neighbour_overlap(z, points, k, queries), k)
