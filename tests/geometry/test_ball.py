"""The theorems of the gyrovector space, and agreement with geoopt."""

import geoopt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hgde.geometry import ball

CURVATURES = (0.05, 0.3, 1.0, 4.0)
numbers = st.floats(-1.0, 1.0, allow_subnormal=False)
curvatures = st.sampled_from(CURVATURES)


@st.composite
def points(draw, c: float, reach: float = 3.0, dim: int = 3) -> Tensor:
    """A point of the ball up to ``reach`` curvature radii from the origin, the origin and tiny vectors included."""
    direction = torch.tensor([draw(numbers) for _ in range(dim)], dtype=torch.float64)
    length = draw(st.sampled_from((0.0, 1e-12, 1e-6, 1e-3))) if draw(st.booleans()) else draw(st.floats(0.0, reach))
    norm = direction.norm()
    if norm < 1e-3:
        direction, norm = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64), torch.tensor(1.0)
    return ball.expmap0(direction * (0.5 * length / (norm * c**0.5)), c)


@st.composite
def several(draw, count: int, reach: float = 3.0) -> tuple[float, list[Tensor]]:
    c = draw(curvatures)
    return c, [draw(points(c, reach)) for _ in range(count)]


def close(a: Tensor, b: Tensor, c: float, tolerance: float = 1e-12) -> bool:
    """Equal in units of the ball's radius."""
    return bool(((a - b).abs() * c**0.5).max() <= tolerance)


@settings(max_examples=60, deadline=None)
@given(several(2))
def test_left_cancellation(case):
    c, (x, y) = case
    assert close(ball.mobius_add(-x, ball.mobius_add(x, y, c), c), y, c, 1e-10)


@settings(max_examples=60, deadline=None)
@given(several(2))
def test_addition_commutes_up_to_gyration(case):
    c, (x, y) = case
    assert close(ball.mobius_add(x, y, c), ball.gyration(x, y, ball.mobius_add(y, x, c), c), c, 1e-11)


@settings(max_examples=60, deadline=None)
@given(several(3, reach=2.0))
def test_addition_associates_up_to_gyration(case):
    c, (x, y, z) = case
    left = ball.mobius_add(x, ball.mobius_add(y, z, c), c)
    right = ball.mobius_add(ball.mobius_add(x, y, c), ball.gyration(x, y, z, c), c)
    assert close(left, right, c, 1e-10)


@settings(max_examples=60, deadline=None)
@given(several(3))
def test_gyration_is_its_definition_and_an_isometry(case):
    c, (x, y, z) = case
    v, w = z, torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64) / c**0.5
    defined = ball.mobius_add(-ball.mobius_add(x, y, c), ball.mobius_add(x, ball.mobius_add(y, v, c), c), c)
    turned_v, turned_w = ball.gyration(x, y, v, c), ball.gyration(x, y, w, c)
    assert close(turned_v, defined, c, 1e-9)
    assert torch.allclose((turned_v * turned_w).sum(), (v * w).sum(), rtol=1e-12, atol=1e-12 / c)


@settings(max_examples=60, deadline=None)
@given(several(1), st.floats(-1.5, 1.5), st.floats(-1.5, 1.5))
def test_scalar_products_distribute(case, r, s):
    c, (x,) = case
    total = ball.mobius_scalar(r + s, x, c)
    parts = ball.mobius_add(ball.mobius_scalar(r, x, c), ball.mobius_scalar(s, x, c), c)
    nested = ball.mobius_scalar(r, ball.mobius_scalar(s, x, c), c)
    assert close(total, parts, c, 1e-10)
    assert close(ball.mobius_scalar(r * s, x, c), nested, c, 1e-10)
    assert close(ball.half(x, c), ball.mobius_scalar(0.5, x, c), c)


@settings(max_examples=60, deadline=None)
@given(several(2))
def test_log_undoes_exp_and_carries_the_distance(case):
    c, (x, y) = case
    v = ball.logmap(x, y, c)
    assert close(ball.expmap(x, v, c), y, c, 1e-11)
    assert torch.allclose(ball.norm(x, v, c), ball.dist(x, y, c), rtol=1e-11, atol=1e-14)
    assert torch.allclose(ball.dist(x, y, c), ball.dist(y, x, c), rtol=1e-14)
    assert torch.allclose(ball.dist0(x, c), ball.dist(torch.zeros_like(x), x, c), rtol=1e-12, atol=1e-15)


