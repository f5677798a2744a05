"""From a ball of any dimension to the disk, with what it costs in truth measured beside.

>>> import torch
>>> z = 0.3 * torch.randn(20, 5, generator=torch.Generator().manual_seed(0)).tanh()
>>> seen = project_to_disk(z, 1.0, "horopca")
>>> seen.points.shape, seen.quality.neighbours <= 1.0
(torch.Size([20, 2]), True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from hgde.report.projection.cosne import cosne
from hgde.report.projection.horopca import horopca
from hgde.report.projection.principal import principal
from hgde.report.projection.quality import Quality, measure_quality
from hgde.report.projection.stress import stress

Method = Callable[[Tensor, int], Tensor]

#: Name to function of points of the unit ball ``[N, d]`` in float64 and a seed.
METHODS: dict[str, Method] = {
    "principal": lambda z, seed: principal(z),
    "horopca": lambda z, seed: horopca(z, seed=seed),
    "stress": lambda z, seed: stress(z, seed=seed),
    "cosne": lambda z, seed: cosne(z, seed=seed),
}


@dataclass(frozen=True)
class DiskProjection:
    """Points of the unit disk ``[N, 2]`` (float64), how they were made, and how true they are.

    >>> import torch
    >>> from hgde.report.projection import project_to_disk
    >>> project_to_disk(torch.eye(3) / 4, c=1.0).points.shape
    torch.Size([3, 2])
    """

    points: Tensor
    method: str
    quality: Quality


def project_to_disk(z: Tensor, c: float, method: str = "principal", *, seed: int = 0) -> DiskProjection:
    """Points ``[N, d]`` of the ball of curvature ``-c`` in the unit disk by one of :data:`METHODS`.

    ``principal`` is linear at the origin and instant; ``horopca`` keeps what the two best horospherical coordinates
    hold; ``stress`` keeps distances; ``cosne`` keeps neighbourhoods. The last two move every point by itself and take
    seconds to minutes. Points that are in two dimensions already come back as they are.

    >>> import torch
    >>> project_to_disk(torch.eye(3) / 4, c=1.0).method
    'principal'
    """
    if method not in METHODS:
        raise ValueError(f"expected a method to reach the disk, one of {', '.join(METHODS)}; got {method!r}")
    if z.dim() != 2:
        raise ValueError(f"expected points [N, d], got shape {tuple(z.shape)}")
    unit = (z.detach().double().cpu() * math.sqrt(c)).contiguous()
    points = METHODS[method](unit, seed) if unit.shape[1] > 2 else principal(unit)
    return DiskProjection(points, method, measure_quality(unit, points, seed=seed))


__all__ = [
    "METHODS",
    "DiskProjection",
    "Quality",
    "cosne",
    "horopca",
    "measure_quality",
    "principal",
    "project_to_disk",
    "stress",
]
