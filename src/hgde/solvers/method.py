"""What a method is: a pure function from one step's start to its end, and what it claims about itself."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.sections import Section, SettingsError, setting
from hgde.solvers.dynamics import Dynamics

Curve = Callable[[float], Tensor]


class Step(NamedTuple):
    """The end of a step. Nothing is kept elsewhere, so a step can be retried, recomputed and tested alone.

    ``state``: ``x1``.  ``memory``: what the next step wants to know.  ``dense``: makes the curve that gives the state
    at a fraction in (0, 1) of the step; called only where such a state is wanted, since it may evaluate the field.
    Left out, states lie on the geodesic to ``x1``.  ``error``, ``travel``: tangent vectors at the start, the estimated
    error and the way made; an adaptive method gives both.  ``corrections``: iterations of an implicit method.

    >>> import torch
    >>> Step(torch.zeros(2), travel=torch.ones(2)).corrections
    0
    """

    state: Tensor
    memory: Any = None
    dense: Callable[[], Curve] | None = None
    error: Tensor | None = None
    travel: Tensor | None = None
    corrections: int = 0


@dataclass(frozen=True)
class Tolerances:
    """What a step's error may be, lengths in the manifold's metric; see :func:`hgde.solvers.control.error_ratio`.

    >>> Tolerances(rtol=1e-3, atol=1e-5).atol
    1e-05
    """

    rtol: float
    atol: float


@dataclass(frozen=True)
class FixedStep(Section):
    """How long the steps of a method without an error estimate are.

    >>> FixedStep(step=0.5).to_dict()
    {'step': 0.5}
    """

    step: float = setting(1.0, "Step size; the last step is shortened to end at the last time.", above=0.0)


@dataclass(frozen=True)
class AdaptiveStep(Section):
    """What a method with an error estimate chooses its steps by.

    >>> AdaptiveStep(rtol=1e-5).to_dict()
    {'rtol': 1e-05, 'atol': 0.0001}
    """

    rtol: float = setting(1e-3, "Tolerated error per distance travelled.", above=0.0)
    atol: float = setting(1e-4, "Error that is always tolerated, a length in the metric.", at_least=0.0)


class _MethodSettings:
    """``SomeMethod.Settings``: the method's own fields that were made with ``setting``, and its step or tolerances."""

    def __get__(self, instance: object, owner: type[Method]) -> type[Section]:
        return _settings_for(owner)


class Method(ABC):
    """One way to step. Subclasses are frozen dataclasses whose fields are the method's options.

    Fields made with :func:`hgde.sections.setting` can be set from settings files and the command line, in a class
    ``Settings`` that is read off them; all fields of a method that is registered need a default.

    >>> from dataclasses import dataclass
    >>> import torch
    >>> from hgde import PoincareBall, odeint
    >>> from hgde.solvers import Step
    >>> @dataclass(frozen=True)
    ... class PlainEuler(Method):
    ...     name = "plain-euler"
    ...     order = 1
    ...     def step(self, dynamics, manifold, t0, h, x, memory, tolerances):
    ...         return Step(manifold.expmap(x, h * dynamics.slope(t0, x)))
    >>> x0 = torch.tensor([0.5, 0.0])
    >>> odeint(lambda t, x: -x, x0, [0.0, 1.0], manifold=PoincareBall(), method=PlainEuler(), step=0.1).order
    1
    """

    Settings: Any = _MethodSettings()

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def order(self) -> int:
        """What :mod:`hgde.solvers.orders` measures, on the ball as well as in flat space."""

    @property
    def adaptive(self) -> bool:
        """Whether steps come with an error estimate, so that tolerances can choose their length.

        The estimate is the difference to a method of order one less.
        """
        return False

    @property
    def implicit(self) -> bool:
        """Whether a step solves an equation, to a tolerance."""
        return False

    @property
    def corrects_to_call(self) -> bool:
        """Whether ``rtol`` and ``atol`` of the call act on steps of a fixed length, as its corrector's tolerance."""
        return False

    def start(self, dynamics: Dynamics, manifold: Manifold, t0: float, x: Tensor) -> Any:
        """The memory that the first step is given. It is the method's own business and nobody else reads it."""
        return None

    @abstractmethod
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
        """From ``x`` at ``t0`` to ``t0 + h``; ``h`` may be negative."""

    def order_on(self, manifold: Manifold) -> int:
        """The order on a manifold, bounded by what its maps allow."""
        return self.order if manifold.max_order is None else min(self.order, manifold.max_order)


@lru_cache(maxsize=256)
def _settings_for(kind: type[Method]) -> type[Section]:
    own = [spec for spec in dataclasses.fields(kind) if "declaration" in spec.metadata]  # type: ignore[arg-type]  # every method is a dataclass
    base = AdaptiveStep if kind().adaptive else FixedStep

    def check(self: Section) -> None:
        try:
            kind(**{spec.name: getattr(self, spec.name) for spec in own})
        except ValueError as error:
            raise SettingsError(str(error)) from None

    fields = [(spec.name, spec.type, dataclasses.field(default=spec.default, metadata=spec.metadata)) for spec in own]
    name = f"{kind.__name__}Settings"
    made: type[Section] = dataclasses.make_dataclass(
        name, fields, bases=(base,), frozen=True, namespace={"check": check}
    )
    made.__module__ = kind.__module__  # where the annotations are looked up
    return made
