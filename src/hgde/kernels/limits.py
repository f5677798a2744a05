"""Where points are pulled back to, and the count of those that were."""

from __future__ import annotations

import torch
from torch import Tensor


def max_norm(dtype: torch.dtype) -> float:
    """Largest ``sqrt(c)|z|`` a point may have in this dtype."""
    return 1 - 4e-3 if dtype == torch.float32 else 1 - 1e-5


def record_pullbacks(count: int | Tensor) -> None:
    """Add to the running count of pulled-back points."""
