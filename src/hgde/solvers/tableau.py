"""Coefficients of Runge-Kutta methods as data. :func:`check` verifies what a table claims before it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

Row = tuple[float, ...]
Terms = tuple[tuple[int, float], ...]


def nonzero(row: Row) -> Terms:
    """``(index, coefficient)`` of the entries that are not zero."""
    return tuple((index, value) for index, value in enumerate(row) if value != 0.0)


@dataclass(frozen=True)
class Tableau:
    """An explicit Butcher table.

    ``nodes [s]``, ``matrix`` (row ``i`` has ``i`` entries), ``weights [s]``; ``embedded`` are the weights of the
    companion of lower order for the error estimate, ``bump`` those of the term ``s^2 (1-s)^2`` which, added to the
    cubic Hermite interpolant, raises its order to five.

    >>> heun = Tableau("heun", order=2, nodes=(0.0, 1.0), matrix=((), (1.0,)), weights=(0.5, 0.5))
    >>> heun.step_terms, heun.first_same_as_last
    (((0, 0.5), (1, 0.5)), False)
    """

    name: str
    order: int
    nodes: Row = field(repr=False)
    matrix: tuple[Row, ...] = field(repr=False)
    weights: Row = field(repr=False)
    embedded: Row | None = field(default=None, repr=False)
    bump: Row | None = field(default=None, repr=False)

    @cached_property
    def stages(self) -> tuple[tuple[float, Terms], ...]:
        """Node and nonzero coefficients of every stage after the first."""
        return tuple((node, nonzero(row)) for node, row in zip(self.nodes[1:], self.matrix[1:], strict=True))

    @cached_property
    def step_terms(self) -> Terms:
        return nonzero(self.weights)

    @cached_property
    def error_terms(self) -> Terms:
        if self.embedded is None:
            return ()
        return nonzero(tuple(b - e for b, e in zip(self.weights, self.embedded, strict=True)))

    @cached_property
    def bump_terms(self) -> Terms:
        return () if self.bump is None else nonzero(self.bump)

    @cached_property
    def first_same_as_last(self) -> bool:
        """Whether the last stage is evaluated at the step's end, so that the next step can start with it."""
        return self.nodes[-1] == 1.0 and self.matrix[-1] == self.weights[:-1] and self.weights[-1] == 0.0


def _order_residuals(tableau: Tableau, weights: Row, order: int) -> dict[str, float]:
    """What is left of the order conditions up to order five, one per rooted tree."""
    s = len(tableau.nodes)
    a = [[*row, *([0.0] * (s - len(row)))] for row in tableau.matrix]
    c = tableau.nodes

    def apply(vector: list[float]) -> list[float]:
        return [sum(x * y for x, y in zip(row, vector, strict=True)) for row in a]

    def times(*vectors: list[float]) -> list[float]:
        product = [1.0] * s
        for vector in vectors:
            product = [x * y for x, y in zip(product, vector, strict=True)]
        return product

    one = [1.0] * s
    n = list(c)
    n2, n3, n4 = times(n, n), times(n, n, n), times(n, n, n, n)
    an, an2, an3 = apply(n), apply(n2), apply(n3)
    trees: list[tuple[int, str, list[float], float]] = [
        (1, "b", one, 1.0),
        (2, "bc", n, 1 / 2),
        (3, "bcc", n2, 1 / 3),
        (3, "bac", an, 1 / 6),
        (4, "bccc", n3, 1 / 4),
        (4, "bcac", times(n, an), 1 / 8),
        (4, "bacc", an2, 1 / 12),
        (4, "baac", apply(an), 1 / 24),
        (5, "bcccc", n4, 1 / 5),
        (5, "bccac", times(n2, an), 1 / 10),
        (5, "bacac", times(an, an), 1 / 20),
        (5, "bcacc", times(n, an2), 1 / 15),
        (5, "baccc", an3, 1 / 20),
        (5, "bcaac", times(n, apply(an)), 1 / 30),
        (5, "ba(cac)", apply(times(n, an)), 1 / 40),
        (5, "baacc", apply(an2), 1 / 60),
        (5, "baaac", apply(apply(an)), 1 / 120),
    ]
    return {
        name: sum(b * x for b, x in zip(weights, tree, strict=True)) - target
        for degree, name, tree, target in trees
        if degree <= order
    }


def check(tableau: Tableau) -> list[str]:
    """What contradicts the table's claims: row sums, order conditions of both weight sets, interpolation."""
    problems = []
    if len(tableau.matrix) != len(tableau.nodes) or len(tableau.weights) != len(tableau.nodes):
        return [f"{tableau.name}: expected {len(tableau.nodes)} rows and weights"]
    for i, (row, node) in enumerate(zip(tableau.matrix, tableau.nodes, strict=True)):
        if len(row) != i:
            problems.append(f"{tableau.name}: row {i} has {len(row)} entries, an explicit method has {i}")
        if abs(sum(row) - node) > 1e-14:
            problems.append(f"{tableau.name}: row {i} sums to {sum(row)}, its node is {node}")
    for name, residual in _order_residuals(tableau, tableau.weights, tableau.order).items():
        if abs(residual) > 1e-14:
            problems.append(f"{tableau.name}: order condition {name} is off by {residual:.1e}")
    if tableau.embedded is not None:
        for name, residual in _order_residuals(tableau, tableau.embedded, tableau.order - 1).items():
            if abs(residual) > 1e-14:
                problems.append(f"{tableau.name}: embedded order condition {name} is off by {residual:.1e}")
    if tableau.bump is not None and abs(sum(tableau.bump)) > 1e-13:
        problems.append(f"{tableau.name}: the interpolation weights sum to {sum(tableau.bump)}, not 0")
    return problems


EULER = Tableau("euler", 1, (0.0,), ((),), (1.0,))

MIDPOINT = Tableau("midpoint", 2, (0.0, 1 / 2), ((), (1 / 2,)), (0.0, 1.0))

HEUN = Tableau("heun", 2, (0.0, 1.0), ((), (1.0,)), (1 / 2, 1 / 2))

#: Kutta's 3/8 rule, which the paper and torchdiffeq both call rk4.
RK4 = Tableau(
    "rk4",
    4,
    (0.0, 1 / 3, 2 / 3, 1.0),
    ((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)),
    (1 / 8, 3 / 8, 3 / 8, 1 / 8),
)

#: Bogacki and Shampine, A 3(2) pair of Runge-Kutta formulas, 1989.
BOSH3 = Tableau(
    "bosh3",
    3,
    (0.0, 1 / 2, 3 / 4, 1.0),
    ((), (1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
    (2 / 9, 1 / 3, 4 / 9, 0.0),
    embedded=(7 / 24, 1 / 4, 1 / 3, 1 / 8),
)

#: Dormand and Prince, A family of embedded Runge-Kutta formulae, 1980; interpolation of Hairer and Wanner.
DOPRI5 = Tableau(
    "dopri5",
    5,
    (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    embedded=(5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40),
    bump=(
        -12715105075 / 11282082432,
        0.0,
        87487479700 / 32700410799,
        -10690763975 / 1880347072,
        701980252875 / 199316789632,
        -1453857185 / 822651844,
        69997945 / 29380423,
    ),
)

TABLEAUS = (EULER, MIDPOINT, HEUN, RK4, BOSH3, DOPRI5)
