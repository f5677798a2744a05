"""Solves that end early: by an event, or by a failure that is returned."""

import math

import pytest
import torch

from hgde.geometry import Lorentz, PoincareBall
from hgde.solvers import SOLVERS, InputError, Status, odeint
from hgde.solvers.registry import resolve


def decay(t, x):
    return -x


def steps(method, size=0.02):
    return {"rtol": 1e-6} if resolve(method).adaptive else {"step": size}


@pytest.mark.parametrize("gradient", ["backprop", "recompute"])
@pytest.mark.parametrize("method", SOLVERS)
def test_an_event_is_located(method, gradient):
    """exp(-t) meets 1/2 at log 2; the methods differ by their own error only."""
    x0 = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
    solution = odeint(
        decay, x0, (0.0, 0.5, 2.0), method=method, events=lambda t, x: x.sum() - 0.5, gradient=gradient, **steps(method)
    )
    assert solution.status is Status.EVENT
    assert solution.succeeded
    assert solution.event == 0
    assert solution.times[:2] == (0.0, 0.5)
    assert len(solution.times) == len(solution.trajectory) == 3
    assert float(solution.final.detach()) == pytest.approx(0.5, abs=1e-9)
    accuracy = 1e-6 if method in ("dopri5", "bosh3", "rk4", "explicit_adams", "implicit_adams") else 2e-2
    assert solution.times[-1] == pytest.approx(math.log(2.0), abs=accuracy)
    (slope,) = torch.autograd.grad(solution.final.sum(), x0)
    assert float(slope) == pytest.approx(0.5, abs=0.02)


def test_the_first_event_in_a_step_wins():
    events = [lambda t, x: x.sum() - 0.45, lambda t, x: x.sum() - 0.6, lambda t, x: x.sum() + 1.0]
    solution = odeint(decay, torch.ones(1, dtype=torch.float64), (0.0, 5.0), step=1.0, events=events)
    assert solution.event == 1
    assert float(solution.final) == pytest.approx(0.6, abs=1e-12)


def test_events_see_time_and_run_backwards():
    solution = odeint(
        decay, torch.ones(2, dtype=torch.float64), (1.0, -1.0), method="dopri5", rtol=1e-8, events=lambda t, x: t - 0.25
    )
    assert solution.times == pytest.approx((1.0, 0.25), abs=1e-12)
    assert torch.allclose(solution.final, torch.full((2,), math.exp(0.75), dtype=torch.float64), rtol=1e-6)


def test_an_event_at_the_start_waits_for_the_next_change_of_sign():
    solution = odeint(
        lambda t, x: torch.cos(t) * torch.ones_like(x), torch.zeros(1, dtype=torch.float64), (0.0, 6.0),
        method="dopri5", rtol=1e-9, events=lambda t, x: x.sum(),
    )  # fmt: skip
    assert solution.times[-1] == pytest.approx(math.pi, abs=1e-6)


def test_an_event_that_never_comes_changes_nothing():
    x0 = torch.ones(2, dtype=torch.float64)
    plain = odeint(decay, x0, (0.0, 1.0), step=0.1)
    watched = odeint(decay, x0, (0.0, 1.0), step=0.1, events=lambda t, x: x.sum() + 1.0)
    assert watched.status is Status.FINISHED
    assert watched.event is None
    assert torch.equal(plain.final, watched.final)
    assert plain.statistics.evaluations == watched.statistics.evaluations


@pytest.mark.parametrize("space", [PoincareBall(1.0), Lorentz(1.0)], ids=["ball", "lorentz"])
def test_events_on_curved_space(space):
    """Along a geodesic at unit speed, a distance is met when that much time has passed."""
    v = torch.tensor([[0.3, 0.4]], dtype=torch.float64)
    x0 = space.expmap0(v)
    far = space.expmap0(20.0 * v)

    def outwards(t, x):
        v = space.logmap(x, far)
        return v / space.norm(x, v).unsqueeze(-1)

    solution = odeint(
        outwards, x0, (0.0, 3.0), manifold=space, method="dopri5", rtol=1e-8,
        events=lambda t, x: space.dist0(x).max() - 2.5,
    )  # fmt: skip
    assert solution.times[-1] == pytest.approx(1.5, abs=1e-6)
    assert float(space.dist0(solution.final)) == pytest.approx(2.5, abs=1e-9)


def test_an_event_gives_one_number():
    with pytest.raises(InputError, match=r"one number, got a tensor of shape \(2,\)"):
        odeint(decay, torch.ones(2), (0.0, 1.0), step=0.5, events=lambda t, x: x)


def blow_up(t, x):
    return x * x


def test_a_failure_can_be_returned():
    """x' = x^2 from 1 blows up at t = 1; what was reached before is kept."""
    x0 = torch.ones(1, 1, dtype=torch.float64)
    solution = odeint(
        blow_up, x0, (0.0, 0.5, 0.9, 2.0), method="dopri5", rtol=1e-8, atol=1e-8, on_failure="return"
    )  # fmt: skip
    assert solution.status is Status.UNDERFLOW
    assert not solution.succeeded
    assert "looser tolerances" in solution.message
    assert solution.times[:3] == (0.0, 0.5, 0.9)
    assert solution.times[-1] == pytest.approx(1.0, abs=1e-3)
    assert float(solution.trajectory[1]) == pytest.approx(2.0, rel=1e-6)
    assert len(solution.trajectory) == 4


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"method": "rk4", "step": 1e-3, "max_steps": 10}, Status.MAX_STEPS),
        ({"method": "dopri5", "rtol": 1e-9, "max_steps": 5}, Status.MAX_STEPS),
        ({"method": "implicit_adams", "step": 0.25, "field": lambda t, x: -60.0 * x}, Status.CORRECTOR),
        ({"method": "rk4", "step": 0.25, "field": lambda t, x: x * math.nan if t > 0.6 else -x}, Status.NOT_FINITE),
        ({"method": "dopri5", "rtol": 1e-3, "field": lambda t, x: x * math.nan}, Status.NOT_FINITE),
    ],
    ids=["fixed steps", "adaptive steps", "corrector", "nan", "nan at once"],
)
def test_every_failure_has_a_status(change, status):
    options = {"field": decay, "x0": torch.full((1, 2), 0.3, dtype=torch.float64), "t": (0.0, 0.5, 4.0)} | change
    solution = odeint(**options, on_failure="return")
    assert solution.status is status
    assert not solution.succeeded
    assert solution.message
    assert torch.isfinite(solution.final).all()
    assert solution.times[-1] < 4.0


def test_on_failure_is_one_of_two():
    with pytest.raises(InputError, match="'raise' or 'return', got 'warn'"):
        odeint(decay, torch.ones(2), (0.0, 1.0), step=0.5, on_failure="warn")
