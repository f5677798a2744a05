"""The hyperboloid is the ball: equal to rounding, float32 within its budget, finite up to the limit."""

import math

import pytest
import torch
from torch import Tensor

from hgde.geometry import LIMITS, Euclidean, Lorentz, PoincareBall, count_projections

CURVATURES = (0.05, 0.3, 1.0, 4.0)


def to_lorentz(b: Tensor, c: float) -> Tensor:
    """Stereographic projection, ``x_s = 2b / (1 - c|b|^2)``; not the package's own way there."""
    space = 2.0 * b / (1.0 - c * (b * b).sum(-1, keepdim=True))
    return torch.cat([(1.0 / c + (space * space).sum(-1, keepdim=True)).sqrt(), space], dim=-1)


def carry(b: Tensor, v: Tensor, c: float) -> Tensor:
    """A tangent vector of the ball on the hyperboloid."""
    return torch.func.jvp(lambda p: to_lorentz(p, c), (b,), (v,))[1]


def pair(c: float, count: int = 50, dim: int = 4):
    g = torch.Generator().manual_seed(0)
    ball = PoincareBall(c)
    x, y, z = (ball.random(count, dim, scale=0.8 / c**0.5, generator=g, dtype=torch.float64) for _ in range(3))
    v, w = 0.2 * torch.randn(2, count, dim, generator=g, dtype=torch.float64) / c**0.5
    return ball, Lorentz(c), x, y, z, v, w


@pytest.mark.parametrize("c", CURVATURES)
def test_every_map_is_the_ball_s(c):
    ball, lorentz, x, y, z, v, w = pair(c)
    X, Y, Z = (to_lorentz(p, c) for p in (x, y, z))
    V, W = carry(x, v, c), carry(x, w, c)
    there = ball.expmap(x, v)
    pairs = {
        "expmap": (to_lorentz(there, c), lorentz.expmap(X, V)),
        "logmap": (carry(x, ball.logmap(x, y), c), lorentz.logmap(X, Y)),
        "dist": (ball.dist(x, y), lorentz.dist(X, Y)),
        "dist0": (ball.dist0(x), lorentz.dist0(X)),
        "inner": (ball.inner(x, v, w), lorentz.inner(X, V, W)),
        "norm": (ball.norm(x, v), lorentz.norm(X, V)),
        "transport": (carry(y, ball.transport(x, y, v), c), lorentz.transport(X, Y, V)),
        "transport0": (carry(x, ball.transport0(x, v), c), lorentz.transport0(X, v)),
        "expmap0": (to_lorentz(ball.expmap0(v), c), lorentz.expmap0(v)),
        "logmap0": (ball.logmap0(x), lorentz.logmap0(X)),
        "dexp": (carry(there, ball.dexp(x, v, w), c), lorentz.dexp(X, V, W)),
        "dexp_inv": (carry(x, ball.dexp_inv(x, v, ball.dexp(x, v, w)), c), W),
        "midpoint": (
            to_lorentz(ball.midpoint([x, y, z], [1.0, 0.6, 0.1]), c), lorentz.midpoint([X, Y, Z], [1.0, 0.6, 0.1])
        ),
        "midpoint, signed": (
            to_lorentz(ball.midpoint([x, y, z], [1.0, -0.6, 0.1]), c), lorentz.midpoint([X, Y, Z], [1.0, -0.6, 0.1])
        ),
    }  # fmt: skip
    for name, (theirs, ours) in pairs.items():
        scale = float(theirs.abs().max())
        assert float((theirs - ours).abs().max()) <= 2e-12 * max(scale, 1.0), name


