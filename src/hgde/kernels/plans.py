"""A solver's work on one trajectory as a list: evaluations of the flow, and maps of rows between them.

A :class:`Recipe` is written down once for a solver, its times and its step, whatever the graph. :meth:`Recipe.plan`
turns it into the numbers that the compiled passes follow (:mod:`hgde.kernels.cpu.programs`), forward and backward.
Kept for the backward pass is what a map that is not linear was given: vectors that are only added up are not. Where no
gradient is asked for, :meth:`Recipe.plan_to_end` keeps nothing: an evaluation of many steps stays in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from hgde.kernels.cpu.sizes import ADD_UP, EXPONENTIAL, LOGARITHM, SHRINK, TRANSPORT

FLOW = -1
MOST_TERMS = 4
"""Arguments of one sum; a longer one is several."""
START = 0
"""The value that a trajectory starts from."""


@dataclass(frozen=True)
class Entry:
    """``result`` (a number, values are numbered as they are made) of a map of other values."""

    kind: int
    result: int
    arguments: tuple[int, ...]
    coefficients: tuple[float, ...] = ()


@dataclass(eq=False)
class Recipe:
    """Entries in the order they are worked out; the last state is the value ``final``."""

    entries: list[Entry] = field(default_factory=list)
    final: int = START

    def _add(self, kind: int, *arguments: int, coefficients: tuple[float, ...] = ()) -> int:
        result = len(self.entries) + 1
        self.entries.append(Entry(kind, result, arguments, coefficients))
        return result

    def flow(self, x: int) -> int:
        """``F(x)``."""
        return self._add(FLOW, x)

    def exp(self, x: int, v: int) -> int:
        """``exp_x(v)``."""
        return self._add(EXPONENTIAL, x, v)

    def log(self, x: int, y: int) -> int:
        """``log_x(y)``."""
        return self._add(LOGARITHM, x, y)

    def transport(self, x: int, y: int, v: int) -> int:
        """``v`` from ``x`` to ``y``."""
        return self._add(TRANSPORT, x, y, v)

    def shrink(self, x: int, v: int, w: int) -> int:
        """:func:`hgde.kernels.ops.maps.shrink`."""
        return self._add(SHRINK, x, v, w)

    def sum(self, terms: dict[int, float]) -> int:
        """``sum_k coefficient_k value_k``."""
        values, numbers = tuple(terms), tuple(terms.values())
        made = self._add(ADD_UP, *values[:MOST_TERMS], coefficients=numbers[:MOST_TERMS])
        for k in range(MOST_TERMS, len(values), MOST_TERMS - 1):
            more = slice(k, k + MOST_TERMS - 1)
            made = self._add(ADD_UP, made, *values[more], coefficients=(1.0, *numbers[more]))
        return made

    @property
    def evaluations(self) -> int:
        return sum(entry.kind == FLOW for entry in self.entries)

    @cached_property
    def plan(self) -> Plan:
        """The numbers for the compiled passes; the recipe must not grow afterwards."""
        return _plan(self, learns=True)

    @cached_property
    def plan_to_end(self) -> Plan:
        """:attr:`plan` for the forward pass alone, with as few slots as that needs."""
        return _plan(self, learns=False)


@dataclass(frozen=True, eq=False)
class Plan:
    """What the passes follow, and how many slots they need for values and for gradients."""

    forward: Tensor
    backward: Tensor
    numbers: Tensor
    phases: int
    """The first is what comes before any evaluation, each other begins with one."""
    slots: int
    gradients: int
    final: int
    """The slot of the last state."""
    final_gradient: int
    start_gradient: int

    @property
    def evaluations(self) -> int:
        """Those of the flow that the last state depends on."""
        return self.phases - 1


class _Slots:
    """Places given out and taken back."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self._free: list[int] = []

    def take(self) -> int:
        if self._free:
            return self._free.pop()
        self.count += 1
        return self.count - 1

    def give_back(self, place: int) -> None:
        self._free.append(place)


def _plan(recipe: Recipe, learns: bool) -> Plan:
    recipe = _without_idle(recipe)
    phases: list[list[Entry]] = [[]]
    for entry in recipe.entries:
        if entry.kind == FLOW:
            phases.append([entry])
        else:
            phases[-1].append(entry)
    slots, count = _value_slots(recipe, phases, learns)
    numbers: list[float] = []
    places = {}
    for entry in recipe.entries:
        places[entry.result] = len(numbers)
        numbers.extend(entry.coefficients)
    backward, gradients, ends = _backward(recipe, phases, slots, places) if learns else ([], 0, (0, 0))
    return Plan(
        _numbers(_forward(phases, slots, places)), _numbers(backward), torch.tensor(numbers, dtype=torch.float64),
        len(phases), count, gradients, slots[recipe.final], *ends,
    )  # fmt: skip


