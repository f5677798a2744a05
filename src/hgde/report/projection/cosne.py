"""CO-SNE: neighbour embedding in the disk (Guo, Guo and Yu, CVPR 2022).

Neighbours in the ball have ``p_{j|i} ∝ exp(-d(x_i, x_j)^2 / 2 σ_i^2)`` with ``σ_i`` set by a perplexity,
``p_ij = (p_{j|i} + p_{i|j}) / 2N``. In the disk ``q_ij ∝ γ / (d(y_i, y_j)^2 + γ^2)``, a hyperbolic Cauchy law. The loss

    KL(p | q) + weight * mean_i (r(x_i) - r(y_i))^2 / (mean_i r(x_i))^2,      r(x) = d(o, x),

has a second term that keeps levels: what was far out stays there. The paper takes ``|x|^2`` for ``r``, which is within
a hundredth of one from distance 6 on: beyond, nothing holds the levels of a deep tree, and its picture shrinks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.geometry import ball
from hgde.report.projection.descent import best_of_many, descend, spread_apart
from hgde.report.projection.stress import stress

MOST_NODES = 5000


def neighbour_probabilities(z: Tensor, perplexity: float) -> Tensor:
    """Symmetric ``p [N, N]``, zero on the diagonal, sum one, from rows of entropy ``log(perplexity)``. ``O(N^2)``"""
    squared = ball.dist(z[:, None], z[None], 1.0).square()
    squared.fill_diagonal_(float("inf"))
    nearest = squared.min(dim=1, keepdim=True).values
    target = torch.log(torch.tensor(perplexity, dtype=z.dtype))
    low = torch.full((len(z), 1), -20.0, dtype=z.dtype)
    high = torch.full((len(z), 1), 20.0, dtype=z.dtype)
    for _ in range(60):
        middle = 0.5 * (low + high)
        rows = torch.exp(-(squared - nearest) * middle.exp())
        rows = rows / rows.sum(dim=1, keepdim=True)
        entropy = -torch.xlogy(rows, rows).sum(dim=1, keepdim=True)
        low = torch.where(entropy > target, middle, low)
        high = torch.where(entropy > target, high, middle)
    return (rows + rows.T) / (2.0 * len(z))


def cosne_loss(points: Tensor, p: Tensor, levels: Tensor, *, gamma: float, weight: float) -> Tensor:
    """The loss above for points of the disk ``[N, 2]``, ``p [N, N]`` and ``levels = r(x) [N]``."""
    likeness = gamma / (ball.dist(points[:, None], points[None], 1.0).square() + gamma * gamma)
    off = 1.0 - torch.eye(len(points), dtype=points.dtype)
    total = (likeness * off).sum()
    attracted = (torch.xlogy(p, p) - p * (likeness.log() - total.log())).sum()
    off_level = (levels - ball.dist0(points, 1.0)) / levels.mean().clamp_min(1e-6)
    return attracted + weight * off_level.square().mean()


def cosne(
    z: Tensor,
    *,
    perplexity: float = 20.0,
    gamma: float = 0.3,
    weight: float = 10.0,
    steps: int = 200,
    seed: int = 0,
) -> Tensor:
    """Points ``[N, d]`` of the unit ball in the disk ``[N, 2]``, from a short descent of stress on. ``O(steps N^2)``

    >>> import torch
    >>> cosne(torch.eye(14, dtype=torch.float64) / 2, steps=5).shape
    torch.Size([14, 2])
    """
    if len(z) > MOST_NODES:
        raise ValueError(
            f"expected at most {MOST_NODES} nodes for cosne, whose cost is their square, got {len(z)}; "
            "try stress or horopca, or embed a sample"
        )
    if len(z) < 4:
        return stress(z, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    p = neighbour_probabilities(z, min(perplexity, (len(z) - 1) / 3.0))
    levels = ball.dist0(z, 1.0)
    start = spread_apart(stress(z, seed=seed, steps=60), generator)

    def loss(y: Tensor) -> Tensor:
        return cosne_loss(y, p, levels, gamma=gamma, weight=weight)

    return best_of_many(loss, descend(loss, start, steps=steps, rate=0.1), generator)
