"""The compiled maps of the ball against the ball's own, in value and gradient, and where they could go wrong."""

import pytest
import torch

from hgde.geometry import Curvature, PoincareBall
from hgde.geometry.numerics import count_projections, limits
from hgde.kernels import FusedBall, set_backend
from hgde.solvers import Flow, odeint
from kernels.graphs import vectors

C = 0.75  # a number that float32 holds exactly
MAPS = ("expmap", "logmap", "transport", "dexp_inv")
RADII = (0.0, 1e-8, 0.1, 0.6, 0.95, 0.999)
LENGTHS = (0.0, 1e-7, 1e-3, 0.2, 0.6, 1.0, 3.0)


@pytest.fixture(autouse=True)
def default_backend():
    yield
    set_backend("auto")


def at_radius(count, width, radius, seed=0):
    return radius / C**0.5 * torch.nn.functional.normalize(vectors(count, width, seed), dim=-1)


def arguments(name, radius, length, count=130, width=5):
    """What the map takes: points at ``radius``, others about ``length`` from them in the metric, tangent vectors."""
    plain = PoincareBall(C)
    x = at_radius(count, width, radius)
    v = at_radius(count, width, length, 1) * (1 - radius**2)
    y = plain.expmap(x, v)
    u = vectors(count, width, 2)
    found = {"expmap": (x, v), "logmap": (x, y), "transport": (x, y, u), "dexp_inv": (x, v, u, y)}[name]
    return [t.detach().clone().requires_grad_() for t in found]


def value_and_gradients(manifold, name, tensors):
    out = getattr(manifold, name)(*tensors)
    g = vectors(out.numel(), 1, 3).view(out.shape).to(out.dtype)
    wanted = [*tensors, *manifold.parameters()]
    return out.detach(), torch.autograd.grad(out, wanted, g, allow_unused=True)


def both(name, tensors):
    curvature = Curvature(C, learnable=True)
    return (value_and_gradients(ball, name, tensors) for ball in (FusedBall(curvature), PoincareBall(curvature)))


def smallest_b(tensors):
    """The least ``1 - c|p|^2`` among the points: rounding of ``|p|^2`` changes results by ``eps`` over this."""
    points = [t for t in tensors if (C * t.detach().square().sum(-1) < 1).all()]
    return min(float((1 - C * t.detach().square().sum(-1)).min()) for t in points)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("name", MAPS)
def test_equals_the_ball_in_double_precision(name, radius, length):
    tensors = arguments(name, radius, length)
    (ours, our_grads), (theirs, their_grads) = both(name, tensors)
    relative = 1e-12 + 10 * torch.finfo(torch.float64).eps / smallest_b(tensors)
    assert (ours - theirs).norm() <= relative * theirs.norm()
    *points, c = zip(our_grads, their_grads, strict=True)
    for a, b in points:
        assert (a - b).norm() <= relative * b.norm()
    # The gradient of c is a sum with terms of both signs, as long as the gradients it is made of times the points.
    scale = sum(float((b * t.detach()).abs().sum()) for (_, b), t in zip(points, tensors, strict=True))
    assert abs(c[0] - c[1]) <= 10 * relative * scale


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("name", MAPS)
def test_single_precision_is_double_precision_rounded_once(name, radius):
    """Products and coefficients are in double precision, so what is left is the rounding of the result itself."""
    single = [t.detach().float().requires_grad_() for t in arguments(name, radius, 0.3)]
    double = [t.detach().double().requires_grad_() for t in single]
    passes = 2 if name == "dexp_inv" else 1  # which rounds between its two
    budget = passes * torch.finfo(torch.float32).eps
    ours, our_grads = value_and_gradients(FusedBall(C), name, single)
    exact, exact_grads = value_and_gradients(PoincareBall(C), name, double)
    assert ours.dtype == torch.float32
    for a, b, like in zip((ours, *our_grads), (exact, *exact_grads), (ours, *single), strict=True):
        assert a.dtype == like.dtype
        assert (a - b).norm() <= budget * b.norm()


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("radius", [0.05, 0.8])
def test_gradcheck_for_points_and_curvature(name, radius):
    curvature = Curvature(C, learnable=True)

    def apply(log_scale, *tensors):
        return torch.func.functional_call(curvature_map, {"curvature.log_scale": log_scale}, tensors)

    class Map(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.curvature = curvature

        def forward(self, *tensors):
            return getattr(FusedBall(self.curvature), name)(*tensors)

    curvature_map = Map()
    tensors = arguments(name, radius, 0.7, count=6, width=3)
    log_scale = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(apply, (log_scale, *tensors))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MAPS)
