"""Hyperbolic stress: points of the disk whose distances are those of the ball."""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.geometry import ball
from hgde.report.projection.descent import best_of_many, descend, spread_apart
from hgde.report.projection.horopca import horopca
from hgde.report.projection.principal import principal

_ALL_PAIRS_UP_TO = 600
_PARTNERS = 24  # of each node per step, where pairs are sampled


def stress_of(points: Tensor, true: Tensor, pairs: Tensor) -> Tensor:
    """``mean ((d'(i,j) - d(i,j)) / d(i,j))^2`` over ``pairs [2, P]`` with true distances ``[P]``."""
    seen = ball.dist(points[pairs[0]], points[pairs[1]], 1.0)
    return ((seen - true) / true).square().mean()


def stress(z: Tensor, *, seed: int = 0, steps: int = 200) -> Tensor:
    """Points ``[N, 2]`` of the disk with the least relative stress to ``z [N, d]``.

    Stress has local minima, so the better of two beginnings goes on: principal directions and HoroPCA. All pairs up to
    600 nodes, 24 random partners of each node per step beyond: ``O(steps N)``.

    >>> import torch
    >>> stress(torch.eye(3, dtype=torch.float64) / 2, steps=20).shape
    torch.Size([3, 2])
    """
    if len(z) < 2:
        return principal(z)[:, :2]
    generator = torch.Generator().manual_seed(seed)
    n = len(z)

    def apart(pairs: Tensor) -> Tensor:
        # Equal points have no relative error; what is nearer than a hundredth counts as that far.
        return ball.dist(z[pairs[0]], z[pairs[1]], 1.0).clamp_min(0.01)

    every = torch.triu_indices(n, n, 1) if n <= _ALL_PAIRS_UP_TO else None
    true = None if every is None else apart(every)

    def loss(points: Tensor) -> Tensor:
        if every is not None and true is not None:
            return stress_of(points, true, every)
        first = torch.arange(n).repeat(_PARTNERS)
        pairs = torch.stack([first, (first + torch.randint(1, n, first.shape, generator=generator)) % n])
        return stress_of(points, apart(pairs), pairs)

    starts = [spread_apart(start, generator) for start in (principal(z), horopca(z, seed=seed))]
    begun = [descend(loss, start, steps=max(1, steps // 4), rate=0.2) for start in starts]
    points = descend(loss, min(begun, key=lambda points: float(loss(points))), steps=steps, rate=0.1)
    return points if every is None else best_of_many(loss, points, generator)
