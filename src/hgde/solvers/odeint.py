"""The one entry: ``odeint(field, x0, t, manifold=...)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.geometry.euclidean import Euclidean
from hgde.geometry.numerics import count_projections
from hgde.geometry.product import Product
from hgde.solvers.control import Controller
from hgde.solvers.dynamics import Dynamics, Flow
from hgde.solvers.loop import Event, Path, Stepper, Watch, integrate_adaptive, integrate_fixed
from hgde.solvers.method import Method, Tolerances
from hgde.solvers.packed import Packed
from hgde.solvers.registry import resolve
from hgde.solvers.solution import InputError, Solution, SolverError, State, Statistics, Status

#: Tolerances of an implicit method's corrector when none are given: a few digits above rounding.
CORRECTOR_TOLERANCES = {torch.float32: Tolerances(1e-5, 1e-7), torch.float64: Tolerances(1e-10, 1e-12)}

Spaces = Manifold | Sequence[Manifold] | None


def odeint(
    field: Callable[[Tensor, Any], Any] | Flow,
    x0: Tensor | Sequence[Tensor],
    t: Tensor | Sequence[float],
    *,
    manifold: Spaces = None,
    method: str | Method | type[Method] = "rk4",
    step: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    gradient: Literal["backprop", "recompute"] = "backprop",
    max_steps: int = 10_000,
    first_step: float | None = None,
    controller: Controller | None = None,
    events: Callable[[Tensor, Any], Any] | Sequence[Callable[[Tensor, Any], Any]] = (),
    on_failure: Literal["raise", "return"] = "raise",
    **options: Any,
) -> Solution:
    """Solve ``dx/dt = X(t, x)`` on a manifold from ``x0`` at ``t[0]``, giving the states at the times ``t``.

    ``field(t, x)`` returns a tangent vector at ``x``, or, wrapped in :class:`Flow`, a point ``F`` with ``X = log_x F``;
    ``t`` is a 0-d tensor of the state's dtype. ``x0 [..., d]`` holds any number of points, the last axis being the
    manifold's; without a manifold, space is flat. ``x0`` may be a tuple of such tensors, of any shapes, and
    ``manifold`` a tuple with one for each (or a :class:`Product`, whose parts they are); ``field`` then takes and
    returns tuples. Times are strictly increasing or strictly decreasing; no gradient flows into them.

    ``method`` is a name from ``SOLVERS`` or a method object; ``options`` are the method's own (``s_min``,
    ``max_order``, ...). ``step`` fixes the length of the steps, the last one cut to end exactly at ``t[-1]``. Without
    it a fixed-step method steps from one requested time to the next, and an adaptive one (``dopri5``, ``bosh3``) needs
    ``rtol`` and/or ``atol`` (a missing ``atol`` is a hundredth of ``rtol``, a missing ``rtol`` is 0): at every point
    the error stays below ``rtol`` times the distance travelled, except that a step's error below ``atol`` is never
    refused. For ``implicit_adams`` they are the corrector's tolerance. ``first_step`` and ``controller`` are for steps
    chosen by tolerance. Between steps the paper's methods interpolate along the geodesic, the others at their own order
    or better.

    ``gradient="recompute"`` gives the same gradients with one state per step in memory, at one more forward pass.

    ``events`` are functions ``g(t, x)`` of one number; the solve stops where the sign of one has changed, located on
    the curve between steps to the rounding of time, with the status ``EVENT`` and the event's time and state last. Two
    changes of sign within one step cancel and are not seen. The event's time is a number: gradients of the state there
    are those at a fixed time.

    A solve that cannot be finished raises :class:`SolverError` with the reason and the statistics so far, or, with
    ``on_failure="return"``, returns what it has, with the status and a message.

    >>> import torch
    >>> from hgde import PoincareBall
    >>> ball, x0 = PoincareBall(), torch.tensor([0.5, 0.0])
    >>> solution = odeint(lambda t, x: -x, x0, [0.0, 1.0], manifold=ball, method="dopri5", rtol=1e-5)
    >>> solution.states.shape
    torch.Size([2, 2])
    """
    chosen = resolve(method, options)
    times = _times(t)
    if gradient not in ("backprop", "recompute"):
        raise InputError(f"expected gradient 'backprop' or 'recompute', got {gradient!r}")
    if on_failure not in ("raise", "return"):
        raise InputError(f"expected on_failure 'raise' or 'return', got {on_failure!r}")
    problem = _Problem(field, x0, manifold, events)
    adaptive = is_adaptive(chosen, step, rtol, atol)
    _check_control(adaptive, chosen, first_step, controller)
    tolerances = _tolerances(rtol, atol, problem.x.dtype)
    statistics = Statistics()
    dynamics = Dynamics(problem.field, problem.manifold)
    stepper = Stepper(chosen, dynamics, tolerances, gradient == "recompute", statistics)
    path = Path(times, times[0], problem.x, [problem.x])
    status, message = Status.FINISHED, ""
    with count_projections() as statistics.counter:
        try:
            watch = Watch(problem.events, times[0], problem.x) if problem.events else None
            if adaptive:
                integrate_adaptive(stepper, path, first_step, controller or Controller(), max_steps, watch)
            else:
                signed = None if step is None else math.copysign(step, times[-1] - times[0])
                integrate_fixed(stepper, path, signed, max_steps, watch)
            _check_result(path.x, chosen)
        except SolverError as error:
            error.statistics = statistics
            if on_failure == "raise":
                raise
            status, message = error.status, str(error)
        finally:
            statistics.evaluations = dynamics.evaluations
    if path.event is not None and status is Status.FINISHED:
        status = Status.EVENT
    reached, states = _reached(path, status)
    trajectory = tuple(problem.given(state) for state in states)
    order = chosen.order_on(problem.manifold)
    return Solution(tuple(reached), trajectory, statistics, status, order, path.event, message)


class _Problem:
    """What was asked, as one tensor on one manifold, and the way back to what the caller knows."""

    def __init__(
        self, field: Any, x0: Any, manifold: Any, events: Callable[..., Any] | Sequence[Callable[..., Any]]
    ) -> None:
        listed: list[Event] = [events] if callable(events) else list(events)
        self.packed: Packed | None = None
        if isinstance(x0, Tensor):
            self.x, self.field, self.events = x0, field, listed
            self.manifold = Euclidean() if manifold is None else manifold
            _check_state(x0, self.manifold)
            return
        if not isinstance(x0, tuple | list) or not x0 or not all(isinstance(part, Tensor) for part in x0):
            raise InputError(f"expected x0 to be a tensor of points or a tuple of such, got {type(x0).__name__}")
        spaces = _spaces(manifold, len(x0))
        for i, (part, space) in enumerate(zip(x0, spaces, strict=True)):
            _check_state(part, space, f"part {i} of x0")
        if len({(part.dtype, part.device) for part in x0}) > 1:
            kinds = ", ".join(f"{part.dtype} on {part.device}" for part in x0)
            raise InputError(f"expected all parts of x0 to have one dtype and device, got {kinds}")
        packed = self.packed = Packed(spaces, [part.shape for part in x0])
        self.manifold, self.x = packed, packed.pack(x0)
        inner = field.function if isinstance(field, Flow) else field
        carried = packed.unpacked(inner, "the field")
        self.field = Flow(carried) if isinstance(field, Flow) else carried
        self.events = [partial(_unpacked_event, packed, event) for event in listed]

    def given(self, x: Tensor) -> State:
        """A state in the shape that ``x0`` had."""
        return x if self.packed is None else self.packed.unpack(x)


def _unpacked_event(packed: Packed, event: Event, t: Tensor, x: Tensor) -> Any:
    state: Any = packed.unpack(x)
    return event(t, state)


def _spaces(manifold: Any, count: int) -> list[Any]:
    if manifold is None:
        return [Euclidean() for _ in range(count)]
    if isinstance(manifold, Product):
        manifold = manifold.factors
    if not isinstance(manifold, tuple | list) or len(manifold) != count:
        came = f"{len(manifold)}" if isinstance(manifold, tuple | list) else type(manifold).__name__
        raise InputError(f"expected one manifold for each of the {count} parts of x0, got {came}")
    return list(manifold)


def _reached(path: Path, status: Status) -> tuple[list[float], list[Tensor]]:
    """The times a solve has states for, the one it ended at included."""
    states = list(path.states)
    if status is Status.NOT_FINITE:
        while len(states) > 1 and not bool(torch.isfinite(states[-1].detach()).all()):
            states.pop()
        return list(path.times[: len(states)]), states
    times = list(path.times[: len(states)])
    if status is not Status.FINISHED and path.t != times[-1]:
        times.append(path.t)
        states.append(path.x)
    return times, states


def _times(t: Tensor | Sequence[float]) -> tuple[float, ...]:
    if isinstance(t, Tensor) and t.dim() != 1:
        raise InputError(f"expected a one-dimensional tensor of times, got shape {tuple(t.shape)}")
    times = tuple(float(value) for value in (t.tolist() if isinstance(t, Tensor) else t))
    if len(times) < 2:
        raise InputError(f"expected at least two times, the first being that of x0, got {len(times)}")
    if not all(map(math.isfinite, times)):
        raise InputError(f"expected finite times, got {times}")
    pairs = list(pairwise(times))
    if not (all(a < b for a, b in pairs) or all(a > b for a, b in pairs)):
        at = next(i for i, (a, b) in enumerate(pairs) if (b - a) * (times[1] - times[0]) <= 0)
        raise InputError(
            f"expected strictly increasing or strictly decreasing times, got {times[at]:g} followed by "
            f"{times[at + 1]:g} at position {at}; sort them and drop duplicates"
        )
    return times


def _check_state(x0: Tensor, manifold: Any, what: str = "x0") -> None:
    if not isinstance(manifold, Manifold):
        raise InputError(
            f"expected a Manifold such as PoincareBall() or Euclidean(), got {type(manifold).__name__}; "
            "wrap a geoopt manifold in GeooptManifold"
        )
    problems = manifold.problems(x0)
    if problems:
        raise InputError(f"{what} is not a valid state: " + "; ".join(problems))


def is_adaptive(method: Method, step: float | None, rtol: float | None, atol: float | None) -> bool:
    """Whether the method chooses its steps by tolerance; raises where one of the arguments could not act."""
    if step is not None and not (math.isfinite(step) and step > 0):
        raise InputError(f"expected a positive step, got {step}; the direction follows from the times")
    has_tolerance = rtol is not None or atol is not None
    if step is not None or not method.adaptive:
        if has_tolerance and not method.corrects_to_call:
            raise InputError(_idle_tolerances(method))
        return False
    if not has_tolerance:
        raise InputError(
            f"{method.name} chooses its steps by tolerance and there is no good default: give rtol and/or atol "
            "(lengths in the manifold's metric), or step for fixed steps"
        )
    return True


def _idle_tolerances(method: Method) -> str:
    if method.adaptive:
        return "with step, steps have a fixed length, so rtol and atol have nothing to act on; give one or the other"
    if method.implicit:
        return (
            f"the corrector of {method.name} follows the method's own options, so rtol and atol have nothing to act "
            "on; give the option tolerance instead"
        )
    return (
        f"{method.name} has no error estimate, so rtol and atol have nothing to act on; "
        "give step instead, or use dopri5 or bosh3"
    )


def _check_control(adaptive: bool, method: Method, first_step: float | None, controller: Controller | None) -> None:
    if not adaptive and (first_step is not None or controller is not None):
        raise InputError(
            f"steps of {method.name} have a fixed length here, so first_step and controller have nothing to act on; "
            "leave them out, or choose steps by tolerance with dopri5 or bosh3"
        )
    if first_step is not None and not (math.isfinite(first_step) and first_step > 0):
        raise InputError(f"expected a positive first_step, got {first_step}; the direction follows from the times")


def _tolerances(rtol: float | None, atol: float | None, dtype: torch.dtype) -> Tolerances:
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise InputError(f"expected {name} to be a number >= 0, got {value}")
    if rtol is None and atol is None:
        return CORRECTOR_TOLERANCES.get(dtype, CORRECTOR_TOLERANCES[torch.float32])
    relative = rtol or 0.0
    absolute = atol if atol is not None else 0.01 * relative
    if relative == 0.0 and absolute == 0.0:
        raise InputError("expected rtol or atol above 0: no solve meets a tolerance of exactly 0")
    return Tolerances(relative, absolute)


def _check_result(x: Tensor, method: Method) -> None:
    if not bool(torch.isfinite(x.detach()).all()):
        raise SolverError(
            Status.NOT_FINITE,
            f"the state {method.name} ended with contains NaN or infinity; the field returned such values or the "
            "step is beyond the method's stability: check the field, or try a smaller step",
        )
