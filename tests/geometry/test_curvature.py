"""Curvature as a module: the number given, trained, shared, kept in range."""

import math

import pytest
import torch

from hgde.geometry import Curvature, PoincareBall
from hgde.geometry.curvature import LARGEST, SMALLEST


@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("value", [1e-9, 0.04, 0.3, 1.0, 1.31, 7.0, 1e6])
def test_curvature_is_the_number_given(value, learnable):
    manifold = PoincareBall(value, learnable)
    assert manifold.c.item() == value
    assert len(list(manifold.parameters())) == int(learnable)
    assert not manifold.curvature.at_limit


def test_curvature_stays_positive_under_training():
    manifold = PoincareBall(1.0, learnable=True)
    optimizer = torch.optim.SGD(manifold.parameters(), lr=5.0)
    for _ in range(50):
        optimizer.zero_grad()
        manifold.c.backward()
        optimizer.step()
    assert 0.0 < manifold.c.item() < 0.2


@pytest.mark.parametrize(("push", "limit"), [(-1e3, SMALLEST), (1e3, LARGEST)])
def test_curvature_stops_at_its_limits(push, limit):
    curvature = Curvature(0.5, learnable=True)
    with torch.no_grad():
        curvature.log_scale.fill_(push)
    value = curvature()
    assert value.item() == pytest.approx(limit, rel=1e-12)
    assert curvature.at_limit
    (gradient,) = torch.autograd.grad(value, curvature.log_scale)
    assert gradient.item() == 0.0
    with torch.no_grad():
        curvature.log_scale.fill_(0.1)
    assert not curvature.at_limit


def test_a_number_beyond_the_limits_widens_the_range_to_itself():
    curvature = Curvature(1e-9, learnable=True)
    with torch.no_grad():
        curvature.log_scale.fill_(-5.0)
    assert curvature().item() == pytest.approx(1e-9)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_curvature_refuses_what_is_not_positive(value):
    with pytest.raises(ValueError, match="positive"):
        Curvature(value)


def test_curvature_is_shared_and_saved():
    curvature = Curvature(0.5, learnable=True)
    one, two = PoincareBall(curvature), PoincareBall(curvature)
    with torch.no_grad():
        curvature.log_scale.fill_(0.3)
    assert torch.equal(one.c, two.c)
    fresh = PoincareBall(2.0, learnable=True)
    fresh.load_state_dict(one.state_dict())
    assert torch.equal(fresh.c, one.c)


def test_float32_points_stay_float32_under_float64_curvature():
    manifold = PoincareBall(0.3, learnable=True)
    x = torch.tensor([0.1, 0.2])
    assert manifold.expmap(x, x).dtype == torch.float32
    assert manifold.dist(x, -x).dtype == torch.float32


def test_the_limits_are_the_same_where_they_are_worked_out_as_tensors(monkeypatch):
    curvature = Curvature(2.0, learnable=True)
    numbers = curvature._bounds()
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert [float(bound) for bound in curvature._bounds()] == pytest.approx(numbers, rel=1e-12)
    curvature.log_scale.data.fill_(0.5)
    assert curvature().item() == pytest.approx(2.0 * math.exp(0.5))
