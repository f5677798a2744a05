"""Every registered method has the order it declares, on every manifold, between steps and on uneven grids too."""

import math
from functools import cache
from itertools import pairwise

import geoopt
import pytest
import torch

from hgde.geometry import Euclidean, GeooptManifold, Lorentz, PoincareBall
from hgde.solvers import SOLVERS, odeint
from hgde.solvers.orders import measure_order, standard_problems
from hgde.solvers.registry import resolve
from problems import Spiral
from spaces import SPACES

TRUE_ORDER = [name for name in SOLVERS if name not in ("heuler", "hrk4", "ham")]
FEW_STEPS = {"bosh3": (12, 24), "heun": (12, 24), "midpoint": (12, 24), "hrk4": (12, 24), "rk4": (12, 24)}
FEW_STEPS["implicit_adams"] = (16, 32)
"""Methods that show their order with fewer steps than the usual ones, to the same 0.2."""


@pytest.mark.parametrize(
    "problem",
    [Spiral(Euclidean(), 2), Spiral(PoincareBall(1.0), 3), Spiral(Lorentz(0.7), 4, 3)],
    ids=["plane", "ball", "lorentz"],
)
def test_exact_answer_solves_the_equation(problem):
    for t in (0.0, 0.7):
        rate = (problem.exact(t + 1e-5) - problem.exact(t - 1e-5)) / 2e-5
        assert torch.allclose(problem.field(torch.tensor(t), problem.exact(t)), rate, atol=1e-7)


@cache
def problems():
    """Made once: frames of sixteen dimensions take longer than many a solve."""
    return standard_problems()


@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize("space", ["plane", "ball c=4 d=2", pytest.param("lorentz c=1 d=3", marks=pytest.mark.slow)])
def test_order_is_the_declared_one(method, space):
    measured = measure_order(method, problems()[space], space, counts=FEW_STEPS.get(method, ()))
    assert measured.agrees, measured


@pytest.mark.parametrize("name", [name for name in SPACES if "geoopt" in name or " x " in name])
def test_rk4_is_of_fourth_order_on_geoopt_manifolds_and_products(name):
    space = SPACES[name]
    manifold = space.make()
    problem = Spiral(manifold, space.width, space.dim, points=8)
    measured = measure_order("rk4", problem, name, counts=(10, 20))
    assert measured.declared == 4
    assert measured.agrees, measured


def test_transport_alone_is_capped_at_the_order_declared():
    problem = Spiral(GeooptManifold(geoopt.Sphere()), 3, 2, points=8)
    problem.manifold = GeooptManifold(geoopt.Sphere(), "transport")
    exact_differential = GeooptManifold(geoopt.Sphere())
    field = Spiral(exact_differential, 3, 2, points=8).field
    problem.field = field
    measured = measure_order("rk4", problem, "sphere", counts=(16, 32))
    assert measured.declared == 2
    assert measured.agrees, measured


def between(problem, method, count):
    """Largest error at times that are inside steps."""
    times = (0.0, 0.137, 0.52, 0.733, 1.0)
    tolerance = {"rtol": 1e-13, "atol": 1e-15} if resolve(method).corrects_to_call else {}
    solution = odeint(
        problem.field, problem.start, times, manifold=problem.manifold, method=method, step=1 / count, **tolerance
    )
    return max(
        float(problem.manifold.dist(x, problem.exact(t)).square().mean().sqrt())
        for t, x in zip(times[1:-1], solution.trajectory[1:-1], strict=True)
    )


@pytest.mark.parametrize("method", SOLVERS)
def test_interpolation_keeps_the_order(method):
    problem = Spiral(PoincareBall(1.0), 2, points=12)
    order = resolve(method).order
    # Between steps the paper's geodesic is of second order.
    # A high order shows late, and so does that of Adams' methods.
    steps = {"dopri5": 40, "explicit_adams": 20, "implicit_adams": 20}.get(method, 10)
    coarse, fine = between(problem, method, steps), between(problem, method, 2 * steps)
    assert math.log2(coarse / fine) > order - 0.4


@pytest.mark.parametrize("method", TRUE_ORDER)
def test_uneven_steps_keep_the_order(method):
    problem = Spiral(PoincareBall(1.0), 2, points=12)
    errors = []
    for count in FEW_STEPS.get(method, (24, 48)):
        s = torch.linspace(0, 1, count + 1, dtype=torch.float64)
        times = s + 0.1 * torch.sin(2 * math.pi * s) / (2 * math.pi)
        tolerance = {"rtol": 1e-13, "atol": 1e-15} if resolve(method).corrects_to_call else {}
        grid = times.tolist()
        if resolve(method).adaptive:
            # An adaptive method steps through one interval after the other with fixed steps of that length.
            x = problem.start
            for t0, t1 in pairwise(grid):
                x = odeint(problem.field, x, (t0, t1), manifold=problem.manifold, method=method, step=t1 - t0).final
        else:
            x = odeint(problem.field, problem.start, grid, manifold=problem.manifold, method=method, **tolerance).final
        errors.append(float(problem.manifold.dist(x, problem.exact(grid[-1])).square().mean().sqrt()))
    assert math.log2(errors[0] / errors[1]) > resolve(method).order - 0.4
