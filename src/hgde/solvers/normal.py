"""Runge-Kutta methods of true order on a manifold, by normal coordinates at the step's start.

With ``y = exp_x(v)`` the equation ``dy/dt = X(t, y)`` becomes ``dv/dt = (d exp_x(v))^{-1} X(t, exp_x(v))``, an equation
in the flat space ``T_x M``. There any table keeps its order. Each stage costs one exp and one pull-back; in flat space
both are trivial and the method is the ordinary one. Normal coordinates commute with isometries, hence so does the
method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.method import Method, Step, Tolerances
from hgde.solvers.tableau import Tableau, Terms


def combine(slopes: Sequence[Tensor], terms: Terms, h: float) -> Tensor:
    """``h * sum_i coefficient_i slope_i``."""
    (first, coefficient), *rest = terms
    total = slopes[first] * (h * coefficient)
    for index, coefficient in rest:
        total = torch.add(total, slopes[index], alpha=h * coefficient)
    return total


def hermite(h: float, k0: Tensor, v1: Tensor, k1: Tensor, s: float) -> Tensor:
    """The cubic with value 0 and slope ``k0`` at 0, ``v1`` and ``k1`` at 1: error of order four."""
    return (s * (1 - s) ** 2 * h) * k0 + (s * s * (3 - 2 * s)) * v1 + (s * s * (s - 1) * h) * k1


def hermite_slope(h: float, k0: Tensor, v1: Tensor, k1: Tensor, s: float) -> Tensor:
    """Derivative of :func:`hermite` in ``s``."""
    return ((1 - s) * (1 - 3 * s) * h) * k0 + (6 * s * (1 - s)) * v1 + (s * (3 * s - 2) * h) * k1


def quartic(
    dynamics: Dynamics, manifold: Manifold, t0: float, h: float, x: Tensor, k0: Tensor, v1: Tensor, k1: Tensor
) -> Callable[[float], Tensor]:
    """Interpolation of order five from both ends: one more evaluation, at a third, fixes the term ``s^2 (1-s)^2``."""
    v = hermite(h, k0, v1, k1, 1 / 3)
    y = manifold.expmap(x, v)
    k = manifold.dexp_inv(x, v, dynamics.slope(t0 + h / 3, y), y)
    bump = (27 / 4) * (h * k - hermite_slope(h, k0, v1, k1, 1 / 3))
    return lambda s: hermite(h, k0, v1, k1, s) + (s * s * (1 - s) ** 2) * bump


@dataclass(frozen=True)
class RungeKutta(Method):
    """Any explicit table, in normal coordinates. Interpolation inside a step has the order of the method."""

    tableau: Tableau

    @property
    def name(self) -> str:
        return self.tableau.name

    @property
    def order(self) -> int:
        return self.tableau.order

    @property
    def adaptive(self) -> bool:
        return self.tableau.embedded is not None

    def step(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        memory: Any,
        fractions: Sequence[float],
        tolerances: Tolerances,
    ) -> Step:
        table = self.tableau
        raw: Tensor = dynamics.slope(t0, x) if memory is None else memory
        slopes = [raw]
        v, y = raw, x
        for node, terms in table.stages:
            v = combine(slopes, terms, h)
            y = manifold.expmap(x, v)
            raw = dynamics.slope(t0 + node * h, y)
            slopes.append(manifold.dexp_inv(x, v, raw, y))
        if table.first_same_as_last:
            v1, x1, memory = v, y, raw
        else:
            v1 = combine(slopes, table.step_terms, h)
            x1, memory = manifold.expmap(x, v1), None
        inside = self._inside(dynamics, manifold, t0, h, x, slopes, v1, x1, memory, fractions) if fractions else ()
        error = combine(slopes, table.error_terms, h) if table.embedded is not None else None
        return Step(x1, memory, inside, error, v1)

    def _inside(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        slopes: Sequence[Tensor],
        v1: Tensor,
        x1: Tensor,
        last: Tensor | None,
        fractions: Sequence[float],
    ) -> tuple[Tensor, ...]:
        if self.order == 1:
            return tuple(manifold.expmap(x, s * v1) for s in fractions)
        raw = dynamics.slope(t0 + h, x1) if last is None else last
        k0, k1 = slopes[0], slopes[-1] if last is not None else manifold.dexp_inv(x, v1, raw, x1)
        if self.order <= 4:
            return tuple(manifold.expmap(x, hermite(h, k0, v1, k1, s)) for s in fractions)
        if not self.tableau.bump_terms:
            curve = quartic(dynamics, manifold, t0, h, x, k0, v1, k1)
            return tuple(manifold.expmap(x, curve(s)) for s in fractions)
        bump = combine(slopes, self.tableau.bump_terms, h)
        return tuple(manifold.expmap(x, hermite(h, k0, v1, k1, s) + (s * s * (1 - s) ** 2) * bump) for s in fractions)
