"""What a method is: a pure function from one step's start to its end, and what it claims about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.solvers.dynamics import Dynamics


class Step(NamedTuple):
    """The end of a step. Nothing is kept elsewhere, so a step can be retried, recomputed and tested alone.

    ``state``: ``x1``.  ``memory``: what the next step wants to know.  ``inside``: states at the requested fractions of
    the step.  ``error``, ``travel``: tangent vectors at the start, the estimated error and the way made; ``None``
    without an estimate.  ``corrections``: iterations of an implicit method.
    """

    state: Tensor
    memory: Any = None
    inside: tuple[Tensor, ...] = ()
    error: Tensor | None = None
    travel: Tensor | None = None
    corrections: int = 0


@dataclass(frozen=True)
class Tolerances:
    """``error <= atol + rtol * |v|``, lengths in the manifold's metric, ``v`` the step in normal coordinates."""

    rtol: float
    atol: float


class Method(ABC):
    """One way to step. Subclasses are frozen dataclasses whose fields are the method's options."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def order(self) -> int:
        """What :mod:`hgde.solvers.orders` measures, on the ball as well as in flat space."""

    @property
    def adaptive(self) -> bool:
        """Whether steps come with an error estimate, so that tolerances can choose their length."""
        return False

    @property
    def implicit(self) -> bool:
        """Whether a step solves an equation, to a tolerance."""
        return False

    @abstractmethod
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
        """From ``x`` at ``t0`` to ``t0 + h``; ``h`` may be negative. ``fractions`` in (0, 1) ask for states inside."""

    def order_on(self, manifold: Manifold) -> int:
        """The order on a manifold, bounded by what its maps allow."""
        return self.order if manifold.max_order is None else min(self.order, manifold.max_order)
