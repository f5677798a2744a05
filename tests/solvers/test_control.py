"""Step control: errors within what was asked and not far below it, and the exponents that bring it about."""

import math
from itertools import pairwise, product

import pytest
import torch

from hgde.geometry import Euclidean, Lorentz, PoincareBall
from hgde.solvers import Controller, Flow, SolverError, Status, Tolerances, odeint
from hgde.solvers.control import error_ratio
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.registry import resolve
from problems import Spiral, swing

PROBLEMS = {
    "plane": lambda: Spiral(Euclidean(), 2, points=6),
    "plane, fast": lambda: Spiral(Euclidean(), 2, points=6, spin=6.0),
    "ball": lambda: Spiral(PoincareBall(1.0), 2, points=6),
    "ball c=4": lambda: Spiral(PoincareBall(4.0), 16, points=6, size=0.5),
    "lorentz": lambda: Spiral(Lorentz(1.0), 4, 3, points=6),
}


def share_of_tolerance(problem, method, rtol, until):
    """Largest error per distance travelled, over many times between steps, in units of ``rtol``."""
    times = [until * i / 37 for i in range(38)]
    with torch.no_grad():
        exact = [problem.exact(t) for t in times]
        length = sum(problem.manifold.dist(a, b) for a, b in pairwise(exact))
        solution = odeint(
            problem.field, problem.start, times, manifold=problem.manifold, method=method, rtol=rtol, atol=1e-3 * rtol
        )
        errors = [problem.manifold.dist(x, y) / length for x, y in zip(solution.trajectory, exact, strict=True)]
    assert solution.status is Status.FINISHED
    return max(float(e.max()) for e in errors) / rtol


