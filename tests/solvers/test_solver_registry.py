"""Methods by name, from settings, and of one's own in a few lines."""

from dataclasses import dataclass

import pytest
import torch

from hgde.geometry import Euclidean
from hgde.registry import REGISTRIES
from hgde.sections import SettingsError, choose, from_dict, leaves, refuse_inert, setting
from hgde.solvers import SOLVERS, Method, RungeKutta, Step, Tableau, configured, odeint
from hgde.solvers.orders import Spiral, measure_order
from hgde.solvers.registry import resolve
from hgde.solvers.tableau import RK4
from problems import swing


@pytest.mark.parametrize("name", SOLVERS)
def test_every_method_runs_from_its_settings(name):
    method, call = configured(choose(SOLVERS, name))
    assert method.name == name
    assert method == resolve(name)
    assert call == ({"rtol": 1e-3, "atol": 1e-4} if method.adaptive else {"step": 1.0})
    solution = odeint(swing, torch.zeros(2, 3), (0.0, 2.0), method=method, **call)
    assert solution.succeeded
    assert REGISTRIES["solvers"] is SOLVERS


def test_a_method_s_own_options_are_settings():
    chosen = choose(SOLVERS, "ham", {"step": 0.5, "s_min": 2, "s_max": 3, "tolerance": 1e-4})
    method, call = configured(chosen)
    assert (method.s_min, method.s_max, method.tolerance, call) == (2, 3, 1e-4, {"step": 0.5})
    assert chosen.to_dict() == {
        "name": "ham", "step": 0.5, "s_min": 2, "s_max": 3, "tolerance": 1e-4, "max_iterations": 50
    }  # fmt: skip
    method, _ = configured(choose(SOLVERS, "implicit_adams", {"max_order": 4, "tolerance": 1e-8}))
    assert (method.max_order, method.tolerance) == (4, 1e-8)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("ham", {"s_min": 4, "s_max": 2}, "s_min = 4, s_max = 2"),
        ("ham", {"iterations": 0}, "iterations must be at least 1"),
        ("explicit_adams", {"max_order": 13}, "max_order must be at most 12"),
        ("rk4", {"step": 0.0}, "step must be greater than 0"),
        ("rk4", {"rtol": 1e-3}, "the solver rk4 has no such setting"),
        ("dopri5", {"step": 0.5}, "the solver dopri5 has no such setting"),
        ("rk5", {}, "did you mean 'rk4'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, options, words):
    with pytest.raises(SettingsError, match=words):
        choose(SOLVERS, name, options)


def test_settings_that_cannot_act_are_refused():
    kind = SOLVERS.get("ham").Settings
    with pytest.raises(SettingsError, match="max_iterations has no effect"):
        from_dict(kind, {"max_iterations": 5})
    with pytest.raises(SettingsError, match="iterations has no effect"):
        from_dict(kind, {"iterations": 5, "tolerance": 1e-3})
    refuse_inert(from_dict(kind, {"iterations": 5}), {"iterations": 5})
    assert {leaf.flag for leaf in leaves(kind)} == {
        "step", "s_min", "s_max", "corrections", "corrector_tolerance", "corrector_limit"
    }  # fmt: skip


RALSTON = Tableau("ralston", 2, (0.0, 2 / 3), ((), (2 / 3,)), (1 / 4, 3 / 4))


@pytest.fixture
def own_methods():
    """Two third-party methods, as one file would register them."""

    @dataclass(frozen=True)
    class Leap(Method):
        """Euler's method with its memory started by itself."""

        damping: float = setting(1.0, "Factor on the slope.", above=0.0)

        @property
        def name(self):
            return "leap"

        @property
        def order(self):
            return 1

        def start(self, dynamics, manifold, t0, x):
            return {"steps": 0}

        def step(self, dynamics, manifold, t0, h, x, memory, tolerances):
            slope = self.damping * dynamics.slope(t0, x)
            return Step(manifold.expmap(x, h * slope), {"steps": memory["steps"] + 1})

    @dataclass(frozen=True)
    class Ralston(RungeKutta):
        tableau: Tableau = RALSTON

    SOLVERS.add("leap", Leap)
    SOLVERS.add("ralston", Ralston)
    yield Leap, Ralston
    for name in ("leap", "ralston"):
        del SOLVERS._entries[name]


def test_a_method_of_one_s_own(own_methods):
    assert {"leap", "ralston"} <= set(SOLVERS.names())
    method, call = configured(choose(SOLVERS, "leap", {"step": 0.25, "damping": 0.5}))
    x0 = torch.ones(2, dtype=torch.float64)
    half = odeint(lambda t, x: -x, x0, (0.0, 1.0), method=method, **call).final
    assert torch.allclose(half, torch.full_like(x0, (1 - 0.125) ** 4))
    assert torch.equal(odeint(lambda t, x: -x, x0, (0.0, 1.0), method="leap", damping=0.5, **call).final, half)
    measured = measure_order("ralston", Spiral(Euclidean(), 2))
    assert measured.agrees


def test_objects_and_classes_work_like_names():
    problem = Spiral(Euclidean(), 2, points=3)
    options = {"manifold": problem.manifold, "step": 0.25}
    by_name = odeint(problem.field, problem.start, (0.0, 1.0), method="rk4", **options)
    for method in (RungeKutta(RK4), SOLVERS.get("rk4"), "hgde.solvers.runge_kutta:ThreeEighths"):
        other = odeint(problem.field, problem.start, (0.0, 1.0), method=method, **options)
        assert torch.equal(by_name.final, other.final)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_method_starts_its_own_memory(name):
    """Nobody hands it a slope: one step from its own start is the first step of a solve."""
    from hgde.solvers.dynamics import Dynamics
    from hgde.solvers.method import Tolerances

    problem = Spiral(Euclidean(), 2, points=3)
    method = resolve(name)
    dynamics = Dynamics(problem.field, problem.manifold)
    memory = method.start(dynamics, problem.manifold, 0.0, problem.start)
    step = method.step(dynamics, problem.manifold, 0.0, 0.1, problem.start, memory, Tolerances(1e-10, 1e-12))
    solved = odeint(problem.field, problem.start, (0.0, 0.1), manifold=problem.manifold, method=name, step=0.1)
    assert torch.equal(step.state, solved.final)
    assert dynamics.evaluations == solved.statistics.evaluations
