"""How long the next step is: a proportional controller over the error measured in the manifold's norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.solvers.method import Tolerances

#: Errors of so many roundings of the coordinates are none: no smaller step would make them smaller.
ROUNDINGS = 4.0

#: By how much estimates are raised, so that the answer's error is within the tolerance and not merely about it.
#: Measured on spirals in the plane, on balls and on the hyperboloid, for 1 to 12 units of time: the error per distance
#: is then 0.1 to 0.4 of ``rtol`` for bosh3, 0.02 to 0.5 for dopri5, between steps too.
CAUTION = 8.0


_elsewhere: ContextVar[Callable[[float], float]] = ContextVar("hgde_elsewhere", default=float)


@contextmanager
def agreeing(agree: Callable[[float], float]) -> Iterator[None]:
    """Let steps inside be chosen together with others: ``agree`` makes of this part's number that of all parts.

    For a state of which only some points are here: every part must take the same steps.
    """
    token = _elsewhere.set(agree)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def largest(values: Tensor) -> float:
    """The largest number over all points, those in other parts of the state included."""
    return _elsewhere.get()(float(values.max()) if values.numel() else 0.0)


def error_ratio(
    manifold: Manifold, x: Tensor, error: Tensor, travel: Tensor, tolerances: Tolerances, order: int
) -> float:
    """How many times the tolerance the error of a step is, the largest over the points; it grows as ``h^order``.

    ``error`` estimates the step of the *embedded* method, of order ``q = order - 1``; what goes on is the better one's.
    With ``e = CAUTION |error|`` and ``v`` the way made, a point meets the tolerance when

        ``e <= atol``  or  ``(e / |v|)^(order / q) <= rtol``.

    ``e / |v|`` is the embedded method's error per distance, of size ``h^q`` in units of the field's own time; the power
    makes it ``h^order``, the size that the better method's has. Held against ``rtol`` as it stands, it would ask for
    steps at which the answer is far better than wanted (``rtol^(3/2)`` for orders 3 and 2).

    Lengths are taken in the metric at the step's start, and the scale is the way travelled, not the size of the
    coordinates, which means nothing on a manifold: the decision is the same wherever an isometry puts the problem.
    Every point has to meet the tolerance; no averaging over points.
    """
    with torch.no_grad():
        rounding = ROUNDINGS * torch.finfo(x.dtype).eps * manifold.norm(x, x)
        size = CAUTION * (manifold.norm(x, error) - rounding).clamp_min(0.0)
        absolute = size / tolerances.atol
        relative = (size / manifold.norm(x, travel)) ** (order / (order - 1)) / tolerances.rtol
        # 0 / 0 where a point neither moves nor errs.
        return largest(torch.where(size == 0.0, 0.0, torch.fmin(absolute, relative)))


@dataclass(frozen=True)
class Controller:
    """``h <- h * clip(safety * ratio^(-1/order), shrink, grow)``; a step is accepted when its ratio is at most 1.

    >>> accepted, h = Controller().propose(h=0.1, ratio=32.0, order=5)      # 32 times the tolerance
    >>> accepted, round(h, 3)
    (False, 0.045)
    """

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
