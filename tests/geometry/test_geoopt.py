"""Both ways to geoopt, and geoopt as the independent implementation."""

import copy
import pickle

import geoopt
import pytest
import torch

from hgde.geometry import (
    Euclidean,
    GeooptManifold,
    Lorentz,
    PoincareBall,
    Product,
    manifold_parameter,
    to_geoopt,
)


def test_transport_alone_declares_its_order():
    manifold = GeooptManifold(geoopt.Sphere(), differential="transport")
    assert not manifold.has_dexp
    assert manifold.max_order == 2


def test_closed_form_is_refused_where_there_is_none():
    with pytest.raises(ValueError, match="constant curvature"):
        GeooptManifold(geoopt.SymmetricPositiveDefinite(), differential="closed")


def test_matrices_have_no_origin_maps():
    with pytest.raises(TypeError, match="points of SymmetricPositiveDefinite have 2 axes"):
        GeooptManifold(geoopt.SymmetricPositiveDefinite()).ambient(3)


def test_the_origin_is_one_point():
    """geoopt draws the sphere's, another one for every shape asked for."""
    o = GeooptManifold(geoopt.Sphere()).origin(5, 3, dtype=torch.float64)
    assert torch.equal(o, o[:1].expand(5, 3))


@pytest.mark.parametrize("c", [0.3, 1.0, 4.0])
def test_lorentz_agrees_with_geoopt(c):
    theirs = geoopt.Lorentz(k=torch.tensor(1.0 / c, dtype=torch.float64))
    ours = Lorentz(c)
    g = torch.Generator().manual_seed(4)
    x, y, z = (ours.random(40, 5, scale=0.7, generator=g, dtype=torch.float64) for _ in range(3))
    v, w = ours.logmap(x, y), ours.logmap(x, z)
    point = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(theirs.dist(point, y).square().sum(), point)
    pairs = {
        "dist": (ours.dist(x, y), theirs.dist(x, y)),
        "dist0": (ours.dist0(x), theirs.dist0(x)),
        "expmap": (ours.expmap(x, v), theirs.expmap(x, v)),
        "logmap": (v, theirs.logmap(x, y)),
        "transport": (ours.transport(x, y, w), theirs.transp(x, y, w)),
        "inner": (ours.inner(x, v, w), theirs.inner(x, v, w)),
        "egrad2rgrad": (ours.egrad2rgrad(x, gradient), theirs.egrad2rgrad(x, gradient)),
        "project": (ours.project(x + 0.1), theirs.projx(x + 0.1)),
    }
    for name, (mine, other) in pairs.items():
        scale = max(1.0, float(other.abs().max()))
        assert float((mine - other).abs().max()) <= 1e-6 * scale, name  # theirs rounds arcosh near 1 to 1e-7


def test_geoopt_trains_points_on_our_ball_with_our_curvature():
    manifold = PoincareBall(0.7, learnable=True)
    target = manifold.expmap0(torch.tensor([[0.5, -0.3]], dtype=torch.float64)).detach()
    point = manifold_parameter(torch.zeros(1, 2, dtype=torch.float64), manifold)
    _train(point, manifold, target)
    assert float(manifold.dist(point, target).detach()) < 1e-3
    theirs = to_geoopt(manifold)
    with torch.no_grad():
        manifold.curvature.log_scale.fill_(0.4)
    assert torch.equal(theirs.c, manifold.c)
    assert isinstance(theirs, geoopt.PoincareBall)
    assert torch.allclose(theirs.dist(point, target), manifold.dist(point, target), atol=1e-10)


def _train(point, manifold, target):
    optimizer = geoopt.optim.RiemannianAdam([point], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        manifold.dist(point, target).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize(
    "manifold",
    [Lorentz(0.7, learnable=True), Euclidean(2.0), Product([Lorentz(1.0), PoincareBall(1.0)], [2, 2])],
    ids=["lorentz", "flat", "product"],
)
def test_geoopt_trains_points_of_our_other_spaces(manifold):
    g = torch.Generator().manual_seed(0)
    coordinates = manifold.ambient(4) if isinstance(manifold, Product) else manifold.ambient(3)
    target = manifold.random(2, coordinates, scale=0.5, generator=g, dtype=torch.float64)
    point = manifold_parameter(manifold.origin(2, coordinates, dtype=torch.float64).detach().clone(), manifold)
    _train(point, manifold, target)
    assert float(manifold.dist(point, target).detach().max()) < 1e-2
    assert manifold.problems(point.detach()) == []


def test_views_know_points_and_tangent_vectors():
    manifold = Lorentz(0.7)
    view = to_geoopt(manifold)
    x = manifold.random(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    u = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    v = view.proju(x, u)
    theirs = geoopt.Lorentz(k=torch.tensor(1 / 0.7, dtype=torch.float64))
    assert torch.allclose(v, theirs.proju(x, u), atol=1e-10)
    assert view.check_point_on_manifold(x)
    assert not view.check_point_on_manifold(x + 1.0)
    assert view.check_vector_on_tangent(x, v)
    assert not view.check_vector_on_tangent(x, u)
    for other in (copy.deepcopy(view), pickle.loads(pickle.dumps(view))):
        assert torch.equal(other.dist(x, x.flip(0)), view.dist(x, x.flip(0)))


def test_to_geoopt_of_the_others():
    assert isinstance(to_geoopt(Euclidean()), geoopt.Euclidean)
    sphere = geoopt.Sphere()
    assert to_geoopt(GeooptManifold(sphere)) is sphere


def test_geoopt_s_view_of_a_space_answers_by_its_maps():
    space = Product([Lorentz(0.7), Euclidean()], [2, 2])
    view = to_geoopt(space)
    g = torch.Generator().manual_seed(0)
    x, y, z = (space.random(6, 5, generator=g, dtype=torch.float64) for _ in range(3))
    u, v = space.logmap(x, y), space.logmap(x, z)
    pairs = {
        "expmap": (view.expmap(x, u), space.expmap(x, u)),
        "retr": (view.retr(x, u), space.expmap(x, u)),
        "logmap": (view.logmap(x, y), u),
        "transp": (view.transp(x, y, v), space.transport(x, y, v)),
        "inner": (view.inner(x, u, v), space.inner(x, u, v)),
        "inner with itself": (view.inner(x, u), space.inner(x, u, u)),
        "inner, axis kept": (view.inner(x, u, v, keepdim=True), space.inner(x, u, v)[:, None]),
        "dist": (view.dist(x, y), space.dist(x, y)),
        "dist, axis kept": (view.dist(x, y, keepdim=True), space.dist(x, y)[:, None]),
        "projx": (view.projx(x + 0.1), space.project(x + 0.1)),
        "proju": (view.proju(x, u + 0.1), space.tangent(x, u + 0.1)),
        "egrad2rgrad": (view.egrad2rgrad(x, u + 0.1), space.egrad2rgrad(x, u + 0.1)),
        "origin": (view.origin(6, 5, dtype=torch.float64), space.origin(6, 5, dtype=torch.float64)),
    }
    for name, (theirs, ours) in pairs.items():
        torch.testing.assert_close(theirs, ours, msg=lambda text, name=name: f"{name}: {text}")
    assert view.check_point_on_manifold(x)
    assert not view.check_point_on_manifold(x + 0.1)
    assert view.check_vector_on_tangent(x, u)
    assert not view.check_vector_on_tangent(x, u + 0.1)
