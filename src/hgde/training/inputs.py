"""How stored features become what a model is given, worked out once and applied to new nodes unchanged."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.data import DataError
from hgde.graph import Features, SparseFeatures


@dataclass(frozen=True, eq=False)
class InputScaling:
    """Features as they are (``none``), rows divided by their sum (``rows``) or length (``unit``), or
    ``(x - mean) / scale`` (``columns``).

    ``mean`` and ``scale`` ``[F]`` are those of the nodes trained on, so that a new graph meets the same scale.
    """

    how: str
    mean: Tensor | None = None
    scale: Tensor | None = None

    @classmethod
    def of(cls, features: Features, how: str = "auto") -> InputScaling:
        """The scaling these features ask for; ``auto`` means rows where they are sparse, else columns."""
        if how == "auto":
            how = "rows" if isinstance(features, SparseFeatures) else "columns"
        if how != "columns":
            return cls(how)
        dense = _dense(features)
        deviation = dense.std(0, correction=0)
        deviation = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
        # Divided by the root of their number as well, rows have length one on average: a start well inside the ball.
        return cls(how, dense.mean(0), deviation * max(dense.shape[1], 1) ** 0.5)

    def __call__(self, features: Features) -> Features:
        if self.mean is not None and self.scale is not None:
            if features.shape[1] != self.mean.numel():
                raise DataError(f"there are {features.shape[1]} features, the model was trained on {self.mean.numel()}")
            return (_dense(features) - self.mean) / self.scale
        if self.how == "none":
            return features
        order = 2 if self.how == "unit" else 1
        if isinstance(features, SparseFeatures):
            return features.row_normalised(order)
        total = features.norm(p=order, dim=1, keepdim=True)
        return features / total.clamp_min(torch.finfo(features.dtype).tiny)

    def tensors(self) -> dict[str, Tensor]:
        """What has to be kept beside a model's weights."""
        return {} if self.mean is None or self.scale is None else {"mean": self.mean, "scale": self.scale}


def _dense(features: Features) -> Tensor:
    return features.to_dense() if isinstance(features, SparseFeatures) else features
