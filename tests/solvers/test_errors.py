"""Bad input gets words: what was expected, what came, what to try."""

import math

import pytest
import torch

from hgde.geometry import Euclidean, PoincareBall
from hgde.solvers import HAM, SOLVERS, Flow, InputError, SolverError, Status, odeint

BALL = PoincareBall(1.0)
X0 = torch.tensor([[0.1, 0.2], [0.3, -0.1]], dtype=torch.float64)


def decay(t, x):
    return -x


def ask(field=decay, x0=X0, t=(0.0, 1.0), **options):
    return odeint(field, x0, t, **({"manifold": BALL, "step": 0.25} | options))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x0": torch.tensor([[0.1, 0.2], [1.2, 0.0]])}, r"1 of 2 beyond.*project"),
        ({"x0": torch.tensor([[0.1, math.nan]])}, r"1 of 2 that are NaN"),
        ({"x0": torch.tensor([[1, 0]])}, r"floating point.*int64"),
        ({"x0": torch.zeros(2, 2, dtype=torch.float16)}, r"float32 or float64.*float16"),
        ({"x0": [[0.1, 0.2]]}, r"tuple of such, got list"),
        ({"manifold": "ball"}, r"PoincareBall\(\).*got str"),
        ({"t": (0.0, 1.0, 0.5)}, r"1 followed by 0.5 at position 1"),
        ({"t": (0.0, 0.0)}, r"strictly increasing"),
        ({"t": (0.0,)}, r"at least two times"),
        ({"t": (0.0, math.inf)}, r"finite times"),
        ({"t": torch.zeros(2, 2)}, r"one-dimensional.*\(2, 2\)"),
        ({"method": "rk5"}, r"unknown solver 'rk5'; did you mean 'rk4'\?"),
        ({"method": "adams"}, r"did you mean '(ex|im)plicit_adams'"),
        ({"method": 4}, r"solver or its name, got int"),
        ({"method": "ham", "s_mim": 3}, r"no option 's_mim'; it takes s_min"),
        ({"method": "rk4", "max_order": 3}, r"rk4 has no option 'max_order'; it takes no options"),
        ({"step": -0.1}, r"positive step, got -0.1"),
        ({"step": 0.0}, r"positive step"),
        ({"gradient": "adjoint"}, r"'backprop' or 'recompute', got 'adjoint'"),
        ({"method": "dopri5", "step": None}, r"no good default: give rtol"),
        ({"method": "rk4", "step": None, "rtol": 1e-3}, r"no error estimate.*dopri5"),
        ({"method": "rk4", "rtol": 1e-3}, r"no error estimate.*dopri5"),
        ({"method": "dopri5", "rtol": 1e-3}, r"fixed length.*one or the other"),
        ({"method": "ham", "rtol": 1e-3}, r"ham follows the method's own options.*option tolerance"),
        ({"method": "implicit_adams", "tolerance": 1e-6, "atol": 1e-3}, r"option tolerance"),
        ({"method": "rk4", "first_step": 0.1}, r"first_step and controller have nothing to act on"),
        ({"method": "dopri5", "step": None, "rtol": 1e-3, "first_step": -0.1}, r"positive first_step, got -0.1"),
        ({"method": "dopri5", "step": None, "rtol": -1.0}, r"rtol to be a number >= 0, got -1"),
        ({"method": "dopri5", "step": None, "rtol": 0.0}, r"tolerance of exactly 0"),
        ({"field": lambda t, x: x[0]}, r"shape \(2, 2\).*got shape \(2,\)"),
        ({"field": Flow(lambda t, x: x.float())}, r"a point of shape.*float64.*float32"),
        ({"field": lambda t, x: 1.0}, r"return a tensor, got float"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:24],
)
def test_bad_input_is_explained(change, words):
    with pytest.raises(InputError, match=words):
        ask(**change)


@pytest.mark.parametrize("method", ["explicit_adams", "implicit_adams"])
def test_adams_refuses_orders_it_has_not(method):
    with pytest.raises(ValueError, match="between 4 and 12, got 13"):
        ask(method=method, max_order=13)


def test_ham_refuses_an_empty_range_of_orders():
    with pytest.raises(ValueError, match="s_min = 5, s_max = 2"):
        HAM(s_min=5, s_max=2)


@pytest.mark.parametrize("method", SOLVERS)
def test_a_field_that_turns_nan_is_reported(method):
    def field(t, x):
        return x * math.nan if float(t) > 0.4 else -x

    # The corrector never settles on NaN, and the others end with it.
    with pytest.raises(SolverError, match=r"NaN|corrector"):
        ask(field, method=method)


@pytest.mark.parametrize("method", ["implicit_adams", "ham"])
def test_a_corrector_that_does_not_converge_is_reported(method):
    options = {"tolerance": 1e-10} if method == "ham" else {}
    with pytest.raises(SolverError, match=r"settle within 50 iterations.*smaller step") as caught:
        odeint(
            lambda t, x: -60.0 * x, torch.full((2, 2), 0.1, dtype=torch.float64), (0.0, 4.0), manifold=Euclidean(),
            method=method, step=0.25, **options,
        )  # fmt: skip
    assert caught.value.status is Status.CORRECTOR
    assert caught.value.statistics.evaluations > 50


def test_a_step_that_underflows_is_reported():
    """x' = x^2 blows up at t = 1."""
    with pytest.raises(SolverError, match=r"at t = 1.*shrank.*looser tolerances") as caught:
        odeint(
            lambda t, x: x * x, torch.ones(1, 1, dtype=torch.float64), (0.0, 2.0), manifold=Euclidean(),
            method="dopri5", rtol=1e-8, atol=1e-8,
        )  # fmt: skip
    assert caught.value.status is Status.UNDERFLOW


def test_a_field_that_is_nan_at_once_is_reported():
    with pytest.raises(SolverError, match=r"initial state.*NaN"):
        ask(lambda t, x: x * math.nan, method="dopri5", step=None, rtol=1e-3)


def test_running_out_of_steps_is_reported():
    with pytest.raises(SolverError, match=r"needs 1000 steps, max_steps is 100"):
        ask(step=1e-3, max_steps=100)
