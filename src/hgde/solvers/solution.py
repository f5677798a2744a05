"""What a solve returns, and every way it can fail, in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import torch
from torch import Tensor

from hgde.geometry.numerics import ProjectionCounter


class Status(Enum):
    """Why a solve ended."""

    FINISHED = "reached the last requested time"
    CORRECTOR = "the corrector did not converge"
    UNDERFLOW = "the step size underflowed"
    MAX_STEPS = "ran out of steps"
    NOT_FINITE = "the state or the field stopped being finite"


@dataclass
class Statistics:
    """What a solve cost. ``projected`` is read from the device only when asked for."""

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

    ``times``: the requested times.  ``trajectory``: one state per time.  ``order``: the order this method has on this
    manifold.
    """

    times: tuple[float, ...]
    trajectory: tuple[Tensor, ...]
    statistics: Statistics
    status: Status
    order: int

    @property
    def states(self) -> Tensor:
        """All states, ``[len(t), *x0.shape]``."""
        return torch.stack(self.trajectory)

    @property
    def final(self) -> Tensor:
        """The state at the last time, not copied."""
        return self.trajectory[-1]


class InputError(ValueError):
    """A question that cannot be asked: what was expected, what came, and what to try."""


class SolverError(RuntimeError):
    """A solve that could not be finished; carries the status and what had been spent."""

    def __init__(self, status: Status, message: str, statistics: Statistics | None = None) -> None:
        super().__init__(f"{status.value}: {message}")
        self.status = status
        self.statistics = statistics
