"""The loop over steps, fixed or adaptive, with gradients by backprop or by recomputing each step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hgde.geometry.contract import Manifold
from hgde.solvers.control import Controller, error_ratio
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.method import Method, Step, Tolerances
from hgde.solvers.solution import SolverError, Statistics, Status


def fixed_grid(times: Sequence[float], step: float | None) -> list[float]:
    """The requested times themselves, or multiples of ``step``, the last one cut to end exactly at the last time."""
    if step is None:
        return list(times)
    start, end = times[0], times[-1]
    count = (end - start) / step
    whole = max(1, math.ceil(count - 1e-9))
    return [start + i * step for i in range(whole)] + [end]


class Stepper:
    """A method bound to its problem: one call is one step, and keeps the books.

    With ``recompute`` the tensors a step makes for its backward pass are dropped and made again when the gradient
    comes by, so memory holds one state per step (and what the method itself remembers); the arithmetic is the same, so
    the gradient is too.
    """

    def __init__(
        self, method: Method, dynamics: Dynamics, tolerances: Tolerances, recompute: bool, statistics: Statistics
    ) -> None:
        self.method = method
        self.dynamics = dynamics
        self.manifold = dynamics.manifold
        self.tolerances = tolerances
        self.recompute = recompute
        self.statistics = statistics

    def __call__(self, t0: float, h: float, x: Tensor, memory: Any, fractions: Sequence[float]) -> Step:
        arguments = (self.dynamics, self.manifold, t0, h, x, memory, fractions, self.tolerances)
        if self.recompute and torch.is_grad_enabled():
            result: Step = checkpoint(self.method.step, *arguments, use_reentrant=False)
        else:
            result = self.method.step(*arguments)
        self.statistics.corrections += result.corrections
        return result


def _inside(times: Sequence[float], next_time: int, t0: float, t1: float) -> tuple[list[float], bool]:
    """Fractions of the requested times strictly inside the step, and whether its end is itself requested."""
    fractions: list[float] = []
    h = t1 - t0
    for t in times[next_time:]:
        s = (t - t0) / h
        if s > 1.0 - 1e-12:
            return fractions, s < 1.0 + 1e-12
        fractions.append(s)
    return fractions, False


def integrate_fixed(
    stepper: Stepper, x: Tensor, times: Sequence[float], step: float | None, max_steps: int
) -> list[Tensor]:
    """States at ``times`` on a fixed grid."""
    grid = fixed_grid(times, step)
    if len(grid) - 1 > max_steps:
        raise SolverError(
            Status.MAX_STEPS,
            f"a step of {step} from {times[0]} to {times[-1]} needs {len(grid) - 1} steps, max_steps is {max_steps}; "
            "try a larger step or a larger max_steps",
            stepper.statistics,
        )
    states, memory = [x], None
    for t0, t1 in pairwise(grid):
        fractions, wanted = ([], True) if step is None else _inside(times, len(states), t0, t1)
        # On an even grid every step has the very same size, whatever t1 - t0 rounds to.
        h = step if step is not None and t1 != times[-1] else t1 - t0
        result = stepper(t0, h, x, memory, fractions)
        x, memory = result.state, result.memory
        states.extend(result.inside)
        if wanted:
            states.append(x)
        stepper.statistics.accepted += 1
    return states


def integrate_adaptive(
    stepper: Stepper,
    x: Tensor,
    times: Sequence[float],
    first_step: float | None,
    controller: Controller,
    max_steps: int,
) -> list[Tensor]:
    """States at ``times``, each step as long as the tolerances allow."""
    method, manifold, statistics = stepper.method, stepper.manifold, stepper.statistics
    t, end = times[0], times[-1]
    direction = math.copysign(1.0, end - t)
    memory: Any = stepper.dynamics.slope(t, x)
    speed = _speed(manifold, x, memory, t, statistics)
    h = first_step or controller.first(speed, method.order, end - t, stepper.tolerances)
    states = [x]
    while t != end:
        smallest = 16.0 * torch.finfo(torch.float64).eps * max(abs(t), abs(end - t), 1e-300)
        if h < smallest:
            raise SolverError(Status.UNDERFLOW, _underflow_message(t, h, stepper.tolerances), statistics)
        if statistics.accepted + statistics.rejected >= max_steps:
            raise SolverError(
                Status.MAX_STEPS,
                f"reached t = {t:.6g} of {end:.6g} in {max_steps} steps; "
                "try a larger rtol or atol, or a larger max_steps",
                statistics,
            )
        remaining = abs(end - t)
        # A sliver left over would be a step of its own; stretch the last one by a hair instead.
        last = h * (1.0 + 1e-9) >= remaining
        t1 = end if last else t + direction * h
        fractions, wanted = _inside(times, len(states), t, t1)
        result = stepper(t, t1 - t, x, memory, fractions)
        assert result.error is not None
        assert result.travel is not None
        ratio = error_ratio(manifold, x, result.error, result.travel, stepper.tolerances)
        accept, h_next = controller.propose(abs(t1 - t), ratio, method.order)
        if not accept:
            statistics.rejected += 1
            h = h_next
            continue
        statistics.accepted += 1
        x, memory, t = result.state, result.memory, t1
        # The last step was cut; what it says about the next step is of no use and there is none.
        h = h_next
        states.extend(result.inside)
        if wanted:
            states.append(x)
    return states


def _speed(manifold: Manifold, x: Tensor, slope: Tensor, t: float, statistics: Statistics) -> float:
    with torch.no_grad():
        speed = float(manifold.norm(x, slope).max())
    if not math.isfinite(speed):
        raise SolverError(
            Status.NOT_FINITE,
            f"the field at the initial state (t = {t:.6g}) is NaN or infinite; check field(t, x) there",
            statistics,
        )
    return speed


def _underflow_message(t: float, h: float, tolerances: Tolerances) -> str:
    return (
        f"at t = {t:.6g} the step shrank to {h:.3g}, below what time can resolve, without meeting "
        f"rtol = {tolerances.rtol:g}, atol = {tolerances.atol:g}; the field may blow up, jump or return NaN there, "
        "or the tolerance may be below the dtype's rounding: try looser tolerances, float64, or a fixed step"
    )
