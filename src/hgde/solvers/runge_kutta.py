"""Runge-Kutta methods of true order on a manifold, by normal coordinates at the step's start.

With ``y = exp_x(v)`` the equation ``dy/dt = X(t, y)`` becomes ``dv/dt = (d exp_x(v))^{-1} X(t, exp_x(v))``, an equation
in the flat space ``T_x M``. There any table keeps its order. Each stage costs one exp and one inverse differential; in
flat space both are trivial and the method is the ordinary one. Normal coordinates commute with isometries, hence so
does the method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.method import Curve, Method, Step, Tolerances
from hgde.solvers.registry import SOLVERS
from hgde.solvers.tableau import BOSH3, DOPRI5, EULER, HEUN, MIDPOINT, RK4, Tableau, Terms


def combine(slopes: Sequence[Tensor], terms: Terms, h: float) -> Tensor:
    """``h * sum_i coefficient_i slope_i``."""
    (first, coefficient), *rest = terms
    total = slopes[first] * (h * coefficient)
    for index, coefficient in rest:
        total = torch.add(total, slopes[index], alpha=h * coefficient)
    return total


@dataclass(frozen=True)
class Ends:
    """A step in normal coordinates at its start: the slope ``k0`` there, at its end the way ``v1`` and slope ``k1``.

    Its methods are interpolants in the fraction ``s``; each is right at both ends, value and slope.
    """

    h: float
    k0: Tensor
    v1: Tensor
    k1: Tensor

    def cubic(self, s: float) -> Tensor:
        """The cubic Hermite polynomial: error of order four."""
        a, b, d = s * (1 - s) ** 2 * self.h, s * s * (3 - 2 * s), s * s * (s - 1) * self.h
        return a * self.k0 + b * self.v1 + d * self.k1

    def cubic_slope(self, s: float) -> Tensor:
        """Derivative of :meth:`cubic` in ``s``."""
        a, b, d = (1 - s) * (1 - 3 * s) * self.h, 6 * s * (1 - s), s * (3 * s - 2) * self.h
        return a * self.k0 + b * self.v1 + d * self.k1

    def quartic(self, slope: Callable[[float, Tensor], Tensor]) -> Curve:
        """Error of order five: one evaluation, at a third of the step, fixes the term ``s^2 (1-s)^2``.

        ``slope(s, v)`` is the field in normal coordinates at the fraction ``s`` and the place ``v``.
        """
        bump = (27 / 4) * (self.h * slope(1 / 3, self.cubic(1 / 3)) - self.cubic_slope(1 / 3))
        return lambda s: self.cubic(s) + (s * s * (1 - s) ** 2) * bump

    def quintic(self, guess: Curve, slope: Callable[[float, Tensor], Tensor]) -> Curve:
        """Error of order six from a guess of order five.

        Evaluations at one and two thirds of the step fix ``s^2 (1-s)^2 (a + b s)``.
        """
        first = self.h * slope(1 / 3, guess(1 / 3)) - self.cubic_slope(1 / 3)
        second = self.h * slope(2 / 3, guess(2 / 3)) - self.cubic_slope(2 / 3)
        b = (81 / 4) * (first + second)
        a = (27 / 4) * first - (2 / 3) * b
        return lambda s: self.cubic(s) + (s * s * (1 - s) ** 2) * (a + s * b)


def dense(
    dynamics: Dynamics, manifold: Manifold, t0: float, x: Tensor, ends: Ends, order: int, bump: Tensor | None = None
) -> Curve:
    """The curve of a step by a method of ``order``, exact enough not to be noticed beside the method's own error.

    Order four and below: the cubic, no evaluation. Order five: the quintic, whose error is one order smaller than that
    of the steps; two evaluations if the table knows the quartic's ``bump``, else three.
    """

    def slope(s: float, v: Tensor) -> Tensor:
        y = manifold.expmap(x, v)
        return manifold.dexp_inv(x, v, dynamics.slope(t0 + s * ends.h, y), y)

    if order <= 4:
        return lambda s: manifold.expmap(x, ends.cubic(s))
    guess = ends.quartic(slope) if bump is None else lambda s: ends.cubic(s) + (s * s * (1 - s) ** 2) * bump
    curve = ends.quintic(guess, slope)
    return lambda s: manifold.expmap(x, curve(s))


@dataclass(frozen=True)
class RungeKutta(Method):
    """Any explicit table, in normal coordinates. Between steps it interpolates at its own order or better.

    Its memory is the slope at the start, where the last stage of the step before has worked it out already.

    >>> import torch
    >>> from hgde import odeint
    >>> from hgde.solvers import Tableau
    >>> ralston = Tableau("ralston", order=2, nodes=(0.0, 2 / 3), matrix=((), (2 / 3,)), weights=(1 / 4, 3 / 4))
    >>> end = odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method=RungeKutta(ralston), step=0.1).final
    >>> round(end.item(), 3)
    0.369
    """

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

    def start(self, dynamics: Dynamics, manifold: Manifold, t0: float, x: Tensor) -> Tensor | None:
        return dynamics.slope(t0, x) if self.tableau.first_same_as_last else None

    def step(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        memory: Any,
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
            v1, x1, last = v, y, raw
        else:
            v1 = combine(slopes, table.step_terms, h)
            x1, last = manifold.expmap(x, v1), None

        def curve() -> Curve:
            if self.order == 1:
                return lambda s: manifold.expmap(x, s * v1)
            k1 = slopes[-1] if last is not None else manifold.dexp_inv(x, v1, dynamics.slope(t0 + h, x1), x1)
            bump = combine(slopes, table.bump_terms, h) if table.bump_terms else None
            return dense(dynamics, manifold, t0, x, Ends(h, slopes[0], v1, k1), self.order, bump)

        error = combine(slopes, table.error_terms, h) if table.embedded is not None else None
        return Step(x1, last, curve, error, v1)


@SOLVERS.register("euler")
@dataclass(frozen=True)
class Euler(RungeKutta):
    """``x <- exp_x(h X(t, x))``. Order 1.

    >>> import torch
    >>> from hgde import odeint
    >>> odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method=Euler(), step=0.5).final.item()
    0.25
    """

    tableau: Tableau = EULER


@SOLVERS.register("midpoint")
@dataclass(frozen=True)
class Midpoint(RungeKutta):
    """One evaluation at the step's start, one in its middle. Order 2.

    >>> import torch
    >>> from hgde import odeint
    >>> odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method=Midpoint(), step=1.0).final.item()
    0.5
    """

    tableau: Tableau = MIDPOINT


@SOLVERS.register("heun")
@dataclass(frozen=True)
class Heun(RungeKutta):
    """The mean of the slopes at both ends. Order 2.

    >>> import torch
    >>> from hgde import odeint
    >>> odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method=Heun(), step=1.0).final.item()
    0.5
    """

    tableau: Tableau = HEUN


@SOLVERS.register("rk4")
@dataclass(frozen=True)
class ThreeEighths(RungeKutta):
    """Kutta's 3/8 rule. Order 4.

    >>> import torch
    >>> from hgde import odeint
    >>> odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method=ThreeEighths(), step=1.0).final.item()
    0.375
    """

    tableau: Tableau = RK4


@SOLVERS.register("bosh3")
@dataclass(frozen=True)
class BogackiShampine(RungeKutta):
    """Bogacki and Shampine's pair of orders 3 and 2: steps by tolerance, three evaluations each.

    >>> import torch
    >>> from hgde import odeint
    >>> solution = odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method=BogackiShampine(), rtol=1e-3)
    >>> solution.order, abs(solution.final.item() - 0.3679) < 1e-3
    (3, True)
    """

    tableau: Tableau = BOSH3


@SOLVERS.register("dopri5")
@dataclass(frozen=True)
class DormandPrince(RungeKutta):
    """Dormand and Prince's pair of orders 5 and 4: steps by tolerance, six evaluations each.

    >>> import torch
    >>> from hgde import odeint
    >>> solution = odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method=DormandPrince(), rtol=1e-5)
    >>> solution.order, abs(solution.final.item() - 0.36788) < 1e-5
    (5, True)
    """

    tableau: Tableau = DOPRI5
