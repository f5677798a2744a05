"""How solves end: the last step takes over what rounding leaves, and events are placed to the rounding of time."""

import pytest
import torch

from hgde.geometry import Euclidean
from hgde.solvers import Controller, odeint

X0 = torch.zeros(1, 1, dtype=torch.float64)


def drift(t, x):
    return torch.ones_like(x)


def accepted(end, **options):
    solution = odeint(drift, X0, [0.0, end], manifold=Euclidean(), **options)
    assert float(solution.final) == pytest.approx(end, rel=1e-12)
    return solution.statistics.accepted


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_rounding_leaves_over_is_no_step_of_its_own(sign):
    adaptive = {"method": "dopri5", "rtol": 1e-3, "first_step": 1.0, "controller": Controller(grow=1.0)}
    assert accepted(sign * (1 + 5e-10), **adaptive) == 1
    assert accepted(sign * (3 + 5e-10), **adaptive) == 3
    assert accepted(sign * (1 + 5e-9), **adaptive) == 2


@pytest.mark.parametrize("threshold", [0.5 + k / 47 for k in range(1, 23)])
def test_events_are_placed_to_the_rounding_of_time(threshold):
    solution = odeint(
        drift, X0, [0.0, 1.0], manifold=Euclidean(), method="rk4", step=1.0, events=[lambda t, x: t - threshold]
    )
    assert 0.0 <= float(solution.times[-1]) - threshold <= 1e-15
    assert float(solution.final) == pytest.approx(threshold, rel=1e-14)