def kept_tolerances():
    """Every problem with every method, each at either tolerance and either length in turn; the others take long."""
    asked = [("bosh3", 1e-2), ("bosh3", 1e-4), ("dopri5", 1e-3), ("dopri5", 1e-6)]
    for (i, name), (j, (method, rtol)), (k, until) in product(*map(enumerate, (PROBLEMS, asked, (1.0, 4.0)))):
        kept = j % 2 == i % 2 and k == (i // 2 + j // 2) % 2
        yield pytest.param(name, method, rtol, until, marks=[] if kept else [pytest.mark.slow])


@pytest.mark.parametrize(("name", "method", "rtol", "until"), list(kept_tolerances()))
def test_errors_are_within_the_tolerance_and_not_far_below_it(name, method, rtol, until):
    """Also between steps. A pessimistic controller would waste steps: bosh3's error was 0.004 of what was asked."""
    share = share_of_tolerance(PROBLEMS[name](), method, rtol, until)
    assert share <= 1.0
    assert share >= (0.1 if method == "bosh3" else 0.015)


@pytest.mark.parametrize("method", ["bosh3", "dopri5"])
def test_the_error_is_proportional_to_the_tolerance(method):
    problem = PROBLEMS["ball"]()
    tolerances = (1e-3, 1e-5) if method == "bosh3" else (1e-6, 1e-8)
    loose, tight = (share_of_tolerance(problem, method, rtol, 1.0) for rtol in tolerances)
    assert 0.4 < loose / tight < 2.5


@pytest.mark.parametrize("kind", ["relative", "absolute"])
@pytest.mark.parametrize("method", ["bosh3", "dopri5"])
def test_the_ratio_grows_with_the_power_that_the_controller_undoes(method, kind):
    """Steps of ``h`` and ``h / 2``: the ratio falls by ``2^order``, for either tolerance."""
    problem = PROBLEMS["ball"]()
    chosen = resolve(method)
    tolerances = Tolerances(1e-12, 0.0) if kind == "relative" else Tolerances(0.0, 1e-12)
    dynamics = Dynamics(problem.field, problem.manifold)
    ratios = []
    for h in (0.04, 0.02):
        memory = chosen.start(dynamics, problem.manifold, 0.0, problem.start)
        step = chosen.step(dynamics, problem.manifold, 0.0, h, problem.start, memory, tolerances)
        ratios.append(error_ratio(problem.manifold, problem.start, step.error, step.travel, tolerances, chosen.order))
    assert math.log2(ratios[0] / ratios[1]) == pytest.approx(chosen.order, abs=0.15)


@pytest.mark.parametrize("order", [2, 3, 5])
def test_the_controller_undoes_that_power(order):
    """A step that errs ``2^order`` times too much is halved, with the safety factor; one that errs as little grows."""
    controller = Controller()
    accepted, h = controller.propose(1.0, 2.0**order, order)
    assert not accepted
    assert h == pytest.approx(0.9 / 2.0, rel=1e-12)
    accepted, h = controller.propose(1.0, 2.0**-order, order)
    assert accepted
    assert h == pytest.approx(0.9 * 2.0, rel=1e-12)


def test_the_controller_s_limits():
    controller = Controller()
    assert controller.propose(1.0, 1e-30, 3) == (True, 10.0)
    assert controller.propose(1.0, 0.0, 3) == (True, 10.0)
    assert controller.propose(1.0, 1e30, 3) == (False, 0.2)
    assert controller.propose(1.0, math.nan, 3) == (False, 0.2)
    assert controller.propose(1.0, 1.0001, 3)[1] <= 0.9
    assert controller.propose(1.0, 1.0, 3) == (True, 0.9)


@pytest.mark.parametrize("method", ["dopri5", "bosh3"])
def test_step_control_decides_alike_wherever_the_problem_lies(method):
    statistics = []
    for away in (0.1, 2.0):
        problem = Spiral(PoincareBall(1.0), 2, points=4, away=away)
        solution = odeint(
            problem.field, problem.start, (0.0, 1.0), manifold=problem.manifold, method=method, rtol=1e-4, atol=1e-6
        )
        statistics.append(solution.statistics.accepted)
    assert abs(statistics[0] - statistics[1]) <= 1


def test_a_tighter_tolerance_costs_more():
    problem = Spiral(PoincareBall(1.0), 2, points=4)
    costs = [
        odeint(
            problem.field, problem.start, (0.0, 1.0), manifold=problem.manifold, method="dopri5", rtol=rtol
        ).statistics.evaluations
        for rtol in (1e-2, 1e-4, 1e-6)
    ]
    assert costs[0] < costs[1] < costs[2]


def test_rejected_steps_are_undone():
    """A kick forces rejections; the answer still meets the tolerance."""

    def field(t, x):
        return torch.exp(-((t - 0.5) ** 2) / 5e-3) * torch.ones_like(x)

    start = torch.zeros(1, 2, dtype=torch.float64)
    solution = odeint(
        field, start, (0.0, 1.0), manifold=Euclidean(), method="dopri5", rtol=1e-8, atol=1e-10, first_step=0.45
    )
    assert solution.statistics.rejected > 0
    assert float(solution.final[0, 0]) == pytest.approx(math.sqrt(5e-3 * math.pi), rel=1e-6)


@pytest.mark.parametrize("method", ["dopri5", "bosh3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_motionless_point_does_not_stop_a_solve_without_atol(method, dtype):
    """It has no error and no way made, and the others are solved as if it were not there."""
    still = torch.tensor([[0.0, 0.0], [0.3, 0.1]], dtype=dtype)

    def field(t, x):
        moving = torch.tensor([[0.0], [1.0]], dtype=dtype)
        return moving * (x.flip(-1) * torch.tensor([-1.0, 1.0], dtype=dtype) - 0.3 * x)

    for manifold in (Euclidean(), PoincareBall(1.0)):
        both = odeint(field, still, (0.0, 1.0), manifold=manifold, method=method, rtol=1e-3, atol=0.0)
        assert torch.equal(both.final[0], still[0])
        all_still = odeint(lambda t, x: torch.zeros_like(x), still, (0.0, 1.0), manifold=manifold, method=method,
                           rtol=1e-3, atol=0.0)  # fmt: skip
        assert torch.allclose(all_still.final, still)
        assert all_still.statistics.rejected == 0


@pytest.mark.parametrize("space", [PoincareBall(1.0), Lorentz(1.0)], ids=["ball", "lorentz"])
def test_a_point_that_stands_but_for_rounding_does_not_either(space):
    """A flow that gives back the point it was given, as well as arithmetic allows."""
    x0 = space.random(20, space.ambient(3), generator=torch.Generator().manual_seed(0))

    def there_and_back(t, x):
        y = space.expmap(x, space.transport0(x, torch.full((20, 3), 0.1)))
        return space.expmap(y, space.logmap(y, x))

    flow = Flow(there_and_back)
    solution = odeint(flow, x0, (0.0, 1.0), manifold=space, method="dopri5", rtol=1e-3, atol=0.0)
    assert float(space.dist(solution.final, x0).max()) < 1e-4


def test_solver_error_carries_the_statistics():
    with pytest.raises(SolverError) as caught:
        odeint(swing, torch.zeros(1, 2), (0.0, 1.0), manifold=Euclidean(), method="dopri5", rtol=1e-6, max_steps=3)
    assert caught.value.status is Status.MAX_STEPS
    assert caught.value.statistics.accepted + caught.value.statistics.rejected == 3


@pytest.mark.parametrize("order", [2, 3, 5])
def test_the_first_step_makes_a_way_of_the_tolerance_s_root(order):
    tolerances = Tolerances(1e-4, 3e-4)
    step = Controller().first(2.0, order, 100.0, tolerances)
    assert step == pytest.approx(0.5 * 4e-4 ** (1 / order) / 2.0)
    assert Controller().first(2.0, order, -1e-6, tolerances) == 1e-6, "never beyond the end, whatever the direction"
    assert Controller().first(0.0, order, 100.0, tolerances) == 100.0, "a field that stands still"
    assert Controller().first(1.0, order, 100.0, Tolerances(0.0, 0.0)) == pytest.approx(0.5 * 1e-16 ** (1 / order))


def test_what_the_controller_accepts():
    control = Controller()
    assert control.propose(0.1, 0.0, 3) == (True, 1.0), "grows by ten at most"
    assert control.propose(0.1, 1.0, 3) == (True, pytest.approx(0.09)), "a ratio of one is accepted"
    accept, step = control.propose(0.1, 1.0001, 3)
    assert not accept
    assert step == pytest.approx(0.09, rel=1e-3)
    assert control.propose(0.1, 1e9, 3) == (False, pytest.approx(0.02)), "shrinks by five at most"
    for ratio in (math.inf, math.nan):
        assert control.propose(0.1, ratio, 3) == (False, pytest.approx(0.02))
    eager = Controller(safety=5.0)
    assert eager.propose(0.1, 8.0, 3) == (False, pytest.approx(0.1)), "a step that failed is never made longer"