@pytest.mark.parametrize("c", CURVATURES)
def test_gradients_are_the_ball_s(c):
    """In the points, and in the curvature, of something that uses most maps."""
    results = []
    for kind in (PoincareBall, Lorentz):
        manifold = kind(c, learnable=True)
        g = torch.Generator().manual_seed(1)
        v = (0.4 * torch.randn(2, 20, 3, generator=g, dtype=torch.float64) / c**0.5).requires_grad_()
        x, y = manifold.expmap0(v[0]), manifold.expmap0(v[1])
        step = manifold.expmap(x, 0.3 * manifold.logmap(x, y) + 0.1 * manifold.transport(y, x, manifold.logmap(y, x)))
        end = manifold.midpoint([step, x, y], [1.0, 0.6, -0.1])
        value = manifold.dist(end, y).sum() + manifold.logmap0(end).square().sum()
        results.append((value.detach(), *torch.autograd.grad(value, (v, manifold.curvature.log_scale))))
    for a, b in zip(*results, strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", [PoincareBall, Lorentz])
def test_vanishing_curvature_gives_flat_space_of_the_ball_s_scale(kind):
    g = torch.Generator().manual_seed(3)
    u, v, w = torch.randn(3, 10, 4, generator=g, dtype=torch.float64)
    curved, flat = kind(1e-10), Euclidean(scale=2.0)
    for manifold, results in ((curved, first := {}), (flat, second := {})):
        x, y, z = (manifold.expmap0(p) for p in (u, v, w))
        results["dist"] = manifold.dist(x, y)
        results["log"] = manifold.norm(x, manifold.logmap(x, y))
        results["exp"] = manifold.logmap0(manifold.expmap(x, manifold.transport0(x, w)))
        results["transport"] = manifold.inner(
            y, manifold.transport(x, y, manifold.transport0(x, w)), manifold.logmap(y, x)
        )
        results["midpoint"] = manifold.logmap0(manifold.midpoint([x, y, z], [1.0, -0.5, 0.2]))
    for name in first:
        assert torch.allclose(first[name], second[name], rtol=1e-7, atol=1e-7), name


#: Error of float32 against float64 on the same float32 inputs, in units of float32's epsilon; d is the distance from
#: the origin. A rounding of the coordinates moves a point by exp(d), and turns a tangent vector by as much.
BUDGET = {
    "dist": lambda d: 4 + 0.75 * math.exp(d),
    "logmap": lambda d: 4 + 1.0 * math.exp(d),
    "expmap": lambda d: 4 + 1.5 * math.exp(d),
    "transport": lambda d: 4 + 2.0 * math.exp(d),
    "dexp_inv": lambda d: 6 + 3.0 * math.exp(d),
}


def _errors(name: str, x: Tensor, y: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """Relative error of float32 in the metric, per point."""
    lorentz = Lorentz(1.0)
    X, Y, V, W = (t.double() for t in (x, y, v, w))
    if name == "dist":
        exact = lorentz.dist(X, Y)
        return (lorentz.dist(x, y).double() - exact).abs() / exact
    if name == "expmap":
        return lorentz.dist(lorentz.expmap(x, v).double(), lorentz.expmap(X, V)) / (1.0 + lorentz.norm(X, V))
    at, single, exact = {
        "logmap": lambda: (X, lorentz.logmap(x, y), lorentz.logmap(X, Y)),
        "transport": lambda: (Y, lorentz.transport(x, y, w), lorentz.transport(X, Y, W)),
        "dexp_inv": lambda: (
            X, lorentz.dexp_inv(x, v, lorentz.transport(x, y, w), y),
            lorentz.dexp_inv(X, V, lorentz.transport(x, y, w).double(), Y),
        ),
    }[name]()  # fmt: skip
    return lorentz.norm(at, single.double() - exact) / lorentz.norm(at, exact)


@pytest.mark.parametrize("apart", [1e-3, 1e-1, 1.0])
@pytest.mark.parametrize("distance", [0.1, 1.0, 3.0, 6.0, 9.0])
@pytest.mark.parametrize("name", BUDGET)
def test_float32_keeps_its_budget(name, distance, apart):
    lorentz = Lorentz(1.0)
    g = torch.Generator().manual_seed(5)
    a, b, d = (torch.nn.functional.normalize(torch.randn(500, 8, generator=g), dim=-1) for _ in range(3))
    x = lorentz.expmap0(0.5 * distance * a)
    v, w = lorentz.transport0(x, 0.5 * apart * b), lorentz.transport0(x, 0.5 * d)
    y = lorentz.expmap(x, v)
    worst = float(_errors(name, x, y, v, w).max()) / torch.finfo(torch.float32).eps
    assert worst <= BUDGET[name](distance + apart), worst


@pytest.mark.parametrize("dtype", LIMITS)
def test_values_and_gradients_are_finite_up_to_the_limit(dtype):
    reach = LIMITS[dtype].reach
    e, f = torch.tensor([[0.6, -0.8, 0.0], [0.0, 0.6, 0.8]], dtype=dtype)
    for distance in (0.0, 1e-6, 1.0, 0.5 * reach, 0.9 * reach, reach, 100.0):
        for start, end, length in ((e, e, 0.0), (e, -e, 0.1), (e, f, 1.0), (e, f, 30.0), (f, f, 500.0)):
            lorentz = Lorentz(0.8, learnable=True)
            u = (0.5 * distance / 0.8**0.5 * start).clone().requires_grad_()
            v = (0.5 * length * f).clone().requires_grad_()
            x, y = lorentz.expmap0(u), lorentz.expmap0(0.5 * distance / 0.8**0.5 * end)
            step = lorentz.expmap(x, lorentz.transport0(x, v))
            tangent = lorentz.dexp_inv(x, lorentz.logmap(x, y), lorentz.transport0(y, e.expand_as(v)), y)
            # As a multiple of the unit: in coordinates a vector is as long as the cosh of the distance.
            value = lorentz.norm(x, tangent) + lorentz.dist(step, y) + lorentz.dist0(step)
            value = value + lorentz.dist0(lorentz.midpoint([x, y, step], [1.0, -0.5, 0.2]))
            assert lorentz.problems(step.detach()) == []
            assert torch.isfinite(value).all()
            for gradient in torch.autograd.grad(value, (u, v, lorentz.curvature.log_scale)):
                assert torch.isfinite(gradient).all(), (distance, length)


@pytest.mark.parametrize("dtype", LIMITS)
def test_points_beyond_the_limit_are_projected_and_counted(dtype):
    lorentz, ball = Lorentz(0.5), PoincareBall(0.5)
    v = torch.tensor([[0.1, 0.0], [100.0, 0.0], [0.0, -300.0]], dtype=dtype)
    for manifold in (lorentz, ball):
        with count_projections() as counter:
            x = manifold.expmap0(v)
        assert counter.total == 2
        with count_projections() as counter:
            assert torch.allclose(manifold.project(x), x, rtol=1e-5)
        assert counter.total == 0
        with count_projections() as counter:
            o = manifold.origin(3, manifold.ambient(2), dtype=dtype)
            y = manifold.expmap(o, manifold.transport0(o, v))
        assert counter.total == 2
        assert torch.allclose(manifold.dist0(y), manifold.dist0(x), rtol=1e-3)
        assert float(manifold.dist0(x).max()) == pytest.approx(LIMITS[dtype].reach / 0.5**0.5, rel=2e-3)


def test_time_is_written_but_never_read():
    """So a curvature that training has moved leaves stored points valid."""
    lorentz = Lorentz(1.0)
    x, y = lorentz.random(2, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    stale = torch.cat([torch.full_like(x[..., :1], 7.0), x[..., 1:]], dim=-1)
    assert torch.equal(lorentz.dist(stale, y), lorentz.dist(x, y))
    assert torch.equal(lorentz.project(stale), lorentz.project(x))
    (words,) = lorentz.problems(stale)
    assert "5 of 5" in words
    assert "project" in words


def test_problems_are_said():
    lorentz = Lorentz(1.0)
    assert lorentz.problems(lorentz.origin(2, 3)) == []
    assert "float32 or float64" in lorentz.problems(torch.ones(2, 3, dtype=torch.bfloat16))[0]
    assert "at least one of space" in lorentz.problems(torch.ones(2, 1))[0]
    far = torch.tensor([[1e9, 1e9, 0.0]])
    assert "12.21 radii" in lorentz.problems(far)[0]
