"""The curvature of a space as a module: the number given is the number used, and it stays positive."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from hgde.geometry.numerics import is_eager

#: Training keeps ``c`` in this range. Below it a ball of any reachable size is flat to float32's rounding; above it the
#: ball's radius ``1 / sqrt(c)`` is so small that distances are mostly rounding.
SMALLEST, LARGEST = 1e-6, 1e4
_LOG_SMALLEST, _LOG_LARGEST = math.log(SMALLEST), math.log(LARGEST)


@lru_cache(maxsize=64)
def _range(initial: float) -> tuple[float, float]:
    known = math.log(initial)
    return min(_LOG_SMALLEST - known, 0.0), max(_LOG_LARGEST - known, 0.0)


class Curvature(nn.Module):
    """``c = initial * exp(log_scale)``, the sectional curvature being ``-c``.

    ``log_scale`` starts at 0, so ``c`` is exactly the number given, in float64 whatever the points' dtype (a 0-d tensor
    does not promote them). Training moves ``log_scale``: ``c`` stays positive, steps are relative, and weight decay
    leads back to the number given rather than to an arbitrary one.

    However far training moves ``log_scale``, ``c`` stays between ``SMALLEST`` and ``LARGEST`` (a number given beyond
    them widens the range to itself). At a limit it has no gradient, and :attr:`at_limit` says so.

    >>> curvature = Curvature(0.5)
    >>> round(float(curvature().detach()), 4)
    0.5
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

    def _bounds(self) -> tuple[Any, Any]:
        """The range of ``log_scale`` that keeps ``c`` within its limits; 0 is always inside."""
        if self.initial.is_cpu and is_eager():
            # Numbers, not tensors: a model asks for its curvature many times an epoch, and each tensor costs a call.
            return _range(self.initial.item())
        log = self.initial.log()
        return (_LOG_SMALLEST - log).clamp_max(0.0), (_LOG_LARGEST - log).clamp_min(0.0)

    def forward(self) -> Tensor:
        """The curvature magnitude ``c``, a 0-d tensor."""
        if not self.learnable:
            return self.initial
        low, high = self._bounds()
        is_inside = isinstance(low, float) and low <= self.log_scale.item() <= high
        inside = self.log_scale if is_inside else self.log_scale.clamp(low, high)
        return self.initial * inside.exp()

    @torch.no_grad()
    def number(self) -> tuple[float, float]:
        """``c`` as a number, and what its gradient is multiplied by to be that of ``log_scale``."""
        if not self.learnable:
            return self.initial.item(), 0.0
        low, high = self._bounds()
        if not low <= self.log_scale.item() <= high:
            return self().item(), 0.0
        c = (self.initial * self.log_scale.exp()).item()
        return c, c

    @property
    def at_limit(self) -> bool:
        """Whether training has driven ``c`` to the end of its range."""
        if not self.learnable:
            return False
        low, high = self._bounds()
        return not bool(low <= self.log_scale.item() <= high)

    def extra_repr(self) -> str:
        with torch.no_grad():
            return f"c={float(self()):.6g}, learnable={self.learnable}"
