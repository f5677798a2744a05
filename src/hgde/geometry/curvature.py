"""The curvature of a space as a module: the number given is the number used, and it stays positive."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Curvature(nn.Module):
    """``c = initial * exp(log_scale)``, the sectional curvature being ``-c``.

    ``log_scale`` starts at 0, so ``c`` is exactly the number given, in float64 whatever the points' dtype (a 0-d tensor
    does not promote them). Training moves ``log_scale``: ``c`` stays positive, steps are relative, and weight decay
    pulls back to the number given rather than to an arbitrary one.
    """

    initial: Tensor

    def __init__(self, value: float = 1.0, learnable: bool = False, *, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        if not (math.isfinite(value) and value > 0):
            raise ValueError(
                f"expected a positive curvature magnitude c (the sectional curvature is -c), got {value}; "
                "for flat space use Euclidean()"
            )
        self.learnable = learnable
        self.register_buffer("initial", torch.tensor(float(value), dtype=dtype))
        log_scale = torch.zeros((), dtype=dtype)
        if learnable:
            self.log_scale = nn.Parameter(log_scale)

    def forward(self) -> Tensor:
        """The curvature magnitude ``c``, a 0-d tensor."""
        return self.initial * self.log_scale.exp() if self.learnable else self.initial

    def extra_repr(self) -> str:
        with torch.no_grad():
            return f"c={float(self()):.6g}, learnable={self.learnable}"
