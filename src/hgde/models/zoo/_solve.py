"""What the continuous models share: how their equation is solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from hgde.geometry import Euclidean
from hgde.sections import Section, setting
from hgde.solvers import odeint

ADAPTIVE = ("dopri5", "bosh3")


def by_tolerance(section: ContinuousSettings) -> str | None:
    return None if section.method in ADAPTIVE else f"{section.method} has fixed steps"


def by_step(section: ContinuousSettings) -> str | None:
    return f"{section.method} chooses its steps by tolerance" if section.method in ADAPTIVE else None


@dataclass(frozen=True)
class ContinuousSettings(Section):
    """Time and solver of a model in flat space."""

    time: float = setting(1.0, "how long the equation runs", above=0)
    method: str = setting("rk4", "solver", choices=("euler", "midpoint", "heun", "rk4", *ADAPTIVE))
    step: float = setting(1.0, "length of a step", above=0, inert=by_step)
    rtol: float = setting(1e-3, "tolerance relative to the distance travelled", above=0, inert=by_tolerance)
    atol: float = setting(1e-4, "absolute tolerance", above=0, inert=by_tolerance)


def solve(field: Callable[[Tensor, Tensor], Tensor], start: Tensor, settings: ContinuousSettings) -> Tensor:
    """The state at ``settings.time`` of ``dx/dt = field(t, x)`` in flat space, started at 0. ``[N, d]``"""
    adaptive = settings.method in ADAPTIVE
    return odeint(
        field,
        start,
        (0.0, settings.time),
        manifold=Euclidean(),
        method=settings.method,
        step=None if adaptive else settings.step,
        rtol=settings.rtol if adaptive else None,
        atol=settings.atol if adaptive else None,
    ).final
