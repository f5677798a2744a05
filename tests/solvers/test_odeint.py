"""The entry: times, flows, interpolation, statistics, step control, isometries."""

import pytest
import torch
import torchdiffeq

from hgde.geometry import Euclidean, PoincareBall, ball
from hgde.solvers import SOLVERS, Flow, RungeKutta, odeint
from hgde.solvers.registry import resolve
from hgde.solvers.tableau import RK4
from problems import DrawnField, Spiral, swing

#: Methods torchdiffeq has too, with the lengths of history to compare; twelve is torchdiffeq's default.
SHARED = [(name, 5) for name in ("euler", "midpoint", "heun", "rk4", "bosh3", "dopri5")]
SHARED += [(name, max_order) for name in ("explicit_adams", "implicit_adams") for max_order in (5, 8, 12)]
#: torchdiffeq's names where they differ.
THEIR_NAME = {"heun": "heun2"}


@pytest.fixture
def x0():
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.parametrize(("method", "max_order"), SHARED)
def test_flat_space_gives_torchdiffeq(method, max_order, x0):
    # Small steps: a history of eleven is stable only below 0.003 over the Lipschitz constant, in either library.
    t = torch.linspace(0.0, 0.3, 151, dtype=torch.float64)
    adams = "adams" in method
    ours = {"max_order": max_order} if adams else {}
    theirs = dict(ours)
    if resolve(method).adaptive:
        # The same grid for both: their step pinned from below and above, ours fixed.
        h = float(t[1] - t[0])
        theirs = {"first_step": h, "min_step": h, "max_step": h}
        ours = {"step": h}
    if method == "implicit_adams":
        ours |= {"rtol": 1e-13, "atol": 1e-14}
    expected = torchdiffeq.odeint(
        swing, x0, t, method=THEIR_NAME.get(method, method), rtol=1e-13, atol=1e-14, options=theirs
    )
    solution = odeint(swing, x0, t, manifold=Euclidean(), method=method, **ours)
    assert solution.states.shape == expected.shape
    assert float((solution.states - expected).abs().max()) < 1e-10


@pytest.mark.parametrize("method", SOLVERS)
def test_isometries_move_the_answer(method):
    """Translate and turn centre, start and field: the answer is translated and turned."""
    manifold = PoincareBall(1.0)
    field = DrawnField(manifold)
    g = torch.Generator().manual_seed(0)
    # Not far out: there the paper's schemes, which follow the flow for a whole unit of time, magnify rounding.
    start = manifold.random(5, 2, scale=0.4, generator=g, dtype=torch.float64)
    a = torch.tensor([0.35, -0.2], dtype=torch.float64)
    angle = torch.tensor(0.8, dtype=torch.float64)
    turn = torch.stack([torch.cos(angle), -torch.sin(angle), torch.sin(angle), torch.cos(angle)]).view(2, 2)

    def move(x):
        return ball.mobius_add(a.expand_as(x), x @ turn.T, 1.0)

    def back(x):
        return ball.mobius_add(-a.expand_as(x), x, 1.0) @ turn

    def moved_field(t, y):
        x = back(y)
        return torch.func.jvp(move, (x,), (field(t, x),))[1]

    with torch.no_grad():
        here = odeint(field, start, (0.0, 0.4, 1.0), manifold=manifold, method=method, step=0.125).states
        there = odeint(moved_field, move(start), (0.0, 0.4, 1.0), manifold=manifold, method=method, step=0.125).states
    assert torch.allclose(there, move(here), atol=1e-12)