def _without_idle(recipe: Recipe) -> Recipe:
    """Only what the last state depends on."""
    needed = {recipe.final}
    for entry in reversed(recipe.entries):
        if entry.result in needed:
            needed.update(entry.arguments)
    return Recipe([entry for entry in recipe.entries if entry.result in needed], recipe.final)


def _numbers(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def _value_slots(recipe: Recipe, phases: list[list[Entry]], learns: bool) -> tuple[dict[int, int], int]:
    """A slot of its own for what the backward pass reads, if there is one; others share, as long as each is needed."""
    read_by_flows = {entry.arguments[0] for entry in recipe.entries if entry.kind == FLOW}
    kept = {START, recipe.final}
    for entry in recipe.entries:
        if entry.kind != ADD_UP and learns:
            kept.update(entry.arguments)
    last_use = {value: entry.result for entry in recipe.entries for value in entry.arguments}
    slots = {value: n for n, value in enumerate(sorted(kept))}
    pool = _Slots(len(slots))
    for phase in phases:
        left: list[int] = []
        for entry in phase:
            if entry.result not in slots:
                slots[entry.result] = pool.take()
            for value in set(entry.arguments) - kept:
                if last_use[value] == entry.result:
                    # What a flow reads, it reads from rows anywhere, until the whole phase is over.
                    left.append(value) if value in read_by_flows else pool.give_back(slots[value])
        for value in left:
            pool.give_back(slots[value])
    return slots, pool.count


def _forward(phases: list[list[Entry]], slots: dict[int, int], places: dict[int, int]) -> list[int]:
    from hgde.kernels.cpu.sizes import MAP_FORWARD, PHASE_FORWARD

    heads: list[int] = []
    maps: list[int] = []
    begin = PHASE_FORWARD * len(phases)
    for phase in phases:
        flow, rows = (phase[0], phase[1:]) if phase and phase[0].kind == FLOW else (None, phase)
        heads += [-1, -1] if flow is None else [slots[flow.arguments[0]], slots[flow.result]]
        heads += [begin + len(maps), begin + len(maps) + MAP_FORWARD * len(rows)]
        for entry in rows:
            given = [slots[value] for value in entry.arguments]
            maps += [entry.kind, slots[entry.result], *given, *[0] * (4 - len(given)), len(given)]
            maps.append(places[entry.result])
    return heads + maps


def _backward(
    recipe: Recipe, phases: list[list[Entry]], slots: dict[int, int], places: dict[int, int]
) -> tuple[list[int], int, tuple[int, int]]:
    """The plan backwards, how many gradients it needs at once, and where those of the last and the first state are."""
    from hgde.kernels.cpu.sizes import MAP_BACKWARD, PHASE_BACKWARD

    pool = _Slots()
    place: dict[int, int] = {recipe.final: pool.take()}
    last = place[recipe.final]
    heads: list[list[int]] = []
    maps: list[list[int]] = []

    def receive(values: tuple[int, ...]) -> tuple[list[int], list[int]]:
        added = [int(value in place) for value in values]
        for value in values:
            if value not in place:
                place[value] = pool.take()
        return [place[value] for value in values], added

    for phase in reversed(phases):
        first = len(maps)
        flow, rows = (phase[0], phase[1:]) if phase and phase[0].kind == FLOW else (None, phase)
        for entry in reversed(rows):
            into, added = receive(entry.arguments)
            room = [0] * (4 - len(into))
            given = [slots[value] for value in entry.arguments]
            here = place.pop(entry.result)
            maps.append([
                entry.kind, here, *given, *room, *into, *room, *added, *room, len(given), places[entry.result],
            ])  # fmt: skip
            pool.give_back(here)
        if flow is None:
            heads.append([-1, 0, 0, 0, first, len(maps)])
        else:
            (into_flow,), (added_flow,) = receive(flow.arguments)
            here = place.pop(flow.result)
            heads.append([slots[flow.arguments[0]], here, into_flow, added_flow, first, len(maps)])
            pool.give_back(here)
    begin = PHASE_BACKWARD * len(heads)
    table = [n for *head, low, high in heads for n in (*head, begin + MAP_BACKWARD * low, begin + MAP_BACKWARD * high)]
    return table + [n for entry in maps for n in entry], pool.count, (last, place[START])
