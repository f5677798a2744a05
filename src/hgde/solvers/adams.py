"""Adams methods of true order on a manifold: the history is pulled back to normal coordinates at the current point.

A past slope ``X_j`` at ``x_j`` becomes ``(d exp_x(v_j))^{-1} X_j`` with ``v_j = log_x(x_j)``: the value, at ``v_j``, of
the very field that is being integrated in ``T_x M``. Nothing but the Adams formula's own error is left. Coefficients
are worked out from the times of the history, so an uneven grid or a cut last step costs no order; on an even grid they
are the familiar ones, and in flat space the result is torchdiffeq's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.method import Method, Step, Tolerances
from hgde.solvers.normal import RungeKutta, combine, hermite, quartic
from hgde.solvers.solution import SolverError, Status
from hgde.solvers.tableau import RK4, Terms


@lru_cache(maxsize=4096)
def adams_weights(nodes: tuple[float, ...], end: float = 1.0) -> Terms:
    """``w_j = integral from 0 to end of the Lagrange polynomial of node j``, exact in rational arithmetic.

    ``nodes`` are times in units of the step, 0 at its start: ``(0, -1, -2, ...)`` gives Adams-Bashforth,
    ``(1, 0, -1, ...)`` Adams-Moulton.
    """
    points = [Fraction(node) for node in nodes]
    limit = Fraction(end)
    weights = []
    for j, own in enumerate(points):
        polynomial = [Fraction(1)]
        for i, other in enumerate(points):
            if i != j:
                scale = own - other
                shifted = [Fraction(0), *polynomial]
                polynomial = [(s - other * p) / scale for s, p in zip(shifted, [*polynomial, Fraction(0)], strict=True)]
        integral = sum((a * limit ** (k + 1) / (k + 1) for k, a in enumerate(polynomial)), Fraction(0))
        weights.append((j, float(integral)))
    return tuple(weights)


def relative_times(times: Sequence[float], t0: float, h: float) -> tuple[float, ...]:
    """``(t - t0) / h``, set to the nearest whole number when only rounding separates them."""
    relative = [(t - t0) / h for t in times]
    return tuple(float(round(r)) if abs(r - round(r)) < 1e-9 else r for r in relative)


class Past(NamedTuple):
    """A slope with the time and the point it belongs to."""

    time: float
    point: Tensor
    slope: Tensor


def pull_back(manifold: Manifold, x: Tensor, history: Sequence[Past]) -> list[Tensor]:
    """The slopes of the history in normal coordinates at ``x``, all in one batch."""
    if manifold.is_flat or not history:
        return [past.slope for past in history]
    points = torch.stack([past.point for past in history])
    slopes = torch.stack([past.slope for past in history])
    here = x.expand_as(points)
    return list(manifold.dexp_inv(here, manifold.logmap(here, points), slopes, points).unbind(0))


def converged(manifold: Manifold, x: Tensor, new: Tensor, old: Tensor, tolerances: Tolerances) -> tuple[bool, float]:
    """Whether the last correction is within tolerance at every point, and the largest ratio to it."""
    with torch.no_grad():
        allowed = tolerances.atol + tolerances.rtol * manifold.norm(x, new)
        ratio = float((manifold.norm(x, new - old) / allowed).max())
    return ratio <= 1.0, ratio


def corrector_message(t0: float, h: float, iterations: int, ratio: float) -> str:
    return (
        f"expected the corrector of the step from t = {t0:.6g} (h = {h:.3g}) to settle within {iterations} iterations, "
        f"its last change is {ratio:.3g} times the tolerance; try a smaller step, a looser rtol, or more max_iterations"
    )


@dataclass(frozen=True)
class Adams(Method):
    """Adams-Bashforth with up to ``max_order - 1`` slopes; with ``implicit_formula``, Adams-Moulton with one more.

    Two steps of ``rk4`` begin. The explicit method's next step has three slopes and a local error of order four; it
    happens once, so the whole has order four, and a longer history lowers the constant, not the order. The implicit
    method's start has local error of order five, hence order five. It is solved by iteration from the explicit
    prediction, and raises when that does not reach the tolerance.

    ``max_order=12`` is torchdiffeq's default, and gives its answers. Ours is 5, because eleven explicit slopes are
    stable only for steps below 0.003 over the field's Lipschitz constant, and buy no order.
    """

    implicit_formula: bool = False
    max_order: int = 5
    max_iterations: int = 50

    def __post_init__(self) -> None:
        if not 4 <= self.max_order <= 12:
            raise ValueError(f"expected max_order between 4 and 12, got {self.max_order}")

    @property
    def name(self) -> str:
        return "implicit_adams" if self.implicit_formula else "explicit_adams"

    @property
    def order(self) -> int:
        return min(5, self.max_order) if self.implicit_formula else min(4, self.max_order - 1)

    @property
    def implicit(self) -> bool:
        return self.implicit_formula

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
        raw = dynamics.slope(t0, x)
        older: tuple[Past, ...] = memory or ()
        history = (Past(t0, x, raw), *older)[: self.max_order - 1]
        if len(history) < 3:
            started = RungeKutta(RK4).step(dynamics, manifold, t0, h, x, raw, (), tolerances)
            inside = self._inside_start(dynamics, manifold, t0, h, x, raw, started, fractions)
            return Step(started.state, history, inside)
        nodes = relative_times([past.time for past in history], t0, h)
        slopes = [raw, *pull_back(manifold, x, history[1:])]
        v = combine(slopes, adams_weights(nodes), h)
        corrections = 0
        if self.implicit_formula:
            nodes = (1.0, *nodes)
            v, ahead, corrections = self._correct(dynamics, manifold, t0, h, x, slopes, nodes, v, tolerances)
            slopes = [ahead, *slopes]
        inside = tuple(manifold.expmap(x, combine(slopes, adams_weights(nodes, s), h)) for s in fractions)
        return Step(manifold.expmap(x, v), history, inside, corrections=corrections)

    def _inside_start(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        k0: Tensor,
        started: Step,
        fractions: Sequence[float],
    ) -> tuple[Tensor, ...]:
        if not fractions:
            return ()
        x1, v1 = started.state, started.travel
        assert v1 is not None
        k1 = manifold.dexp_inv(x, v1, dynamics.slope(t0 + h, x1), x1)
        if self.order <= 4:
            return tuple(manifold.expmap(x, hermite(h, k0, v1, k1, s)) for s in fractions)
        curve = quartic(dynamics, manifold, t0, h, x, k0, v1, k1)
        return tuple(manifold.expmap(x, curve(s)) for s in fractions)

    def _correct(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        slopes: Sequence[Tensor],
        nodes: tuple[float, ...],
        v: Tensor,
        tolerances: Tolerances,
    ) -> tuple[Tensor, Tensor, int]:
        (_, ahead_weight), *known = adams_weights(nodes)
        base = combine(slopes, tuple((index - 1, weight) for index, weight in known), h)
        ratio = float("inf")
        for iteration in range(1, self.max_iterations + 1):
            y = manifold.expmap(x, v)
            ahead = manifold.dexp_inv(x, v, dynamics.slope(t0 + h, y), y)
            v_next = torch.add(base, ahead, alpha=h * ahead_weight)
            done, ratio = converged(manifold, x, v_next, v, tolerances)
            v = v_next
            if done:
                return v, ahead, iteration
        raise SolverError(Status.CORRECTOR, corrector_message(t0, h, self.max_iterations, ratio))