@settings(max_examples=60, deadline=None)
@given(several(3, reach=2.0))
def test_translation_is_an_isometry(case):
    c, (a, x, y) = case
    moved = ball.dist(ball.mobius_add(a, x, c), ball.mobius_add(a, y, c), c)
    assert torch.allclose(moved, ball.dist(x, y, c), rtol=1e-9, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(several(3))
def test_transport_keeps_inner_products_and_turns_back(case):
    c, (x, y, v) = case
    w = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)
    there_v, there_w = ball.transport(x, y, v, c), ball.transport(x, y, w, c)
    assert torch.allclose(ball.inner(y, there_v, there_w, c), ball.inner(x, v, w, c), rtol=1e-10, atol=1e-12 / c)
    assert torch.allclose(ball.transport(y, x, there_v, c), v, rtol=1e-10, atol=1e-12)
    assert torch.allclose(ball.transport0(y, v, c), ball.transport(torch.zeros_like(y), y, v, c), atol=1e-13)


@settings(max_examples=40, deadline=None)
@given(several(2))
def test_transport_carries_the_geodesic(case):
    c, (x, y) = case
    arrived = ball.transport(x, y, ball.logmap(x, y, c), c)
    assert torch.allclose(arrived, -ball.logmap(y, x, c), rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(several(2))
def test_curvature_only_scales(case):
    c, (x, y) = case
    root = c**0.5
    assert torch.allclose(root * ball.dist(x, y, c), ball.dist(root * x, root * y, 1.0), rtol=1e-11, atol=1e-14)
    assert torch.allclose(root * ball.logmap(x, y, c), ball.logmap(root * x, root * y, 1.0), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("c", CURVATURES)
def test_differential_of_exp_is_the_derivative(c):
    g = torch.Generator().manual_seed(0)
    x = ball.expmap0(0.4 * torch.randn(20, 4, generator=g, dtype=torch.float64) / c**0.5, c)
    v = 0.3 * torch.randn(20, 4, generator=g, dtype=torch.float64) / c**0.5 / ball.lambda_x(x, c, keepdim=True)
    w = torch.randn(20, 4, generator=g, dtype=torch.float64)
    _, derivative = torch.func.jvp(lambda u: ball.expmap(x, u, c), (v,), (w,))
    assert torch.allclose(ball.dexp(x, v, w, c), derivative, rtol=1e-11, atol=1e-12)
    y = ball.expmap(x, v, c)
    _, inverse = torch.func.jvp(lambda p: ball.logmap(x, p, c), (y,), (w,))
    assert torch.allclose(ball.dexp_inv(x, v, w, c), inverse, rtol=1e-10, atol=1e-11)
    assert torch.allclose(ball.dexp_inv(x, v, ball.dexp(x, v, w, c), c, y), w, rtol=1e-11, atol=1e-12)
    assert torch.equal(ball.dexp_inv(x, torch.zeros_like(v), w, c, x), w)


@pytest.mark.parametrize("signs", [(1.0, 1.0, 1.0), (1.0, -0.4, 0.2), (-1.0, -1.0, -0.5)])
@pytest.mark.parametrize("c", CURVATURES)
def test_gyromidpoint_is_its_formula(c, signs):
    g = torch.Generator().manual_seed(1)
    z = ball.expmap0(torch.randn(3, 10, 4, generator=g, dtype=torch.float64) / c**0.5, c)
    eta = torch.tensor(signs, dtype=torch.float64)
    factor = ball.lambda_x(z, c, keepdim=True)
    weighted = (eta[:, None, None] * factor * z).sum(0) / (eta.abs()[:, None, None] * (factor - 1)).sum(0)
    expected = ball.mobius_scalar(0.5, weighted, c)
    assert torch.allclose(ball.gyromidpoint(z, eta, c), expected, rtol=1e-9, atol=1e-12)
    assert torch.allclose(ball.gyromidpoint(list(z), list(signs), c), expected, rtol=1e-9, atol=1e-12)


def test_gyromidpoint_of_two_is_the_middle_and_moves_with_isometries():
    g = torch.Generator().manual_seed(2)
    x, y, a = ball.expmap0(torch.randn(3, 10, 4, generator=g, dtype=torch.float64), 1.0)
    middle = ball.gyromidpoint([x, y], [1.0, 1.0], 1.0)
    half_way = ball.expmap(x, 0.5 * ball.logmap(x, y, 1.0), 1.0)
    assert torch.allclose(middle, half_way, atol=1e-12)
    moved = ball.gyromidpoint([ball.mobius_add(a, p, 1.0) for p in (x, y)], [1.0, 1.0], 1.0)
    assert torch.allclose(moved, ball.mobius_add(a, middle, 1.0), atol=1e-11)


def test_gyromidpoint_of_one_point_is_that_point_near_the_boundary():
    for dtype, gap in ((torch.float32, 2e-5), (torch.float64, 2e-12)):
        z = torch.tensor([[1.0 - gap, 0.0]], dtype=dtype)
        assert torch.allclose(ball.gyromidpoint([z, z], [0.7, 0.3], 1.0), z, rtol=4 * torch.finfo(dtype).eps, atol=0)


def test_gyromidpoint_wants_a_weight_per_point():
    with pytest.raises(ValueError, match="2 points and 3 weights"):
        ball.gyromidpoint(torch.zeros(2, 5, 3), torch.ones(3), 1.0)


def test_vanishing_curvature_gives_twice_euclid():
    g = torch.Generator().manual_seed(3)
    x, y, v = torch.randn(3, 10, 4, generator=g, dtype=torch.float64)
    c = 1e-12
    assert torch.allclose(ball.dist(x, y, c), 2 * (x - y).norm(dim=-1), rtol=1e-9)
    assert torch.allclose(ball.expmap(x, v, c), x + v, atol=1e-9)
    assert torch.allclose(ball.logmap(x, y, c), y - x, atol=1e-9)
    assert torch.allclose(ball.dexp_inv(x, v, y, c), y, atol=1e-9)


@pytest.mark.parametrize("c", CURVATURES)
def test_agreement_with_geoopt(c):
    g = torch.Generator().manual_seed(4)
    # geoopt's ball class cannot be constructed with this torch; its stereographic model with k < 0 is the same space.
    theirs = geoopt.Stereographic(k=torch.tensor(-c, dtype=torch.float64))
    x, y = ball.expmap0(0.5 * torch.randn(2, 40, 5, generator=g, dtype=torch.float64) / c**0.5, c)
    v, w = 0.1 * torch.randn(2, 40, 5, generator=g, dtype=torch.float64) / c**0.5
    m = torch.randn(3, 5, generator=g, dtype=torch.float64)
    third = torch.tensor(1 / 3, dtype=torch.float64)
    pairs = {
        "lambda_x": (ball.lambda_x(x, c), theirs.lambda_x(x)),
        "mobius_add": (ball.mobius_add(x, y, c), theirs.mobius_add(x, y)),
        "mobius_scalar": (ball.mobius_scalar(third, x, c), theirs.mobius_scalar_mul(third, x)),
        "mobius_matvec": (ball.mobius_matvec(m, x, c), theirs.mobius_matvec(m, x)),
        "expmap": (ball.expmap(x, v, c), theirs.expmap(x, v)),
        "logmap": (ball.logmap(x, y, c), theirs.logmap(x, y)),
        "expmap0": (ball.expmap0(v, c), theirs.expmap0(v)),
        "logmap0": (ball.logmap0(x, c), theirs.logmap0(x)),
        "dist": (ball.dist(x, y, c), theirs.dist(x, y)),
        "dist0": (ball.dist0(x, c), theirs.dist0(x)),
        "gyration": (ball.gyration(x, y, v, c), theirs.gyration(x, y, v)),
        "transport": (ball.transport(x, y, v, c), theirs.transp(x, y, v)),
        "transport0": (ball.transport0(y, v, c), theirs.transp0(y, v)),
        "inner": (ball.inner(x, v, w, c, keepdim=True), theirs.inner(x, v, w, keepdim=True)),
        "norm": (ball.norm(x, v, c), theirs.norm(x, v)),
        "egrad2rgrad": (ball.egrad2rgrad(x, v, c), theirs.egrad2rgrad(x, v)),
    }
    for name, (ours, other) in pairs.items():
        scale = max(1.0, float(other.abs().max()))
        assert float((ours - other).abs().max()) <= 1e-12 * scale, name
