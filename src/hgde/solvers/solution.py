"""What a solve returns, and every way it can fail, in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from hgde.geometry.numerics import ProjectionCounter

State = Tensor | tuple[Tensor, ...]
"""Points of a manifold, or of several."""


class Status(Enum):
    """Why a solve ended.

    >>> import torch
    >>> from hgde import odeint
    >>> odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0]).status is Status.FINISHED
    True
    """

    FINISHED = "reached the last requested time"
    EVENT = "an event stopped it"
    CORRECTOR = "the corrector did not converge"
    UNDERFLOW = "the step size underflowed"
    MAX_STEPS = "ran out of steps"
    NOT_FINITE = "the state or the field stopped being finite"


@dataclass
class Statistics:
    """What a solve cost. ``projected`` is read from the device only when asked for.

    >>> import torch
    >>> from hgde import odeint
    >>> odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method="rk4", step=0.5).statistics.as_dict()
    {'evaluations': 8, 'accepted': 2, 'rejected': 0, 'corrections': 0, 'projected': 0}
    """

    evaluations: int = 0
    accepted: int = 0
    rejected: int = 0
    corrections: int = 0
    counter: ProjectionCounter = field(default_factory=ProjectionCounter, repr=False)

    @property
    def projected(self) -> int:
        """Points that had left the space and were projected during the forward solve."""
        return self.counter.total

    def as_dict(self) -> dict[str, int]:
        return {
            "evaluations": self.evaluations,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "corrections": self.corrections,
            "projected": self.projected,
        }


@dataclass(frozen=True)
class Solution:
    """States at the requested times, what they cost, and why the solve ended.

    ``times``: the requested times that were reached. A solve that ended early, by an event or a failure, has the time
    it ended at as its last, with the state there.  ``trajectory``: one state per time, a tensor or, where ``x0`` was
    one, a tuple of tensors.  ``order``: the order this method has on this manifold.  ``event``: which of the events
    stopped it.  ``message``: what to do about a failure.

    >>> import torch
    >>> from hgde import odeint
    >>> solution = odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method="rk4", step=0.1)
    >>> round(solution.final.item(), 4), solution.statistics.accepted
    (0.3679, 10)
    """

    times: tuple[float, ...]
    trajectory: tuple[State, ...]
    statistics: Statistics
    status: Status
    order: int
    event: int | None = None
    message: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the solve ended as it should, at the last time or by an event."""
        return self.status in (Status.FINISHED, Status.EVENT)

    @property
    def states(self) -> Any:
        """All states, ``[len(times), *x0.shape]``; a tuple of such where ``x0`` is a tuple."""
        first = self.trajectory[0]
        if isinstance(first, Tensor):
            return torch.stack([state for state in self.trajectory if isinstance(state, Tensor)])
        return tuple(torch.stack([state[i] for state in self.trajectory]) for i in range(len(first)))

    @property
    def final(self) -> Any:
        """The state at the last time, not copied."""
        return self.trajectory[-1]


class InputError(ValueError):
    """A question that cannot be asked: what was expected, what came, and what to try.

    >>> import torch
    >>> from hgde import odeint
    >>> odeint(lambda t, x: -x, torch.ones(1), [0.0, 1.0], method="dopri5")
    Traceback (most recent call last):
    hgde.solvers.solution.InputError: dopri5 chooses its steps by tolerance and there is no good default: ...
    """


class SolverError(RuntimeError):
    """A solve that could not be finished; carries the status and what had been spent.

    >>> import torch
    >>> from hgde import odeint
    >>> try:
    ...     odeint(lambda t, x: x * x, torch.ones(1), [0.0, 2.0], method="dopri5", rtol=1e-6)
    ... except SolverError as error:
    ...     print(error.status.name, error.statistics.accepted > 0)
    UNDERFLOW True
    """

    def __init__(self, status: Status, message: str, statistics: Statistics | None = None) -> None:
        super().__init__(f"{status.value}: {message}")
        self.status = status
        self.statistics = statistics
