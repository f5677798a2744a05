"""What the public operations do with their arguments and on the side."""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.geometry import numerics


def curvature(c: Tensor | float, like: Tensor) -> Tensor:
    """A number as a tensor of double precision; a tensor as it is."""
    return c if isinstance(c, Tensor) else torch.tensor(c, dtype=torch.float64, device=like.device)


def report(projected: Tensor | int) -> None:
    """Tell whoever counts how many points were projected."""
    if numerics.counting_projections():
        numerics.record_projections(projected)


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Whether a backward pass may follow."""
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
