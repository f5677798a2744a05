"""The one entry: ``odeint(field, x0, t, manifold=...)``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.geometry.numerics import count_projections
from hgde.solvers.control import Controller
from hgde.solvers.dynamics import Dynamics, FieldFunction, Flow
from hgde.solvers.integrate import Stepper, integrate_adaptive, integrate_fixed
from hgde.solvers.method import Method, Tolerances
from hgde.solvers.registry import resolve
from hgde.solvers.solution import InputError, Solution, SolverError, Statistics, Status

#: Tolerances of an implicit method's corrector when none are given: a few digits above rounding.
CORRECTOR_TOLERANCES = {torch.float32: Tolerances(1e-5, 1e-7), torch.float64: Tolerances(1e-10, 1e-12)}


def odeint(
    field: FieldFunction | Flow,
    x0: Tensor,
    t: Tensor | Sequence[float],
    *,
    manifold: Manifold,
    method: str | Method = "rk4",
    step: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    gradient: Literal["backprop", "recompute"] = "backprop",
    max_steps: int = 10_000,
    first_step: float | None = None,
    controller: Controller | None = None,
    **options: Any,
) -> Solution:
    """Solve ``dx/dt = X(t, x)`` on a manifold from ``x0`` at ``t[0]``, giving the states at the times ``t``.

    ``field(t, x)`` returns a tangent vector at ``x``, or, wrapped in :class:`Flow`, a point ``F`` with ``X = log_x F``;
    ``t`` is a 0-d tensor of the state's dtype. ``x0 [..., d]`` holds any number of points, the last axis being the
    manifold's. Times are strictly increasing or strictly decreasing; no gradient flows into them.

    ``method`` is a name from ``METHODS`` or a method object; ``options`` are the method's own (``s_min``,
    ``max_order``, ...). ``step`` fixes the length of the steps, the last one cut to end exactly at ``t[-1]``. Without
    it a fixed-step method steps from one requested time to the next, and an adaptive one (``dopri5``, ``bosh3``) needs
    ``rtol`` and/or ``atol`` (a missing ``atol`` is a hundredth of ``rtol``, a missing ``rtol`` is 0): a step's error
    must be below ``atol + rtol * (distance travelled)`` at every point. For implicit methods they are the corrector's
    tolerance. Between steps the paper's methods interpolate along the geodesic, the others at their own order.

    ``gradient="recompute"`` gives the same gradients with one state per step in memory, at one more forward pass.

    A solve that cannot be finished raises :class:`SolverError` with the reason and the statistics so far.
    """
    chosen = resolve(method, options)
    times = _times(t)
    _check_state(x0, manifold)
    if gradient not in ("backprop", "recompute"):
        raise InputError(f"expected gradient 'backprop' or 'recompute', got {gradient!r}")
    span = times[-1] - times[0]
    adaptive = _is_adaptive(chosen, step, rtol, atol)
    tolerances = _tolerances(chosen, adaptive, rtol, atol, x0.dtype)
    dynamics = Dynamics(field, manifold)
    statistics = Statistics()
    stepper = Stepper(chosen, dynamics, tolerances, gradient == "recompute", statistics)
    with count_projections() as statistics.counter:
        try:
            if adaptive:
                states = integrate_adaptive(stepper, x0, times, first_step, controller or Controller(), max_steps)
            else:
                signed = None if step is None else math.copysign(step, span)
                states = integrate_fixed(stepper, x0, times, signed, max_steps)
        except SolverError as error:
            error.statistics = statistics
            raise
        finally:
            statistics.evaluations = dynamics.evaluations
    _check_result(states[-1], chosen, statistics)
    return Solution(times, tuple(states), statistics, Status.FINISHED, chosen.order_on(manifold))


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


def _check_state(x0: Tensor, manifold: Manifold) -> None:
    if not isinstance(manifold, Manifold):
        raise InputError(
            f"expected a Manifold such as PoincareBall() or Euclidean(), got {type(manifold).__name__}; "
            "wrap a geoopt manifold in GeooptManifold"
        )
    if not isinstance(x0, Tensor):
        raise InputError(f"expected x0 to be a tensor of points, got {type(x0).__name__}")
    found = manifold.problems(x0)
    if found:
        raise InputError("x0 is not a valid state: " + "; ".join(found))


def _is_adaptive(method: Method, step: float | None, rtol: float | None, atol: float | None) -> bool:
    if step is not None:
        if not (math.isfinite(step) and step > 0):
            raise InputError(f"expected a positive step, got {step}; the direction follows from the times")
        return False
    if not method.adaptive:
        if (rtol is not None or atol is not None) and not method.implicit:
            raise InputError(
                f"{method.name} has no error estimate, so rtol and atol have nothing to act on; "
                "give step instead, or use dopri5 or bosh3"
            )
        return False
    if rtol is None and atol is None:
        raise InputError(
            f"{method.name} chooses its steps by tolerance and there is no good default: give rtol and/or atol "
            "(lengths in the manifold's metric), or step for fixed steps"
        )
    return True


def _tolerances(
    method: Method, adaptive: bool, rtol: float | None, atol: float | None, dtype: torch.dtype
) -> Tolerances:
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


def _check_result(x: Tensor, method: Method, statistics: Statistics) -> None:
    if not bool(torch.isfinite(x.detach()).all()):
        raise SolverError(
            Status.NOT_FINITE,
            f"the state {method.name} ended with contains NaN or infinity; the field returned such values or the "
            "step is beyond the method's stability: check the field, or try a smaller step",
            statistics,
        )
