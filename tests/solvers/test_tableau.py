"""Coefficients do what they claim."""

import dataclasses

import pytest
import torch

from hgde.solvers import TABLEAUS
from hgde.solvers.adams import adams_weights, relative_times
from hgde.solvers.runge_kutta import Ends
from hgde.solvers.tableau import DOPRI5, RK4, check


@pytest.mark.parametrize("tableau", TABLEAUS, ids=lambda t: t.name)
def test_tableaus_meet_their_order_conditions(tableau):
    assert check(tableau) == []


@pytest.mark.parametrize("tableau", [t for t in TABLEAUS if t.order < 5], ids=lambda t: t.name)
def test_check_notices_an_order_claimed_too_high(tableau):
    assert check(dataclasses.replace(tableau, order=tableau.order + 1))


def test_check_notices_a_wrong_node_and_a_wrong_weight():
    assert "row 2" in " ".join(check(dataclasses.replace(RK4, nodes=(0.0, 1 / 3, 0.6, 1.0))))
    assert "order condition b " in " ".join(check(dataclasses.replace(RK4, weights=(1 / 8, 3 / 8, 3 / 8, 1 / 4))))


def test_last_slope_is_reused_where_it_may_be():
    assert DOPRI5.first_same_as_last
    assert not RK4.first_same_as_last


def test_adams_weights_are_the_textbook_ones():
    bashforth = [w * 24 for _, w in adams_weights((0.0, -1.0, -2.0, -3.0))]
    moulton = [w * 24 for _, w in adams_weights((1.0, 0.0, -1.0, -2.0))]
    assert bashforth == pytest.approx([55, -59, 37, -9], rel=1e-14)
    assert moulton == pytest.approx([9, 19, -5, 1], rel=1e-14)


@pytest.mark.parametrize("end", [0.3, 1.0])
@pytest.mark.parametrize("nodes", [(0.0, -0.7, -2.1), (1.0, 0.0, -0.31, -1.2, -3.3)])
def test_adams_weights_integrate_polynomials_on_uneven_nodes(nodes, end):
    weights = adams_weights(nodes, end)
    for power in range(len(nodes)):
        assert sum(w * nodes[j] ** power for j, w in weights) == pytest.approx(end ** (power + 1) / (power + 1))


def test_rounding_of_times_does_not_make_a_grid_uneven():
    times = [i * 0.1 for i in (7, 6, 5)]
    assert relative_times(times, times[0], 0.1) == (0.0, -1.0, -2.0)
    assert relative_times([0.7, 0.45], 0.7, 0.1)[1] == pytest.approx(-2.5)


def _ends(coefficients, h):
    """A polynomial ``v(s)`` without constant term, as a step sees it, with its slope in time."""
    v = torch.tensor([*reversed(coefficients), 0.0], dtype=torch.float64)

    def value(s):
        return sum(c * s ** (len(v) - 1 - k) for k, c in enumerate(v))

    def slope(s, _place=None):
        return sum((len(v) - 1 - k) * c * s ** (len(v) - 2 - k) for k, c in enumerate(v[:-1])) / h

    return Ends(h, slope(0.0), value(1.0), slope(1.0)), value, slope


@pytest.mark.parametrize("h", [0.3, -0.2])
def test_interpolants_are_exact_for_polynomials_of_their_degree(h):
    cubic, value, _ = _ends([1.0, 2.0, -1.0], h)
    for s in (0.1, 0.5, 0.8):
        assert torch.allclose(cubic.cubic(s), value(s), atol=1e-14)
    ends, value, slope = _ends([1.0, 2.0, -1.0, 0.5], h)
    curve = ends.quartic(slope)
    for s in (0.1, 0.5, 0.8):
        assert torch.allclose(curve(s), value(s), atol=1e-14)
    ends, value, slope = _ends([1.0, 2.0, -1.0, 0.5, -0.7], h)
    curve = ends.quintic(value, slope)
    for s in (0.1, 0.5, 0.8):
        assert torch.allclose(curve(s), value(s), atol=1e-13)
