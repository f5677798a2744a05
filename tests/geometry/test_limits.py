"""Finite values and gradients wherever a point may be, and what float32 costs against float64."""

import math

import pytest
import torch
from torch import Tensor

from hgde.geometry import LIMITS, PoincareBall, ball, count_projections

DTYPES = list(LIMITS)

FUNCTIONS = {
    "lambda_x": lambda x, y, v, c: ball.lambda_x(x, c),
    "mobius_add": lambda x, y, v, c: ball.mobius_add(x, y, c),
    "mobius_sub": lambda x, y, v, c: ball.mobius_add(-x, y, c),
    "mobius_scalar": lambda x, y, v, c: ball.mobius_scalar(0.7, x, c),
    "mobius_matvec": lambda x, y, v, c: ball.mobius_matvec(torch.eye(3, dtype=x.dtype), x, c),
    "expmap": lambda x, y, v, c: ball.expmap(x, v, c),
    "logmap": lambda x, y, v, c: ball.logmap(x, y, c),
    "expmap0": lambda x, y, v, c: ball.expmap0(v, c),
    "logmap0": lambda x, y, v, c: ball.logmap0(x, c),
    "dist": lambda x, y, v, c: ball.dist(x, y, c),
    "dist0": lambda x, y, v, c: ball.dist0(x, c),
    "gyration": lambda x, y, v, c: ball.gyration(x, y, v, c),
    "transport": lambda x, y, v, c: ball.transport(x, y, v, c),
    "dexp": lambda x, y, v, c: ball.dexp(x, v, y, c),
    "dexp_inv": lambda x, y, v, c: ball.dexp_inv(x, v, y, c),
    "gyromidpoint": lambda x, y, v, c: ball.gyromidpoint([x, y], [1.0, 0.5], c),
    "half": lambda x, y, v, c: ball.half(x, c),
    "norm": lambda x, y, v, c: ball.norm(x, v, c),
    "project": lambda x, y, v, c: ball.project(x, c),
}


def edge_points(dtype: torch.dtype) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
    """Pairs of points and a tangent vector at the first, unit curvature."""
    margin = LIMITS[dtype].margin
    e = torch.tensor([0.6, -0.8, 0.0], dtype=dtype)
    f = torch.tensor([0.0, 0.6, 0.8], dtype=dtype)
    zero = torch.zeros(3, dtype=dtype)
    cases = {
        "origin": (zero, zero, zero),
        "origin to point": (zero, 0.5 * f, 0.1 * e),
        "equal": (0.5 * e, 0.5 * e, zero),
        "nearly equal": (0.5 * e, 0.5 * e * (1 + 4 * torch.finfo(dtype).eps), 1e-20 * e),
        "opposite": (0.9 * e, -0.9 * e, -e),
        "long vector": (0.3 * e, 0.5 * f, 50.0 * f),
    }
    for k in range(2, round(-math.log10(margin)) + 1):
        gap = max(10.0**-k, margin)
        x = (1 - gap) * e
        # A vector of metric length one at x.
        cases[f"1 - 1e-{k}"] = (x, (1 - gap) * f, 0.5 * (1 - float((x * x).sum())) * f)
        cases[f"1 - 1e-{k}, equal"] = (x, x.clone(), zero)
    return cases


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_and_gradients_are_finite(name, dtype):
    for case, points in edge_points(dtype).items():
        if case == "long vector" and name == "dexp":  # sinh of 100: not a float32 number
            continue
        x, y, v = (p.clone().requires_grad_() for p in points)
        c = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        value = FUNCTIONS[name](x, y, v, c)
        assert value.dtype == dtype
        assert torch.isfinite(value).all(), (name, case)
        gradients = torch.autograd.grad(value.sum(), (x, y, v, c), allow_unused=True)
        for which, gradient in zip("xyvc", gradients, strict=True):
            assert gradient is None or torch.isfinite(gradient).all(), (name, case, which)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_the_derivatives(name):
    g = torch.Generator().manual_seed(0)
    x, y = (ball.expmap0(0.4 * torch.randn(2, 3, generator=g, dtype=torch.float64), 0.8) for _ in range(2))
    v = 0.2 * torch.randn(2, 3, generator=g, dtype=torch.float64)
    c = torch.tensor(0.8, dtype=torch.float64)
    inputs = tuple(t.requires_grad_() for t in (x, y, v, c))
    assert torch.autograd.gradcheck(FUNCTIONS[name], inputs, atol=1e-6, rtol=1e-5)


