"""One suite over every manifold, curvature, and both ways to geoopt."""

import copy
import pickle

import geoopt
import pytest
import torch

from hgde.geometry import Curvature, Euclidean, GeooptManifold, PoincareBall, manifold_parameter, to_geoopt
from spaces import SPACES


@pytest.fixture(params=SPACES)
def space(request):
    return SPACES[request.param]


def sample(space, seed=0, scale=0.5):
    g = torch.Generator().manual_seed(seed)
    manifold = space.make()
    x, y, z = (manifold.random(6, space.width, scale=scale, generator=g, dtype=torch.float64) for _ in range(3))
    return manifold, x.detach(), y.detach(), z.detach()


def test_random_points_are_points(space):
    manifold, x, *_ = sample(space)
    assert x.shape == (6, space.width)
    assert manifold.problems(x) == []
    assert torch.allclose(manifold.project(x), x, atol=1e-12)
    assert manifold.problems(torch.full_like(x, float("nan")))
    assert manifold.problems(x.long())


def test_maps_are_consistent(space):
    manifold, x, y, z = sample(space)
    v, w = manifold.logmap(x, y), manifold.logmap(x, z)
    assert torch.allclose(manifold.expmap(x, v), y, atol=1e-9)
    assert torch.allclose(manifold.norm(x, v), manifold.dist(x, y), atol=1e-7)
    there = manifold.transport(x, y, w)
    assert torch.allclose(manifold.inner(y, there, there), manifold.inner(x, w, w), atol=1e-9)
    assert torch.allclose(manifold.transport(y, x, there), w, atol=1e-9)
    assert torch.allclose(manifold.geodesic(x, y, 1.0), y, atol=1e-9)


def test_differential_is_the_derivative_and_inverts(space):
    manifold, x, y, z = sample(space)
    assert manifold.has_dexp
    assert manifold.max_order is None
    v, w = manifold.logmap(x, y), manifold.logmap(x, z)
    step = 1e-5
    numeric = (manifold.expmap(x, v + step * w) - manifold.expmap(x, v - step * w)) / (2 * step)
    assert torch.allclose(manifold.dexp(x, v, w), numeric, atol=1e-7)
    assert torch.allclose(manifold.dexp_inv(x, v, manifold.dexp(x, v, w)), w, atol=1e-7)


def test_transport_alone_declares_its_order():
    manifold = GeooptManifold(geoopt.Sphere(), differential="transport")
    assert not manifold.has_dexp
    assert manifold.max_order == 2


def test_closed_form_is_refused_where_there_is_none():
    with pytest.raises(ValueError, match="constant curvature"):
        GeooptManifold(geoopt.SymmetricPositiveDefinite(), differential="closed")


def test_manifolds_copy_and_pickle(space):
    manifold, x, y, _ = sample(space)
    for other in (copy.deepcopy(manifold), pickle.loads(pickle.dumps(manifold))):
        assert torch.equal(other.dist(x, y), manifold.dist(x, y))


def test_ball_names_what_is_outside():
    (words,) = PoincareBall(4.0).problems(torch.tensor([[0.1, 0.0], [0.6, 0.0]]))
    assert "1 of 2" in words
    assert "project" in words


@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("value", [0.04, 0.3, 1.0, 1.31, 7.0])
def test_curvature_is_the_number_given(value, learnable):
    manifold = PoincareBall(value, learnable)
    assert manifold.c.item() == value
    assert len(list(manifold.parameters())) == int(learnable)


def test_curvature_stays_positive_under_training():
    manifold = PoincareBall(1.0, learnable=True)
    optimizer = torch.optim.SGD(manifold.parameters(), lr=5.0)
    for _ in range(50):
        optimizer.zero_grad()
        manifold.c.backward()
        optimizer.step()
    assert 0.0 < manifold.c.item() < 0.2


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


def test_geoopt_trains_points_on_our_ball_with_our_curvature():
    manifold = PoincareBall(0.7, learnable=True)
    target = manifold.expmap0(torch.tensor([[0.5, -0.3]], dtype=torch.float64)).detach()
    point = manifold_parameter(torch.zeros(1, 2, dtype=torch.float64), manifold)
    optimizer = geoopt.optim.RiemannianAdam([point], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        manifold.dist(point, target).square().sum().backward()
        optimizer.step()
    assert float(manifold.dist(point, target).detach()) < 1e-3
    theirs = to_geoopt(manifold)
    with torch.no_grad():
        manifold.curvature.log_scale.fill_(0.4)
    assert torch.equal(theirs.c, manifold.c)
    assert isinstance(theirs, geoopt.PoincareBall)
    assert torch.allclose(theirs.dist(point, target), manifold.dist(point, target), atol=1e-10)


def test_to_geoopt_of_the_others():
    assert isinstance(to_geoopt(Euclidean()), geoopt.Euclidean)
    sphere = geoopt.Sphere()
    assert to_geoopt(GeooptManifold(sphere)) is sphere