def test_interpolation_divides_the_geodesic_in_proportion():
    """Proposition 1 of the paper."""
    manifold = PoincareBall(0.6)
    field = DrawnField(manifold)
    start = manifold.random(6, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        for method in ("heuler", "hrk4", "ham"):
            solution = odeint(field, start, (0.0, 0.15, 0.5, 1.0), manifold=manifold, method=method, step=0.5)
            whole = manifold.dist(start, solution.trajectory[2])
            part = manifold.dist(start, solution.trajectory[1])
            rest = manifold.dist(solution.trajectory[1], solution.trajectory[2])
            assert torch.allclose(part / whole, torch.full_like(part, 0.3), rtol=1e-10)
            assert torch.allclose(part + rest, whole, rtol=1e-12)


@pytest.mark.parametrize("method", SOLVERS)
def test_flow_and_field_are_the_same_question(method):
    manifold = PoincareBall(1.0)
    field = DrawnField(manifold)
    start = manifold.random(3, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    flow = Flow(lambda t, x: manifold.expmap(x, field(t, x)))
    with torch.no_grad():
        a = odeint(field, start, (0.0, 1.0), manifold=manifold, method=method, step=0.25).final
        b = odeint(flow, start, (0.0, 1.0), manifold=manifold, method=method, step=0.25).final
    assert torch.allclose(a, b, atol=1e-12)


def test_last_step_is_cut_to_end_at_the_last_time():
    seen = []

    def field(t, x):
        seen.append(float(t))
        return torch.ones_like(x)

    solution = odeint(field, torch.zeros(1, 2, dtype=torch.float64), (0.0, 1.0), manifold=Euclidean(), step=0.3)
    assert torch.allclose(solution.final, torch.ones(1, 2, dtype=torch.float64), atol=1e-15)
    assert max(seen) == 1.0
    assert solution.statistics.accepted == 4


@pytest.mark.parametrize("method", SOLVERS)
def test_backwards_in_time_returns_to_the_method_s_order(method):
    problem = Spiral(PoincareBall(1.0), 2, points=6)
    steps = 64 if method.endswith("adams") else 32  # their errors have larger factors
    options = {"manifold": problem.manifold, "method": method, "step": 1 / steps}
    with torch.no_grad():
        there = odeint(problem.field, problem.start, (0.0, 1.0), **options).final
        back = odeint(problem.field, there, (1.0, 0.5, 0.0), **options)
    error = float(problem.manifold.dist(back.final, problem.start).max())
    assert error < 40.0 * (1 / 32) ** resolve(method).order
    half_way = float(problem.manifold.dist(back.trajectory[1], problem.exact(0.5)).max())
    assert half_way < 40.0 * (1 / 32) ** resolve(method).order


@pytest.mark.parametrize("method", SOLVERS)
def test_states_at_steps_are_the_steps(method):
    """Asking for more times between must not move the solution."""
    problem = Spiral(PoincareBall(1.0), 2, points=3)
    options = {"manifold": problem.manifold, "method": method, "step": 0.125}
    with torch.no_grad():
        plain = odeint(problem.field, problem.start, (0.0, 1.0), **options)
        dense = odeint(problem.field, problem.start, (0.0, 0.06, 0.125, 0.7, 0.75, 1.0), **options)
    assert torch.equal(plain.final, dense.final)
    assert len(dense.trajectory) == 6
    assert dense.states.shape == (6, 3, 2)


def test_statistics_count_what_happened():
    problem = Spiral(PoincareBall(1.0), 2, points=3)
    solution = odeint(problem.field, problem.start, (0.0, 1.0), manifold=problem.manifold, method="rk4", step=0.1)
    assert solution.statistics.as_dict() == {
        "evaluations": 40,
        "accepted": 10,
        "rejected": 0,
        "corrections": 0,
        "projected": 0,
    }
    assert solution.order == 4


def test_points_projected_are_counted():
    manifold = PoincareBall(1.0)
    start = torch.tensor([[0.1, 0.0], [0.9, 0.0]])
    solution = odeint(lambda t, x: 100.0 * x, start, (0.0, 1.0), manifold=manifold, method="euler")
    assert solution.statistics.projected == 2


def test_method_objects_work_like_names():
    problem = Spiral(Euclidean(), 2, points=3)
    options = {"manifold": problem.manifold, "step": 0.25}
    by_name = odeint(problem.field, problem.start, (0.0, 1.0), method="rk4", **options)
    by_object = odeint(problem.field, problem.start, (0.0, 1.0), method=RungeKutta(RK4), **options)
    assert torch.equal(by_name.final, by_object.final)


@pytest.mark.parametrize("method", SOLVERS)
def test_float32_and_float64_agree(method):
    problem = Spiral(PoincareBall(1.0), 2, points=5)
    options = {"manifold": problem.manifold, "method": method, "step": 0.1}
    with torch.no_grad():
        double = odeint(problem.field, problem.start, (0.0, 1.0), **options).final
        problem.centre, problem.frame = problem.centre.float(), problem.frame.float()
        problem.w0, problem.spin = problem.w0.float(), problem.spin.float()
        single = odeint(problem.field, problem.start, (0.0, 1.0), **options).final
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), double, atol=2e-5)


@pytest.mark.parametrize(("dtype", "budget"), [(torch.float32, 1e-4), (torch.float64, 1e-9)])
def test_correctors_are_iterated_to_a_few_digits_above_rounding(dtype, budget):
    """Without tolerances of one's own; once for every step would be off by far more."""
    x0 = torch.tensor([[0.3, -0.2]], dtype=dtype)
    ball = PoincareBall(1.0)
    given = {"manifold": ball, "method": "implicit_adams", "step": 0.5}

    def field(t, x):
        return -1.5 * x + 0.2 * x.flip(-1)

    usual = odeint(field, x0, [0.0, 3.0], **given).states[-1]
    tight = odeint(field, x0.double(), [0.0, 3.0], rtol=1e-13, atol=1e-13, **given).states[-1]
    torch.testing.assert_close(usual.double(), tight, rtol=0, atol=budget)
