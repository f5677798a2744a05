"""How long a step may be: a flow that moves a node by more than twice the way to its neighbours oscillates and grows.

Near a consensus every space looks flat, and the flow there is ``z' = -(S - A) z`` with ``S`` the row sums ``s_i``. By
Gershgorin the eigenvalues of ``S - A`` lie in discs around ``s_i`` of radius ``s_i``, hence where they are real in
``0 <= lambda <= 2 s``, ``s`` the largest row sum (``symmetric`` is similar to the row-stochastic form and has its
eigenvalues). With the residual, ``F(z) = midpoint(eta)`` turns them into ``(eta_1 lambda + eta_3) / sum |eta|``. A
method is stable where it does not magnify ``z' = -lambda z``: for Euler ``|1 - tau lambda| <= 1``, ``tau lambda <= 2``,
so without residual ``tau s <= 1``. For other methods that limit is measured on the method itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from functools import lru_cache

import torch
from torch import Tensor

from hgde.diffusion.flow import BoundFlow
from hgde.geometry import Euclidean
from hgde.solvers import Flow, Method, SolverError, Status, odeint

_STEPS = 60
_LARGEST = 16.0
_SLACK = 1e-3
_DOWN = Context(prec=3, rounding=ROUND_DOWN)
"""Rounded to the nearest, a step that is advised could be too long."""


@dataclass(frozen=True)
class Stability:
    """``row_sum``: the largest of the flow.  ``bound``: the largest that is stable with this method and step."""

    row_sum: float
    bound: float
    step: float
    method: str

    @property
    def is_stable(self) -> bool:
        return self.row_sum <= self.bound * (1 + _SLACK)

    def __str__(self) -> str:
        if self.is_stable:
            return f"stable: row sums up to {self.row_sum:.3g}, bound {self.bound:.3g}"
        longest = _DOWN.create_decimal_from_float(self.step * self.bound / self.row_sum).normalize()
        advice = [f"steps of at most {longest:f}", "an adaptive solver (dopri5)"]
        if self.row_sum > 1 + _SLACK:
            advice.insert(0, "a diffusivity whose rows sum to at most one (isotropic, symmetric, attention)")
        return (
            f"the flow may be unstable: a row of its weights sums to {self.row_sum:.3g}, and {self.method} with steps "
            f"of {self.step:g} is stable up to {self.bound:.3g}; choose {', or '.join(advice)}"
        )


def stability(bound: BoundFlow, method: Method, step: float) -> Stability:
    """Row sums of a flow at its start, and the largest that a method is stable with. Cost: one pass over the edges.

    The method's limit is measured once in a process. Methods that choose their steps by tolerance have no bound.
    """
    with torch.no_grad():
        sums = bound.operator_at(bound.z0).row_sums(bound.graph)
        largest = float(sums.max()) if sums.numel() else 0.0
        moved, start, total = _residual(bound.flow.eta)
    if method.adaptive:
        return Stability(largest, math.inf, step, method.name)
    limit = real_limit(method, step)
    allowed = (limit * total - start) / (2 * moved) if moved > 0 else math.inf
    return Stability(largest, max(allowed, 0.0), step, method.name)


def _residual(eta: Tensor | tuple[float, ...] | None) -> tuple[float, float, float]:
    if eta is None:
        return 1.0, 0.0, 1.0
    weights = [abs(float(weight)) for weight in eta]
    return weights[0], weights[2], sum(weights)


@lru_cache(maxsize=64)
def real_limit(method: Method, step: float) -> float:
    """The largest ``lambda`` such that steps of ``step`` do not magnify ``z' = -lambda z``, by bisection.

    An implicit method whose corrector is iterated until it settles refuses longer steps itself, and has no limit here.
    """

    def magnifies(rate: float) -> bool:
        start = torch.ones(1, 1, dtype=torch.float64)
        field, times = Flow(lambda t, x: x - rate * x), [0.0, _STEPS * step]
        try:
            end = odeint(field, start, times, manifold=Euclidean(), method=method, step=step).final
        except SolverError as error:
            return error.status is not Status.CORRECTOR
        return float(end.abs()) > 1 + _SLACK

    low, high = 0.0, _LARGEST / step
    if not magnifies(high):
        return math.inf
    while high - low > 1e-3 / step:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if magnifies(middle) else (middle, high)
    return low
