"""Maps at the origin and translation in its tangent space against the ball's own functions."""

import pytest
import torch

from hgde.geometry import ball
from hgde.geometry.numerics import count_projections
from hgde.kernels import exp_origin, log_origin, translate_tangent
from kernels.graphs import points, vectors


def by_maps(u, point, c):
    return ball.logmap0(ball.mobius_add(ball.expmap0(u, c), point, c), c)


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("length", [0.0, 1e-6, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("size", [0.0, 1e-6, 0.3, 0.8])
def test_equals_the_composition_of_maps_with_its_gradient(length, size, backend):
    u = vectors(40, 5, 0, length).requires_grad_()
    point = (size * torch.nn.functional.normalize(torch.arange(1.0, 6.0).double(), dim=0)).requires_grad_()
    c = torch.tensor(0.9, dtype=torch.float64, requires_grad=True)
    ours, theirs = translate_tangent(u, point, c, backend), by_maps(u, point, c)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    g = vectors(40, 5, 1)
    for a, b in zip(*(torch.autograd.grad(out, (u, point, c), g) for out in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-10)


def test_gradcheck():
    u, point = vectors(6, 3).requires_grad_(), torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64, requires_grad=True)
    c = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    for backend in ("fused", "reference"):
        assert torch.autograd.gradcheck(lambda *a, b=backend: translate_tangent(*a, b), (u, point, c))
    assert torch.autograd.gradcheck(lambda *a: exp_origin(*a, "fused"), (u, c))
    assert torch.autograd.gradcheck(lambda *a: log_origin(*a, "fused"), (points(6, 3).requires_grad_(), c))


@pytest.mark.parametrize("length", [0.0, 1e-6, 0.5, 5.0, 1e3])
def test_maps_at_the_origin_equal_the_ball(length):
    u, c = vectors(130, 5, 0, length).requires_grad_(), torch.tensor(0.9, dtype=torch.float64, requires_grad=True)
    z = (0.99 * ball.expmap0(u.detach(), 0.9)).requires_grad_()
    g = vectors(130, 5, 1)
    for ours, theirs, x in ((exp_origin, ball.expmap0, u), (log_origin, ball.logmap0, z)):
        both = ours(x, c, "fused"), theirs(x, c)
        torch.testing.assert_close(*both, rtol=1e-10, atol=1e-13)
        for a, b in zip(*(torch.autograd.grad(out, (x, c), g) for out in both), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)


def test_points_pulled_back_are_counted():
    with count_projections() as counter:
        out = exp_origin(vectors(30, 3, 0, 1e3, torch.float32), torch.tensor(1.0), "fused")
    assert counter.total == 30
    assert (out.norm(dim=-1) < 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_far_vectors_stay_finite(dtype):
    u = vectors(10, 3, 0, 1e4, dtype).requires_grad_()
    out = translate_tangent(u, torch.tensor([0.1, 0.2, 0.3], dtype=dtype), torch.tensor(1.0, dtype=dtype))
    assert torch.isfinite(out).all()
    assert torch.isfinite(torch.autograd.grad(out.sum(), u)[0]).all()


def test_a_vector_taken_back_to_the_origin():
    point = torch.tensor([0.3, -0.4], dtype=torch.float64)
    u = -ball.logmap0(point[None], 1.0)
    assert translate_tangent(u, point, torch.tensor(1.0).double()).abs().max() < 1e-8
