"""Reverse-mode derivatives in 80-bit arithmetic, for truths that float64 itself is too coarse for.

A tape over numpy's ``longdouble``: eleven more bits than float64 on x86, where it is meant to be run. Only what the
flow's formulas need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any  # longdouble arrays; numpy's stubs do not know the platform's width


class Number:
    """An array, what it came from, and how a gradient goes back there."""

    def __init__(self, value: Array, parents: Sequence[tuple[Number, Callable[[Array], Array]]] = ()) -> None:
        self.value = np.asarray(value, dtype=np.longdouble)
        self.parents = tuple(parents)
        self.gradient: Array = np.zeros_like(self.value)

    def __add__(self, other: Number | float) -> Number:
        b = _lift(other)
        return Number(self.value + b.value, [(self, lambda g: g), (b, lambda g: g)])

    def __sub__(self, other: Number | float) -> Number:
        b = _lift(other)
        return Number(self.value - b.value, [(self, lambda g: g), (b, lambda g: -g)])

    def __mul__(self, other: Number | float) -> Number:
        b = _lift(other)
        return Number(self.value * b.value, [(self, lambda g: g * b.value), (b, lambda g: g * self.value)])

    def __truediv__(self, other: Number | float) -> Number:
        b = _lift(other)
        back = [(self, lambda g: g / b.value), (b, lambda g: -g * self.value / b.value**2)]
        return Number(self.value / b.value, back)

    def __neg__(self) -> Number:
        return self * -1.0

    def __radd__(self, other: float) -> Number:
        return self + other

    def __rsub__(self, other: float) -> Number:
        return _lift(other) - self

    def __rtruediv__(self, other: float) -> Number:
        return _lift(other) / self

    def __rmul__(self, other: float) -> Number:
        return self * other

    def __getitem__(self, rows: Array) -> Number:
        return Number(self.value[rows], [(self, lambda g: scattered(g, rows, len(self.value)))])

    def map(self, value: Callable[[Array], Array], slope: Callable[[Array], Array]) -> Number:
        """A function of every entry with its derivative."""
        return Number(value(self.value), [(self, lambda g: g * slope(self.value))])

    def sqrt(self) -> Number:
        return self.map(np.sqrt, lambda x: 0.5 / np.sqrt(x))

    def exp(self) -> Number:
        return self.map(np.exp, np.exp)

    def tanh(self) -> Number:
        return self.map(np.tanh, lambda x: 1 / np.cosh(x) ** 2)

    def artanh(self, rest: Number) -> Number:
        """``artanh`` of a number whose ``1 - x^2`` is given, as the difference would cancel."""
        value = np.log1p(self.value) - 0.5 * np.log(rest.value)
        # artanh x = log(1 + x) - log(1 - x^2)/2: two arguments, so that the given difference carries its own part.
        back = [(self, lambda g: g / (1 + self.value)), (rest, lambda g: -0.5 * g / rest.value)]
        return Number(value, back)

    def total(self) -> Number:
        """Sum over the last axis, which stays."""
        return Number(self.value.sum(-1, keepdims=True), [(self, lambda g: np.broadcast_to(g, self.value.shape))])

    def sum_rows(self, rows: Array, count: int) -> Number:
        """Rows added up by number."""
        return Number(scattered(self.value, rows, count), [(self, lambda g: g[rows])])


def scattered(values: Array, rows: Array, count: int) -> Array:
    out = np.zeros((count, *values.shape[1:]), dtype=np.longdouble)
    np.add.at(out, rows, values)
    return out


def gradients(output: Number, toward: Array, inputs: Sequence[Number]) -> list[Array]:
    """Gradients of ``<output, toward>``."""
    order: list[Number] = []
    seen: set[int] = set()
    stack: list[tuple[Number, bool]] = [(output, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((parent, False) for parent, _ in node.parents)
    for node in order:
        node.gradient = np.zeros_like(node.value)
    output.gradient = np.asarray(toward, dtype=np.longdouble)
    for node in reversed(order):
        for parent, back in node.parents:
            parent.gradient = parent.gradient + _reduced(back(node.gradient), parent.value.shape)
    return [node.gradient for node in inputs]


def _lift(value: Number | float) -> Number:
    return value if isinstance(value, Number) else Number(value)


def _reduced(g: Array, shape: tuple[int, ...]) -> Array:
    """A gradient summed over the axes along which its argument was repeated."""
    while g.ndim > len(shape):
        g = g.sum(0)
    for axis, size in enumerate(shape):
        if size == 1 and g.shape[axis] != 1:
            g = g.sum(axis, keepdims=True)
    return g