#: Error of float32 against float64 on the same (float32) inputs, in units of float32's epsilon, d being the distance
#: from the origin: exp(d) is how much the ball magnifies a rounding there.
BUDGET = {
    "dist": lambda d: 3 + 0.4 * math.exp(d),
    "logmap": lambda d: 3 + 0.75 * math.exp(d),
    "expmap": lambda d: 3 + 0.75 * math.exp(d),
    "transport": lambda d: 3 + 0.75 * math.exp(d),
    "dexp_inv": lambda d: 4 + 1.0 * math.exp(d),
}


def _errors(name: str, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
    """Relative error of float32 in the metric, per point."""
    X, Y, V = x.double(), y.double(), v.double()
    if name == "dist":
        exact = ball.dist(X, Y, 1.0)
        return (ball.dist(x, y, 1.0).double() - exact).abs() / exact
    if name == "logmap":
        exact = ball.logmap(X, Y, 1.0)
        return (ball.logmap(x, y, 1.0).double() - exact).norm(dim=-1) / exact.norm(dim=-1)
    if name == "expmap":
        exact = ball.expmap(X, V, 1.0)
        return ball.dist(ball.expmap(x, v, 1.0).double(), exact, 1.0)
    if name == "transport":
        exact = ball.transport(X, Y, V, 1.0)
        return (ball.transport(x, y, v, 1.0).double() - exact).norm(dim=-1) / exact.norm(dim=-1)
    exact = ball.dexp_inv(X, V, V.flip(0), 1.0)
    return (ball.dexp_inv(x, v, v.flip(0), 1.0).double() - exact).norm(dim=-1) / exact.norm(dim=-1)


@pytest.mark.parametrize("apart", [1e-3, 1e-1, 1.0])
@pytest.mark.parametrize("distance", [0.1, 1.0, 3.0, 6.0, 9.0])
@pytest.mark.parametrize("name", BUDGET)
def test_float32_keeps_its_budget(name, distance, apart):
    g = torch.Generator().manual_seed(5)
    direction = torch.randn(500, 8, generator=g)
    x = ball.expmap0(0.5 * distance * direction / direction.norm(dim=-1, keepdim=True), 1.0)
    turn = torch.randn(500, 8, generator=g)
    v = turn / turn.norm(dim=-1, keepdim=True) * (apart / ball.lambda_x(x, 1.0, keepdim=True))
    y = ball.expmap(x, v, 1.0)
    worst = float(_errors(name, x, y, v).max()) / torch.finfo(torch.float32).eps
    assert worst <= BUDGET[name](distance + apart), worst


@pytest.mark.parametrize("dtype", DTYPES)
def test_limits_are_what_the_table_says(dtype):
    limit = LIMITS[dtype]
    x = torch.tensor([1.0 - limit.margin, 0.0], dtype=dtype)
    assert float(ball.dist0(x, 1.0)) == pytest.approx(limit.reach, rel=1e-3)
    pushed = ball.project(torch.tensor([2.0, 0.0], dtype=dtype), 1.0)
    assert torch.allclose(pushed, x)
    assert not PoincareBall(1.0).problems(pushed)


def test_half_precision_is_refused_in_words():
    with pytest.raises(TypeError, match=r"float32 or float64.*bfloat16"):
        ball.project(torch.zeros(3, dtype=torch.bfloat16), 1.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_projections_are_counted_once_each(dtype):
    x = torch.tensor([[0.5, 0.0], [2.0, 0.0], [0.0, -3.0]], dtype=dtype)
    with count_projections() as outer:
        with count_projections() as inner:
            once = ball.project(x, 1.0)
        assert inner.total == 2
        ball.project(once, 1.0)
        ball.expmap0(100.0 * x, 1.0)
    assert (inner.total, outer.total) == (2, 5)
    ball.project(x, 1.0)
    assert outer.total == 5


def test_projection_leaves_valid_points_alone_and_nan_visible():
    x = torch.tensor([[0.3, -0.4], [math.nan, 0.1]])
    assert torch.equal(ball.project(x, 1.0)[0], x[0])
    assert ball.project(x, 1.0)[1].isnan().any()


def test_maps_can_be_traced_whole():
    x, v = torch.full((4, 3), 0.2), torch.full((4, 3), 0.1)
    for function in (ball.expmap, ball.logmap):
        traced = torch.compile(function, fullgraph=True, backend="eager")
        assert torch.equal(traced(x, v, 1.0), function(x, v, 1.0))
