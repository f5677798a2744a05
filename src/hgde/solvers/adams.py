"""Adams methods of true order on a manifold: the history is taken to normal coordinates at the current point.

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
from typing import NamedTuple

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.sections import setting
from hgde.solvers.control import largest
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.method import Curve, Method, Step, Tolerances
from hgde.solvers.registry import SOLVERS
from hgde.solvers.runge_kutta import Ends, RungeKutta, combine, dense
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


def in_normal_coordinates(manifold: Manifold, x: Tensor, history: Sequence[Past]) -> list[Tensor]:
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
        change = manifold.norm(x, new - old)
        allowed = tolerances.atol + tolerances.rtol * manifold.norm(x, new)
        # A point that does not move has settled, whatever is allowed.
        ratio = largest(torch.where(change == 0.0, 0.0, change / allowed))
    return ratio <= 1.0, ratio


def corrector_message(t0: float, h: float, iterations: int, ratio: float) -> str:
    return (
        f"expected the corrector of the step from t = {t0:.6g} (h = {h:.3g}) to settle within {iterations} iterations, "
        f"its last change is {ratio:.3g} times the tolerance; try a smaller step, a looser rtol, or more max_iterations"
    )


@SOLVERS.register("explicit_adams")
@dataclass(frozen=True)
class ExplicitAdams(Method):
    """Adams-Bashforth with up to ``max_order - 1`` slopes. Order 4.

    Two steps of ``rk4`` begin. The next step has three slopes and a local error of order four; it happens once, so the
    whole has order four, and a longer history lowers the constant, not the order.

    ``max_order=12`` is torchdiffeq's default, and gives its answers. Ours is 5, because eleven explicit slopes are
    stable only for steps below 0.003 over the field's Lipschitz constant, and buy no order.

    >>> import torch
    >>> from hgde import odeint
    >>> method = ExplicitAdams(max_order=4)
    >>> end = odeint(lambda t, x: -x, torch.ones(1, dtype=torch.float64), [0.0, 1.0], method=method, step=0.05).final
    >>> abs(end.item() - 0.367879) < 1e-4
    True
    """

    max_order: int = setting(5, "Number of past slopes used, plus one.", at_least=4, at_most=12)

    def __post_init__(self) -> None:
        if not 4 <= self.max_order <= 12:
            raise ValueError(f"expected max_order between 4 and 12, got {self.max_order}")

    @property
    def name(self) -> str:
        return "explicit_adams"

    @property
    def order(self) -> int:
        return min(4, self.max_order - 1)

    def start(self, dynamics: Dynamics, manifold: Manifold, t0: float, x: Tensor) -> tuple[Past, ...]:
        return ()

    def step(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        memory: tuple[Past, ...],
        tolerances: Tolerances,
    ) -> Step:
        raw = dynamics.slope(t0, x)
        history = (Past(t0, x, raw), *memory)[: self.max_order - 1]
        if len(history) < 3:
            return self._begin(dynamics, manifold, t0, h, x, history, tolerances)
        nodes = relative_times([past.time for past in history], t0, h)
        slopes = [raw, *in_normal_coordinates(manifold, x, history[1:])]
        v, nodes, slopes, corrections = self._solve(dynamics, manifold, t0, h, x, nodes, slopes, tolerances)

        def curve() -> Curve:
            return lambda s: manifold.expmap(x, combine(slopes, adams_weights(nodes, s), h))

        return Step(manifold.expmap(x, v), history, curve, corrections=corrections)

    def _begin(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        history: tuple[Past, ...],
        tolerances: Tolerances,
    ) -> Step:
        """A step of ``rk4``, with interpolation of this method's order."""
        k0 = history[0].slope
        started = RungeKutta(RK4).step(dynamics, manifold, t0, h, x, k0, tolerances)
        x1, v1 = started.state, started.travel
        assert v1 is not None

        def curve() -> Curve:
            k1 = manifold.dexp_inv(x, v1, dynamics.slope(t0 + h, x1), x1)
            return dense(dynamics, manifold, t0, x, Ends(h, k0, v1, k1), self.order)

        return Step(x1, history, curve)

    def _solve(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        nodes: tuple[float, ...],
        slopes: list[Tensor],
        tolerances: Tolerances,
    ) -> tuple[Tensor, tuple[float, ...], list[Tensor], int]:
        """The way ``v``, the nodes and slopes it was made of, and the number of corrections."""
        return combine(slopes, adams_weights(nodes), h), nodes, slopes, 0


@SOLVERS.register("implicit_adams")
@dataclass(frozen=True)
class ImplicitAdams(ExplicitAdams):
    """Adams-Moulton with one slope more than :class:`ExplicitAdams`, solved by iteration from its prediction. Order 5.

    Raises when the iteration does not reach ``tolerance``; left out, it is that of the call, or a few digits above the
    dtype's rounding.

    >>> import torch
    >>> from hgde import odeint
    >>> x0 = torch.ones(1, dtype=torch.float64)
    >>> solution = odeint(lambda t, x: -x, x0, [0.0, 1.0], method=ImplicitAdams(), step=0.05)
    >>> solution.order, solution.statistics.corrections > 0
    (5, True)
    """

    max_iterations: int = setting(50, "Number of corrections before a step fails.", at_least=1, flag="corrector_limit")
    tolerance: float | None = setting(
        None, "Largest move by the last correction.", above=0.0, flag="corrector_tolerance"
    )

    @property
    def name(self) -> str:
        return "implicit_adams"

    @property
    def order(self) -> int:
        return min(5, self.max_order)

    @property
    def implicit(self) -> bool:
        return True

    @property
    def corrects_to_call(self) -> bool:
        return self.tolerance is None

    def _solve(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        nodes: tuple[float, ...],
        slopes: list[Tensor],
        tolerances: Tolerances,
    ) -> tuple[Tensor, tuple[float, ...], list[Tensor], int]:
        wanted = tolerances if self.tolerance is None else Tolerances(self.tolerance, self.tolerance)
        v = combine(slopes, adams_weights(nodes), h)
        nodes = (1.0, *nodes)
        (_, ahead_weight), *known = adams_weights(nodes)
        base = combine(slopes, tuple((index - 1, weight) for index, weight in known), h)
        ratio = float("inf")
        for iteration in range(1, self.max_iterations + 1):
            y = manifold.expmap(x, v)
            ahead = manifold.dexp_inv(x, v, dynamics.slope(t0 + h, y), y)
            v_next = torch.add(base, ahead, alpha=h * ahead_weight)
            done, ratio = converged(manifold, x, v_next, v, wanted)
            v = v_next
            if done:
                return v, nodes, [ahead, *slopes], iteration
        raise SolverError(Status.CORRECTOR, corrector_message(t0, h, self.max_iterations, ratio))
