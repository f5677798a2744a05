"""Flat space behind the contract of manifolds: the flat twin of every model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.geometry.contract import Manifold, Points, Weights, weighted
from hgde.geometry.spaces import SPACES
from hgde.sections import Section, setting


@SPACES.register("euclidean")
class Euclidean(Manifold):
    """Flat space with the metric ``scale^2 <u, v>``: ``exp_x(v) = x + v``, transport is the identity.

    ``scale=2`` is the limit of the ball as ``c -> 0``, whose metric is ``4 <u, v>``: there coordinates and maps at the
    origin are those of the ball.

    >>> import torch
    >>> flat = Euclidean()
    >>> flat.dist(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0])).item()
    5.0
    """

    is_flat = True

    @dataclass(frozen=True)
    class Settings(Section):
        scale: float = setting(
            2.0, "Length of a unit of the coordinates; 2 is the ball's limit as its curvature vanishes.", above=0.0,
            flag="metric_scale",
        )  # fmt: skip

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        if not (math.isfinite(scale) and scale > 0):
            raise ValueError(f"expected a positive scale of the metric, got {scale}")
        self.scale = float(scale)

    @classmethod
    def build(cls, options: Settings, width: int) -> Euclidean:
        """The flat space that settings describe."""
        return cls(options.scale)

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        return x + v

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        return y - x

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return v

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return self.scale**2 * (u * v).sum(dim=-1)

    def norm(self, x: Tensor, v: Tensor) -> Tensor:
        return self.scale * numerics.safe_norm(v).squeeze(-1)

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        return self.scale * numerics.safe_norm(x - y).squeeze(-1)

    def egrad2rgrad(self, x: Tensor, g: Tensor) -> Tensor:
        return g / self.scale**2

    def dexp(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return w

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return w

    def expmap0(self, v: Tensor) -> Tensor:
        return v if self.scale == 2.0 else v * (2.0 / self.scale)

    def logmap0(self, x: Tensor) -> Tensor:
        return x if self.scale == 2.0 else x * (self.scale / 2.0)

    def transport0(self, x: Tensor, v: Tensor) -> Tensor:
        return self.expmap0(v)

    def dist0(self, x: Tensor) -> Tensor:
        return self.scale * numerics.safe_norm(x).squeeze(-1)

    def midpoint(self, points: Points, weights: Weights) -> Tensor:
        """``sum w x / sum |w|``."""
        parts, sizes, signs = weighted(points, weights)
        signed = [size if sign is None else sign * size for size, sign in zip(sizes, signs, strict=True)]
        terms = [weight * part for weight, part in zip(signed, parts, strict=True)]
        return sum(terms[1:], terms[0]) / sum(sizes[1:], sizes[0])

    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        return torch.zeros(*size, dtype=dtype, device=device)

    def extra_repr(self) -> str:
        return f"scale={self.scale:g}"
