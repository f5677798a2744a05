"""Conversions between models of hyperbolic space."""

import pytest
import torch

from hgde.geometry import ball
from hgde.geometry.models import (
    MODELS,
    ball_to_half_space,
    ball_to_klein,
    ball_to_lorentz,
    from_model,
    to_model,
)


def points(c, width, count=40, reach=5.0):
    generator = torch.Generator().manual_seed(0)
    v = torch.randn(count, width, generator=generator, dtype=torch.float64)
    radii = torch.linspace(0, reach / 2, count, dtype=torch.float64)[:, None]
    return ball.expmap0(radii * v / v.norm(dim=1, keepdim=True) / c**0.5, c)


@pytest.mark.parametrize("c", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("model", MODELS)
def test_round_trip(model, width, c):
    x = points(c, width)
    torch.testing.assert_close(from_model(to_model(x, c, model), c, model), x, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("c", [0.3, 1.0, 2.5])
def test_distances_agree_with_each_models_own_formula(c):
    x, y = points(c, 3)[:20], points(c, 3)[20:]
    expected = ball.dist(x, y, c)
    a, b = ball_to_lorentz(x, c), ball_to_lorentz(y, c)
    inner = (a[:, 1:] * b[:, 1:]).sum(1) - a[:, 0] * b[:, 0]
    torch.testing.assert_close(torch.acosh((-c * inner).clamp_min(1)) / c**0.5, expected)
    torch.testing.assert_close(-(a[:, 0] ** 2) + (a[:, 1:] ** 2).sum(1), torch.full((20,), -1 / c, dtype=torch.float64))
    a, b = ball_to_half_space(x, c), ball_to_half_space(y, c)
    assert bool((a[:, -1] > 0).all())
    ratio = 1 + ((a - b) ** 2).sum(1) / (2 * a[:, -1] * b[:, -1])
    torch.testing.assert_close(torch.acosh(ratio) / c**0.5, expected)
    a, b = ball_to_klein(x, c), ball_to_klein(y, c)
    dots = [1 - c * (u * w).sum(1) for u, w in ((a, b), (a, a), (b, b))]
    torch.testing.assert_close(torch.acosh(dots[0] / (dots[1] * dots[2]).sqrt()) / c**0.5, expected)


def test_geodesics_are_straight_in_klein():
    x, y = points(1.0, 3)[10:20], points(1.0, 3)[25:35]
    middle = ball.expmap(x, 0.3 * ball.logmap(x, y, 1.0), 1.0)
    a, m, b = (ball_to_klein(z, 1.0) for z in (x, middle, y))
    share = (m - a).norm(dim=1) / (b - a).norm(dim=1)
    torch.testing.assert_close(m, a + share[:, None] * (b - a))


@pytest.mark.parametrize("model", MODELS)
def test_gradients_are_right(model):
    x = points(0.7, 3, count=4, reach=3.0)[1:].requires_grad_()
    c = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, c: to_model(x, c, model), (x, c))


def test_unknown_model_is_refused_with_the_list():
    with pytest.raises(ValueError, match="one of ball, lorentz, klein, half-space; got 'poincare'"):
        to_model(torch.zeros(1, 2), 1.0, "poincare")
