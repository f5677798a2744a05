"""What is left out takes the value that the documentation names, and the standard problems are what they are called."""

from itertools import pairwise

import pytest
import torch

from hgde.geometry import Euclidean, Lorentz, PoincareBall
from hgde.solvers import SOLVERS, Controller, Tolerances, odeint
from hgde.solvers.orders import standard_problems, step_counts
from hgde.solvers.registry import resolve


def swing(t, x):
    return torch.stack([x[..., 1], -x[..., 0]], -1) * (1 + 0.5 * torch.cos(3 * t))


def steps(**tolerances):
    x0 = torch.tensor([[1.0, 0.2]], dtype=torch.float64)
    solution = odeint(swing, x0, [0.0, 3.0], manifold=Euclidean(), method="dopri5", **tolerances)
    return solution.statistics.accepted, solution.final


def test_a_missing_tolerance():
    """Without ``atol`` a hundredth of ``rtol``, without ``rtol`` nothing; either way the very same steps."""
    for left_out, spelled_out in (
        ({"rtol": 1e-4}, {"rtol": 1e-4, "atol": 1e-6}),
        ({"atol": 1e-4}, {"rtol": 0.0, "atol": 1e-4}),
    ):
        one, two = steps(**left_out), steps(**spelled_out)
        assert one[0] == two[0]
        assert torch.equal(one[1], two[1])
    assert not torch.equal(steps(rtol=1e-4)[1], steps(rtol=1e-4, atol=1e-4)[1])


def test_the_first_step_of_a_field_that_stands_still():
    """As of a speed of 1e-8, and never longer than the span."""
    tolerances = Tolerances(rtol=9e-5, atol=1e-5)
    for speed in (0.0, 1e-9, 1e-8):
        assert Controller().first(speed, 2, 1e9, tolerances) == pytest.approx(0.5 * 1e-2 / 1e-8)
    assert Controller().first(2e-8, 2, 1e9, tolerances) == pytest.approx(0.5 * 1e-2 / 2e-8)
    assert Controller().first(0.0, 2, -3.0, tolerances) == 3.0


def test_the_first_step_without_a_tolerance_is_that_of_rounding():
    assert Controller().first(1.0, 2, 1.0, Tolerances(0.0, 0.0)) == pytest.approx(0.5e-8)


def test_standard_problems_are_what_they_are_called():
    problems = standard_problems()
    kinds = {"plane": Euclidean, "ball": PoincareBall, "lorentz": Lorentz}
    balls = [f"ball c={c:g} d={d}" for c in (0.3, 1, 4) for d in (2, 16)]
    assert sorted(problems) == sorted(["plane", *balls, "lorentz c=1 d=3"])
    for name, problem in problems.items():
        kind, *numbers = name.split()
        stated = dict(number.split("=") for number in numbers)
        assert type(problem.manifold) is kinds[kind]
        assert problem.dim == int(stated.get("d", 2))
        assert problem.start.shape[-1] == problem.dim + (kind == "lorentz")
        if kind != "plane":
            assert float(problem.manifold.c) == pytest.approx(float(stated["c"]))
        far = problem.manifold.dist(problem.centre.expand_as(problem.start), problem.start)
        assert float(far.max()) <= min(1.0, float(stated.get("c", 1)) ** -0.5) + 1e-9, "within a radius of curvature"


@pytest.mark.parametrize("method", SOLVERS)
def test_orders_are_measured_by_halving_steps(method):
    counts = step_counts(resolve(method))
    assert all(b == 2 * a for a, b in pairwise(counts))
    assert len(counts) > 1
