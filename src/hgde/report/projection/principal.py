"""Principal directions in the tangent space at the origin."""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.geometry import ball


def principal(z: Tensor) -> Tensor:
    """The two directions with most spread of ``log_o(z)``: ``[N, d]`` of the unit ball to ``[N, 2]`` of the disk.

    Two dimensions are kept as they are. Distances from the origin shrink by what the other directions held.

    >>> import torch
    >>> principal(torch.eye(4, dtype=torch.float64) / 2).shape
    torch.Size([4, 2])
    """
    if z.shape[1] == 1:
        z = torch.cat([z, torch.zeros_like(z)], dim=1)
    if z.shape[1] == 2:
        return z
    tangent = ball.logmap0(z, 1.0)
    _, _, directions = torch.linalg.svd(tangent - tangent.mean(0), full_matrices=True)
    return ball.expmap0(tangent @ directions[:2].T, 1.0)