def test_edges_give_finite_values_and_gradients(name, dtype):
    """Every pair of: the origin, a point next to it, one inside, the limit and its opposite; steps of every length."""
    rim = (1 - limits(dtype).margin) / C**0.5
    special = rim * torch.tensor([[0, 0], [1e-30, 0], [1e-8, 0], [0.5, 0.1], [1, 0], [-1, 0], [0, 1]])
    steps = torch.tensor([[0, 0], [1e-30, 0], [1e-6, 1e-6], [0.1, 0], [-3, 0.1], [1e4, 0], [-1e4, 0]])
    second = steps if name in ("expmap", "dexp_inv") else special
    i, j = (index.reshape(-1) for index in torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij"))
    tensors = [special[i].to(dtype), second[j].to(dtype)]
    if name in ("transport", "dexp_inv"):
        tensors.append(torch.tensor([0.3, -0.7], dtype=dtype).expand(49, 2).clone())
    ball = FusedBall(C, learnable=True)
    out, gradients = value_and_gradients(ball, name, [t.requires_grad_() for t in tensors])
    assert torch.isfinite(out).all()
    for gradient in gradients:
        assert torch.isfinite(gradient).all()
    if name == "expmap":
        assert not ball.problems(out)


@pytest.mark.parametrize("radius", RADII)
def test_a_point_to_itself(radius):
    ball = FusedBall(C)
    x, u = at_radius(20, 4, radius), vectors(20, 4, 1)
    assert (ball.logmap(x, x) == 0).all()
    torch.testing.assert_close(ball.transport(x, x, u), u, rtol=1e-14, atol=0)
    torch.testing.assert_close(ball.expmap(x, torch.zeros_like(x)), x, rtol=1e-14, atol=0)


def test_a_long_way_inwards_does_not_cancel():
    """From near the boundary through the origin to the mirror image and back: log after exp."""
    ball = FusedBall(C)
    x = at_radius(30, 3, 1 - 1e-7)
    conditioning = 10 * torch.finfo(torch.float64).eps / smallest_b([x])
    for y in (-x, -0.9 * x, 1e-3 * x):
        torch.testing.assert_close(ball.expmap(x, ball.logmap(x, y)), y, rtol=0, atol=conditioning)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_points_pulled_back_are_counted_once(dtype):
    ball = FusedBall(C)
    x = at_radius(70, 3, 0.5).to(dtype)
    v = vectors(70, 3, 1).to(dtype) * torch.where(torch.arange(70) % 2 == 0, 1e3, 1e-2)[:, None].to(dtype)
    with count_projections() as counter:
        out = ball.expmap(x, v)
    assert counter.total == 35
    assert not ball.problems(out)
    with count_projections() as again:
        ball.expmap(out, torch.zeros_like(out))
    assert again.total == 0


@pytest.mark.parametrize("name", MAPS)
def test_same_bits_for_any_number_of_threads(name):
    tensors = [t.detach().float().requires_grad_() for t in arguments(name, 0.6, 0.5, 20_000, 16)]
    threads = torch.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3, 1):
            torch.set_num_threads(count)
            found.append(value_and_gradients(FusedBall(C, learnable=True), name, tensors))
    finally:
        torch.set_num_threads(threads)
    for out, gradients in found[1:]:
        assert torch.equal(out, found[0][0])
        assert all(torch.equal(a, b) for a, b in zip(gradients, found[0][1], strict=True))


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (65, 1), (3, 7, 4)])
@pytest.mark.parametrize("name", MAPS)
def test_shapes(name, shape):
    tensors = [0.1 * torch.ones(shape, dtype=torch.float64).cumsum(0) / max(shape[0], 1) for _ in range(3)]
    tensors = [t.requires_grad_() for t in tensors[: 2 if name in ("expmap", "logmap") else 3]]
    for a, b in zip(
        *(value_and_gradients(ball(C), name, tensors)[1] for ball in (FusedBall, PoincareBall)), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-14)


def test_rows_in_any_memory_layout():
    x, v = arguments("expmap", 0.5, 0.5)
    turned = x.detach().t().contiguous().t()
    assert not turned.is_contiguous()
    ball = FusedBall(C)
    assert torch.equal(ball.expmap(turned, v), ball.expmap(x, v))


@pytest.mark.parametrize("name", MAPS)
def test_the_reference_backend_and_broadcasting_use_the_plain_ball(name):
    tensors = arguments(name, 0.5, 0.5)
    plain = getattr(PoincareBall(C), name)(*tensors)
    set_backend("reference")
    assert torch.equal(getattr(FusedBall(C), name)(*tensors), plain)
    set_backend("auto")
    one_row = [tensors[0][:1], *tensors[1:]]
    assert torch.equal(getattr(FusedBall(C), name)(*one_row), getattr(PoincareBall(C), name)(*one_row))


def test_a_view_for_a_solve_shares_the_curvature_and_leaves_other_spaces_alone():
    class Own(PoincareBall):
        pass

    plain, own = PoincareBall(C, learnable=True), Own(C)
    view = FusedBall.for_solve(plain)
    assert isinstance(view, FusedBall)
    assert view.curvature is plain.curvature
    assert FusedBall.for_solve(own) is own


@pytest.mark.parametrize("gradient", ["backprop", "recompute"])
@pytest.mark.parametrize("method", ["heuler", "hrk4", "ham", "rk4", "dopri5", "implicit_adams"])
def test_solvers_give_the_plain_answer_and_gradient(method, gradient):
    plain = PoincareBall(C, learnable=True)
    x0 = at_radius(30, 3, 0.4).requires_grad_()
    target = at_radius(30, 3, 0.7, 1)
    tolerance = {"rtol": 1e-4} if method == "dopri5" else {"step": 0.5}

    def solve(manifold):
        field = Flow(lambda t, x: plain.expmap(x, 0.3 * plain.logmap(x, target)))
        end = odeint(field, x0, [0.0, 2.0], manifold=manifold, method=method, gradient=gradient, **tolerance).final
        return end, torch.autograd.grad(end.square().sum(), [x0, *plain.parameters()])

    (ours, our_grads), (theirs, their_grads) = solve(FusedBall.for_solve(plain)), solve(plain)
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-13)
    for a, b in zip(our_grads, their_grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_a_second_derivative_is_refused(name):
    tensors = arguments(name, 0.5, 0.5)
    gradients = torch.autograd.grad(getattr(FusedBall(C), name)(*tensors).sum(), tensors, create_graph=True)
    for gradient in gradients:
        with pytest.raises(RuntimeError, match="no second derivative"):
            gradient.sum().backward(retain_graph=True)
