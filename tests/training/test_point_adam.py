"""The short way of Riemannian Adam against geoopt's own."""

import geoopt
import pytest
import torch

from hgde.geometry import PoincareBall, manifold_parameter
from hgde.training.point_adam import PointAdam


def trained(kind, dtype, c, lr, **options):
    """A point pulled out of the ball's middle, far enough with a large step to be projected back."""
    torch.manual_seed(0)
    start = 0.1 * torch.randn(5, dtype=dtype) / c**0.5
    target = 2 * torch.randn(5, dtype=dtype) / c**0.5
    point = manifold_parameter(start, PoincareBall(c))
    optimiser = kind([point], lr=lr, **options)
    for n in range(30):
        optimiser.zero_grad()
        (point - target * (1 if n < 15 else -1)).square().sum().backward()
        optimiser.step()
    return point.detach(), optimiser.state[point]


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"amsgrad": True}, {"stabilize": 5}])
@pytest.mark.parametrize(("dtype", "budget"), [(torch.float64, 1e-11), (torch.float32, 2e-4)])
@pytest.mark.parametrize("c", [0.3, 1.0])
@pytest.mark.parametrize("lr", [0.01, 0.3])
def test_steps_equal_geoopt(lr, c, dtype, budget, options):
    ours, our_state = trained(PointAdam, dtype, c, lr, **options)
    theirs, their_state = trained(geoopt.optim.RiemannianAdam, dtype, c, lr, **options)
    torch.testing.assert_close(ours, theirs, rtol=budget, atol=budget)
    assert our_state.keys() == their_state.keys()
    assert our_state["step"] == their_state["step"] == 30
    for name in ("exp_avg", "exp_avg_sq"):
        torch.testing.assert_close(our_state[name], their_state[name], rtol=budget, atol=budget)


def test_points_without_a_gradient_and_matrices_of_points():
    ball = PoincareBall(1.0)
    idle, rows = manifold_parameter(torch.zeros(3), ball), manifold_parameter(torch.zeros(2, 3), ball)
    optimiser = PointAdam([{"params": [idle]}, {"params": [rows]}], lr=0.1)
    rows.sum().backward()
    optimiser.step()
    assert not idle.any()
    assert (rows < 0).all()


@pytest.mark.parametrize(("dtype", "margin"), [(torch.float32, 4e-3), (torch.float64, 1e-5)])
@pytest.mark.parametrize("c", [0.3, 1.0, 4.0])
def test_points_that_leave_the_ball_are_projected_as_by_geoopt(c, dtype, margin):
    """One step far beyond the boundary, and one back: point and average follow geoopt's."""
    results = []
    for kind in (PointAdam, geoopt.optim.RiemannianAdam):
        point = manifold_parameter(torch.tensor([0.3, -0.4, 0.0], dtype=dtype) / c**0.5, PoincareBall(c))
        optimiser = kind([point], lr=3.0 / c**0.5)
        for sign in (1.0, 1.0, -1.0):
            point.grad = sign * torch.tensor([-1.0, 2.0, 0.5], dtype=dtype)
            optimiser.step()
            results.append((point.detach().clone(), optimiser.state[point]["exp_avg"].clone()))
    assert float(results[0][0].norm()) == pytest.approx((1 - margin) / c**0.5, rel=1e-6)
    for (ours, our_mean), (theirs, their_mean) in zip(results[:3], results[3:], strict=True):
        budget = 1e-3 if dtype == torch.float32 else 1e-8
        torch.testing.assert_close(ours, theirs, rtol=budget, atol=budget)
        torch.testing.assert_close(our_mean, their_mean, rtol=budget, atol=budget)


def test_single_points_go_the_short_way_and_others_do_not(monkeypatch):
    def long_way(*_):
        raise AssertionError("geoopt's step")

    monkeypatch.setattr(geoopt.optim.RiemannianAdam, "step", long_way)
    ball = PoincareBall(1.0)
    point, idle = (manifold_parameter(torch.zeros(3), ball) for _ in range(2))
    point.grad = torch.ones(3)
    PointAdam([point, idle], lr=0.1).step()
    assert (point < 0).all()
    rows = manifold_parameter(torch.zeros(2, 3), ball)
    for made in (
        PointAdam([rows], lr=0.1),
        PointAdam([torch.nn.Parameter(torch.zeros(3))], lr=0.1),
        PointAdam([point], lr=0.1, amsgrad=True),
        PointAdam([point], lr=0.1, weight_decay=0.1),
        PointAdam([point], lr=0.1, stabilize=5),
        PointAdam([geoopt.ManifoldParameter(torch.zeros(3), geoopt.PoincareBallExact())], lr=0.1),
        PointAdam([geoopt.ManifoldParameter(torch.zeros(6)[::2], geoopt.PoincareBall())], lr=0.1),
    ):
        with pytest.raises(AssertionError, match="geoopt's step"):
            made.step()
