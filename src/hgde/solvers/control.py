"""How long the next step is: a proportional controller over the error measured in the manifold's norm."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.solvers.method import Tolerances


def error_ratio(manifold: Manifold, x: Tensor, error: Tensor, travel: Tensor, tolerances: Tolerances) -> float:
    """The largest ``|error| / (atol + rtol |v|)`` over the points, lengths in the metric at the step's start.

    The scale is the way travelled, not the size of the coordinates, which means nothing on a manifold: the decision is
    the same wherever an isometry puts the problem. Every point has to meet the tolerance; no averaging over points.
    """
    with torch.no_grad():
        allowed = tolerances.atol + tolerances.rtol * manifold.norm(x, travel)
        return float((manifold.norm(x, error) / allowed).max())


@dataclass(frozen=True)
class Controller:
    """``h <- h * clip(safety * ratio^(-1/order), shrink, grow)``; a step is accepted when its ratio is at most 1."""

    safety: float = 0.9
    shrink: float = 0.2
    grow: float = 10.0

    def propose(self, h: float, ratio: float, order: int) -> tuple[bool, float]:
        """Whether to accept a step, and the size of the next attempt. A ratio that is not a number shrinks most."""
        if not ratio < float("inf"):
            return False, h * self.shrink
        accept = ratio <= 1.0
        factor = self.grow if ratio == 0.0 else self.safety * ratio ** (-1.0 / order)
        return accept, h * min(max(factor, self.shrink), self.grow if accept else 1.0)

    def first(self, speed: float, order: int, span: float, tolerances: Tolerances) -> float:
        """A first step: the way made is about ``tolerance^(1/order)``; the controller corrects the rest."""
        way: float = 0.5 * max(tolerances.atol + tolerances.rtol, 1e-16) ** (1.0 / order)
        return min(abs(span), way / max(speed, 1e-8))
