"""The loop over steps, fixed or adaptive, with gradients by backprop or by recomputing each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hgde.solvers.control import Controller, error_ratio, largest
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.method import Curve, Method, Step, Tolerances
from hgde.solvers.solution import InputError, SolverError, Statistics, Status

Event = Callable[[Tensor, Tensor], Any]


def fixed_steps(times: Sequence[float], step: float | None) -> int:
    """How many steps :func:`fixed_grid` has."""
    if step is None:
        return len(times) - 1
    return max(1, math.ceil((times[-1] - times[0]) / step - 1e-9))


def fixed_grid(times: Sequence[float], step: float | None) -> list[float]:
    """The requested times themselves, or multiples of ``step``, the last one cut to end exactly at the last time."""
    if step is None:
        return list(times)
    return [times[0] + i * step for i in range(fixed_steps(times, step))] + [times[-1]]


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

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(function, *arguments, use_reentrant=False)
        return function(*arguments)

    def start(self, t0: float, x: Tensor) -> Any:
        """The method's memory before its first step."""
        return self._run(self.method.start, self.dynamics, self.manifold, t0, x)

    def __call__(
        self, t0: float, h: float, x: Tensor, memory: Any, fractions: Sequence[float]
    ) -> tuple[Step, list[Tensor]]:
        """One step, and the states at ``fractions`` of it."""

        def step(x: Tensor, memory: Any) -> tuple[Step, list[Tensor]]:
            result = self.method.step(self.dynamics, self.manifold, t0, h, x, memory, self.tolerances)
            curve = self.curve(x, result) if fractions else None
            return result, [curve(s) for s in fractions] if curve is not None else []

        result, inside = self._run(step, x, memory)
        self.statistics.corrections += result.corrections
        return result, inside

    def curve(self, x: Tensor, result: Step) -> Curve:
        """States inside a step: the method's own, or the geodesic (eq:hyperbolic-linear-interpolation)."""
        if result.dense is not None:
            return result.dense()
        v = self.manifold.logmap(x, result.state)
        return lambda s: self.manifold.expmap(x, s * v)


class Watch:
    """The events of a solve: functions ``g(t, x)`` whose change of sign stops it."""

    def __init__(self, events: Sequence[Event], t: float, x: Tensor) -> None:
        self.events = events
        self.signs = [self._sign(event, t, x) for event in events]

    def _sign(self, event: Event, t: float, x: Tensor) -> float:
        with torch.no_grad():
            value = event(torch.full((), t, dtype=x.dtype, device=x.device), x)
        if isinstance(value, Tensor) and value.numel() != 1:
            raise InputError(f"expected an event to return one number, got a tensor of shape {tuple(value.shape)}")
        number = float(value)
        return 0.0 if number == 0.0 else math.copysign(1.0, number)

    def crossing(self, t0: float, h: float, state: Tensor, curve: Callable[[], Curve]) -> tuple[int, float] | None:
        """The event that comes first in a step, and at what fraction of it; ``None`` if no sign has changed.

        The sign is bisected along the step's curve down to the rounding of time. An event that is zero at the start has
        no sign yet, and takes the first one it has.
        """
        ends = [self._sign(event, t0 + h, state) for event in self.events]
        crossed = [i for i, (a, b) in enumerate(zip(self.signs, ends, strict=True)) if a != 0.0 and a != b]
        if not crossed:
            self.signs = ends
            return None
        along = curve()
        with torch.no_grad():
            crossings = [(self._bisect(self.events[i], self.signs[i], t0, h, along), i) for i in crossed]
        s, which = min(crossings)
        return which, s

    def _bisect(self, event: Event, before: float, t0: float, h: float, along: Curve) -> float:
        """The end of the last interval whose start has the sign ``before``: there the sign has changed already."""
        low, high = 0.0, 1.0
        resolution = 4.0 * torch.finfo(torch.float64).eps * max(abs(t0), abs(t0 + h)) / abs(h)
        while high - low > max(resolution, 1e-15):
            middle = 0.5 * (low + high)
            if self._sign(event, t0 + middle * h, along(middle)) == before:
                low = middle
            else:
                high = middle
        return high


