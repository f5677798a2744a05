"""A solver's steps written down instead of carried out: what a compiled pass needs to follow them in one call.

The method itself is the only statement of its scheme. It is run once on values that have no numbers
(:class:`Value`), and every evaluation of the flow and every map of the space that it asks for becomes an entry of a
:class:`hgde.kernels.plans.Recipe`. A method that decides by numbers (a step by tolerance, a corrector that is iterated
until it converges) cannot be written down and says so by :class:`NotRecordable`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import torch

from hgde.kernels.plans import START, Recipe
from hgde.solvers import Method
from hgde.solvers.loop import fixed_grid
from hgde.solvers.method import Tolerances

MOST_EVALUATIONS = 2000
"""More are stepped through one by one: what is kept for each would not fit into memory anyway."""


class NotRecordable(Exception):
    """The method needs numbers, or a map that has no compiled form."""


class Value:
    """A linear combination of values of a recipe, standing for a tensor of points or of tangent vectors."""

    def __init__(self, recipe: Recipe, terms: dict[int, float]) -> None:
        self.recipe, self.terms = recipe, terms

    def _plus(self, other: object, scale: float) -> Value:
        if not isinstance(other, Value):
            raise NotRecordable(f"a value and {type(other).__name__} were added")
        terms = dict(self.terms)
        for value, coefficient in other.terms.items():
            terms[value] = terms.get(value, 0.0) + scale * coefficient
        return Value(self.recipe, terms)

    def __add__(self, other: object) -> Value:
        return self._plus(other, 1.0)

    def __sub__(self, other: object) -> Value:
        return self._plus(other, -1.0)

    def __mul__(self, number: object) -> Value:
        if not isinstance(number, int | float):
            raise NotRecordable(f"a value was multiplied by {type(number).__name__}")
        return Value(self.recipe, {value: number * coefficient for value, coefficient in self.terms.items()})

    __rmul__ = __mul__

    def __truediv__(self, number: object) -> Value:
        if not isinstance(number, int | float):
            raise NotRecordable(f"a value was divided by {type(number).__name__}")
        return Value(self.recipe, {value: coefficient / number for value, coefficient in self.terms.items()})

    def __getattr__(self, name: str) -> Any:
        raise NotRecordable(f"its tensors are asked for {name!r}")

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is torch.add and isinstance(args[0], Value) and set(kwargs or {}) <= {"alpha"}:
            return args[0]._plus(args[1], (kwargs or {}).get("alpha", 1.0))
        raise NotRecordable(f"{getattr(function, '__name__', function)} of its tensors is asked for")

    @property
    def number(self) -> int:
        """The value itself in the recipe; a combination is added up first."""
        if list(self.terms.values()) == [1.0]:
            return next(iter(self.terms))
        return self.recipe.sum(self.terms)


class _Space:
    """The maps of the ball that have a compiled form."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def _value(self, number: int) -> Value:
        return Value(self.recipe, {number: 1.0})

    def expmap(self, x: Value, v: Value) -> Value:
        return self._value(self.recipe.exp(x.number, v.number))

    def logmap(self, x: Value, y: Value) -> Value:
        return self._value(self.recipe.log(x.number, y.number))

    def transport(self, x: Value, y: Value, v: Value) -> Value:
        return self._value(self.recipe.transport(x.number, y.number, v.number))

    def dexp_inv(self, x: Value, v: Value, w: Value, y: Value) -> Value:
        carried = self.recipe.transport(y.number, x.number, w.number)
        return self._value(self.recipe.shrink(x.number, v.number, carried))

    def __getattr__(self, name: str) -> Any:
        raise NotRecordable(f"{name} has no compiled form")


class _Dynamics:
    """:class:`hgde.solvers.dynamics.Dynamics` of a flow that does not depend on time."""

    def __init__(self, space: _Space) -> None:
        self.space = space

    def flow(self, t: float, x: Value) -> Value:
        if self.space.recipe.evaluations >= MOST_EVALUATIONS:
            raise NotRecordable(f"more than {MOST_EVALUATIONS} evaluations")
        return Value(self.space.recipe, {self.space.recipe.flow(x.number): 1.0})

    def slope(self, t: float, x: Value) -> Value:
        return self.space.logmap(x, self.flow(t, x))


def record(method: Method, time: float, step: float) -> Recipe:
    """What a method does from 0 to ``time`` in steps of ``step``; raises :class:`NotRecordable`."""
    if method.adaptive:
        raise NotRecordable(f"{method.name} chooses its steps by tolerance")
    recipe = Recipe()
    space = _Space(recipe)
    dynamics, manifold = cast(Any, _Dynamics(space)), cast(Any, space)
    x: Any = Value(recipe, {START: 1.0})
    memory = method.start(dynamics, manifold, 0.0, x)
    for t0, t1 in pairwise(fixed_grid((0.0, time), step)):
        h = step if t1 != time else t1 - t0
        result = method.step(dynamics, manifold, t0, h, x, memory, Tolerances(0.0, 0.0))
        x, memory = result.state, result.memory
    recipe.final = x.number
    return recipe
