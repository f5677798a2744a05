"""The paper's schemes under the paper's names, with their misprints corrected and their true order said.

All three are stated for a flow ``F``; a vector field ``X`` is read as ``F = exp_x(X)``. Between steps they interpolate
along the geodesic (eq:hyperbolic-linear-interpolation), which by Prop. 1 divides it in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.sections import setting
from hgde.solvers.adams import Past, adams_weights, converged, corrector_message, relative_times
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.method import Method, Step, Tolerances
from hgde.solvers.registry import SOLVERS
from hgde.solvers.runge_kutta import combine
from hgde.solvers.solution import SolverError, Status


@SOLVERS.register("heuler")
@dataclass(frozen=True)
class HEuler(Method):
    """``h <- exp_h(tau log_h F(h, t))`` (hyperbolic-euler-1, alg:heuler). Order 1.

    At ``tau = 1`` this is ``F`` itself, and neither exp nor log is computed.

    >>> import torch
    >>> from hgde import Flow, PoincareBall, odeint
    >>> x0, flow = torch.tensor([[0.5, 0.0]]), Flow(lambda t, x: 0.5 * x)
    >>> solution = odeint(flow, x0, [0.0, 2.0], manifold=PoincareBall(), method=HEuler(), step=1.0)
    >>> [round(number, 4) for number in solution.final[0].tolist()]      # F twice
    [0.125, 0.0]
    """

    @property
    def name(self) -> str:
        return "heuler"

    @property
    def order(self) -> int:
        return 1

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
        x1 = dynamics.flow(t0, x) if h == 1.0 else manifold.expmap(x, h * dynamics.slope(t0, x))
        return Step(x1)


def hrk4_slope(dynamics: Dynamics, manifold: Manifold, t0: float, h: float, x: Tensor) -> Tensor:
    """``X_HRK4`` (eq:vector-flow-of-rk): the 3/8 rule over ``log_h F(stage)``, all logarithms at ``h``.

    As printed, ``k_1 = exp_h(tau X)`` already carries a factor ``tau`` which its logarithm then keeps, and the scheme
    does not converge. Here ``k_1 = F(h)``; at ``tau = 1``, the paper's only step, that is the same.
    """

    def slope(node: float, v: Tensor) -> Tensor:
        return manifold.logmap(x, dynamics.flow(t0 + node * h, manifold.expmap(x, v)))

    k1 = dynamics.slope(t0, x)
    k2 = slope(1 / 3, (h / 3) * k1)
    k3 = slope(2 / 3, h * (k2 - k1 / 3))
    k4 = slope(1.0, h * (k1 - k2 + k3))
    return (k1 + 3.0 * (k2 + k3) + k4) / 8.0


@SOLVERS.register("hrk4")
@dataclass(frozen=True)
class HRK4(Method):
    """``h <- exp_h(tau X_HRK4)`` (hyperbolic-rk4-1, alg:hrk4). Order 1.

    ``log_h F(stage)`` is the field at the stage *plus* the way to the stage, which is of order ``tau``; hence order one
    in spite of its four stages. :class:`hgde.solvers.runge_kutta.RungeKutta` with the same table has order four.

    >>> import torch
    >>> from hgde import Flow, PoincareBall, odeint
    >>> x0 = torch.tensor([[0.5, 0.0]])
    >>> solution = odeint(Flow(lambda t, x: 0.5 * x), x0, [0.0, 2.0], manifold=PoincareBall(), method=HRK4(), step=1.0)
    >>> solution.order, solution.statistics.evaluations
    (1, 8)
    """

    @property
    def name(self) -> str:
        return "hrk4"

    @property
    def order(self) -> int:
        return 1

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
        x1 = manifold.expmap(x, h * hrk4_slope(dynamics, manifold, t0, h, x))
        return Step(x1)


class HamMemory(NamedTuple):
    """The queue, newest first, and the number of steps taken."""

    queue: tuple[Past, ...]
    taken: int


@SOLVERS.register("ham")
@dataclass(frozen=True)
class HAM(Method):
    """Adams-Bashforth predictor and Adams-Moulton corrector over a queue of transported slopes (alg:ham). Order 2.

    ``s_min`` steps of :class:`HRK4` warm up; the formula grows with the queue up to ``s_max`` slopes. Slopes are stored
    with the point they are rooted at (the algorithm prints ``F(h*)`` where ``h*`` is meant) and carried to the current
    point by parallel transport. ``tolerance=None`` corrects ``iterations`` times, once being the appendix's algorithm;
    with a tolerance the corrector is iterated until its change is below it (times one plus the step's length), at most
    ``max_iterations`` times, and raises otherwise. The warm-up, of order one but done a fixed number of times, limits
    the whole to order two.

    The paper leaves the orders open. By default one slope is kept and two corrections are made, because graph diffusion
    at its step of 1 lies outside the stability region of longer formulas: on a tree of a thousand nodes the Dirichlet
    energy falls from 461 to 18 over sixteen such steps, but rises to 68,000 with four slopes and one correction.

    >>> import torch
    >>> from hgde import Flow, PoincareBall, odeint
    >>> x0 = torch.tensor([[0.5, 0.0]])
    >>> flow = Flow(lambda t, x: 0.5 * x)
    >>> odeint(flow, x0, [0.0, 4.0], manifold=PoincareBall(), method=HAM(s_max=3), step=1.0).order
    2
    """

    s_min: int = setting(1, "Number of initial hrk4 steps.", at_least=1)
    s_max: int = setting(1, "Number of slopes kept in the queue.", at_least=1)
    iterations: int = setting(
        2, "Corrections per step.", at_least=1, flag="corrections",
        inert=lambda own: None if own.tolerance is None else "the corrector is iterated until its tolerance is reached",
    )  # fmt: skip
    tolerance: float | None = setting(
        None, "Largest move by the last correction; without it the number of corrections is fixed.", above=0.0,
        flag="corrector_tolerance",
    )  # fmt: skip
    max_iterations: int = setting(
        50, "Number of corrections before a step fails.", at_least=1, flag="corrector_limit",
        inert=lambda own: "the number of corrections is fixed without a tolerance" if own.tolerance is None else None,
    )  # fmt: skip

    def __post_init__(self) -> None:
        if not 1 <= self.s_min <= self.s_max:
            raise ValueError(f"expected 1 <= s_min <= s_max, got s_min = {self.s_min}, s_max = {self.s_max}")
        if self.iterations < 1 or self.max_iterations < 1:
            raise ValueError("expected at least one iteration of the corrector")

    @property
    def name(self) -> str:
        return "ham"

    @property
    def order(self) -> int:
        return 2

    @property
    def implicit(self) -> bool:
        return True

    def start(self, dynamics: Dynamics, manifold: Manifold, t0: float, x: Tensor) -> HamMemory:
        return HamMemory((), 0)

    def step(
        self,
        dynamics: Dynamics,
        manifold: Manifold,
        t0: float,
        h: float,
        x: Tensor,
        memory: HamMemory,
        tolerances: Tolerances,
    ) -> Step:
        queue, taken = memory
        if taken <= self.s_min:
            queue = (Past(t0, x, hrk4_slope(dynamics, manifold, t0, h, x)), *queue)[: self.s_max]
        if taken < self.s_min:
            x1 = manifold.expmap(x, h * queue[0].slope)
            return Step(x1, HamMemory(queue, taken + 1))
        times = relative_times([past.time for past in queue], t0, h)
        slopes = _transported(manifold, x, queue)
        v = combine(slopes, adams_weights(times), h)
        (_, ahead_weight), *known = adams_weights((1.0, *times))
        base = combine(slopes, tuple((index - 1, weight) for index, weight in known), h)
        limit = self.iterations if self.tolerance is None else self.max_iterations
        done, ratio, iteration = False, float("inf"), 0
        y, raw = x, slopes[0]
        while iteration < limit and not done:
            iteration += 1
            y = manifold.expmap(x, v)
            raw = dynamics.slope(t0 + h, y)
            v_next = torch.add(base, manifold.transport(y, x, raw), alpha=h * ahead_weight)
            if self.tolerance is not None:
                done, ratio = converged(manifold, x, v_next, v, Tolerances(self.tolerance, self.tolerance))
            v = v_next
        if self.tolerance is not None and not done:
            raise SolverError(Status.CORRECTOR, corrector_message(t0, h, limit, ratio))
        x1 = manifold.expmap(x, v)
        queue = (Past(t0 + h, y, raw), *queue)[: self.s_max]
        return Step(x1, HamMemory(queue, taken + 1), corrections=iteration)


def _transported(manifold: Manifold, x: Tensor, queue: Sequence[Past]) -> list[Tensor]:
    """The queue's slopes parallel-transported to ``x``."""
    return [manifold.transport(past.point, x, past.slope) for past in queue]