@dataclass
class Path:
    """What a solve has so far: states at the requested times it reached, and where it stands."""

    times: Sequence[float]
    t: float
    x: Tensor
    states: list[Tensor] = field(default_factory=list)
    event: int | None = None

    def inside(self, t1: float) -> tuple[list[float], bool]:
        """Fractions of the requested times strictly inside the step to ``t1``, and whether ``t1`` itself is one."""
        fractions: list[float] = []
        h = t1 - self.t
        for t in self.times[len(self.states) :]:
            s = (t - self.t) / h
            if s > 1.0 - 1e-12:
                return fractions, s < 1.0 + 1e-12
            fractions.append(s)
        return fractions, False

    def advance(self, t1: float, x: Tensor, inside: Sequence[Tensor], wanted: bool) -> None:
        self.states.extend(inside)
        self.t, self.x = t1, x
        if wanted:
            self.states.append(x)

    def stop(
        self, stepper: Stepper, watch: Watch | None, h: float, result: Step, fractions: Sequence[float],
        inside: Sequence[Tensor],
    ) -> bool:  # fmt: skip
        """Whether an event ends the solve inside this step; if so, the path ends there."""
        if watch is None:
            return False
        x, curves = self.x, list[Curve]()

        def curve() -> Curve:
            curves.append(stepper.curve(x, result))
            return curves[0]

        crossing = watch.crossing(self.t, h, result.state, curve)
        if crossing is None:
            return False
        self.event, s = crossing
        kept = [state for fraction, state in zip(fractions, inside, strict=True) if fraction < s]
        self.advance(self.t + s * h, result.state if s == 1.0 else curves[0](s), kept, wanted=False)
        stepper.statistics.accepted += 1
        return True


def integrate_fixed(
    stepper: Stepper, path: Path, step: float | None, max_steps: int, watch: Watch | None = None
) -> None:
    """Follow ``path`` on a fixed grid, to its last time or to an event."""
    times = path.times
    count = fixed_steps(times, step)
    if count > max_steps:
        how = "one step per requested time" if step is None else f"a step of {abs(step):g}"
        raise SolverError(
            Status.MAX_STEPS,
            f"{how} from {times[0]:g} to {times[-1]:g} needs {count} steps, max_steps is {max_steps}; "
            "try a larger step or a larger max_steps",
        )
    memory = stepper.start(path.t, path.x)
    for t0, t1 in pairwise(fixed_grid(times, step)):
        fractions, wanted = ([], True) if step is None else path.inside(t1)
        # On an even grid every step has the very same size, whatever t1 - t0 rounds to.
        h = step if step is not None and t1 != times[-1] else t1 - t0
        result, inside = stepper(t0, h, path.x, memory, fractions)
        if path.stop(stepper, watch, h, result, fractions, inside):
            return
        memory = result.memory
        path.advance(t1, result.state, inside, wanted)
        stepper.statistics.accepted += 1


def integrate_adaptive(
    stepper: Stepper,
    path: Path,
    first_step: float | None,
    controller: Controller,
    max_steps: int,
    watch: Watch | None = None,
) -> None:
    """Follow ``path`` to its last time or to an event, each step as long as the tolerances allow."""
    method, manifold, statistics = stepper.method, stepper.manifold, stepper.statistics
    end = path.times[-1]
    direction = math.copysign(1.0, end - path.t)
    memory = stepper.start(path.t, path.x)
    h = first_step or controller.first(_speed(stepper, path), method.order, end - path.t, stepper.tolerances)
    while path.t != end:
        t, x = path.t, path.x
        smallest = 16.0 * torch.finfo(torch.float64).eps * max(abs(t), abs(end - t), 1e-300)
        if h < smallest:
            raise SolverError(Status.UNDERFLOW, _underflow_message(t, h, stepper.tolerances))
        if statistics.accepted + statistics.rejected >= max_steps:
            raise SolverError(
                Status.MAX_STEPS,
                f"reached t = {t:.6g} of {end:.6g} in {max_steps} steps; "
                "try a larger rtol or atol, or a larger max_steps",
            )
        # What rounding leaves over would be a step of its own; the last one is stretched over it.
        last = h * (1.0 + 1e-9) >= abs(end - t)
        t1 = end if last else t + direction * h
        fractions, wanted = path.inside(t1)
        result, inside = stepper(t, t1 - t, x, memory, fractions)
        assert result.error is not None
        assert result.travel is not None
        ratio = error_ratio(manifold, x, result.error, result.travel, stepper.tolerances, method.order)
        accept, h = controller.propose(abs(t1 - t), ratio, method.order)
        if not accept:
            statistics.rejected += 1
            continue
        if path.stop(stepper, watch, t1 - t, result, fractions, inside):
            return
        statistics.accepted += 1
        memory = result.memory
        path.advance(t1, result.state, inside, wanted)


def _speed(stepper: Stepper, path: Path) -> float:
    with torch.no_grad():
        speed = largest(stepper.manifold.norm(path.x, stepper.dynamics.slope(path.t, path.x)))
    if not math.isfinite(speed):
        raise SolverError(
            Status.NOT_FINITE,
            f"the field at the initial state (t = {path.t:.6g}) is NaN or infinite; check field(t, x) there",
        )
    return speed


def _underflow_message(t: float, h: float, tolerances: Tolerances) -> str:
    return (
        f"at t = {t:.6g} the step shrank to {h:.3g}, below what time can resolve, without meeting "
        f"rtol = {tolerances.rtol:g}, atol = {tolerances.atol:g}; the field may blow up, jump or return NaN there, "
        "or the tolerance may be below the dtype's rounding: try looser tolerances, float64, or a fixed step"
    )
