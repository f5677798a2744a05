"""States: plain tensors without a manifold, and tuples of points on several."""

import math

import pytest
import torch

from hgde.geometry import Euclidean, Lorentz, PoincareBall, Product
from hgde.solvers import SOLVERS, Flow, InputError, Status, odeint
from hgde.solvers.packed import Packed
from hgde.solvers.registry import resolve
from problems import DrawnField, swing

TIMES = (0.0, 0.3, 1.0)


@pytest.mark.parametrize("method", SOLVERS)
def test_without_a_manifold_space_is_flat(method):
    x0 = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    options = {"rtol": 1e-5} if resolve(method).adaptive else {"step": 0.1}
    plain = odeint(swing, x0, TIMES, method=method, **options)
    flat = odeint(swing, x0, TIMES, method=method, manifold=Euclidean(), **options)
    assert torch.equal(plain.states, flat.states)


def pair():
    ball, lorentz = PoincareBall(0.8, learnable=True), Lorentz(1.3)
    g = torch.Generator().manual_seed(0)
    x0 = ball.random(5, 2, scale=0.4, generator=g, dtype=torch.float64)
    y0 = lorentz.random(2, 3, 3, scale=0.4, generator=g, dtype=torch.float64)
    inner = DrawnField(ball)
    centre = lorentz.expmap0(torch.tensor([0.2, -0.1], dtype=torch.float64))

    def second(t, y):
        return (0.5 + 0.3 * t) * lorentz.logmap(y, centre.expand_as(y))

    return ball, lorentz, x0, y0, inner, second


@pytest.mark.parametrize("method", SOLVERS)
def test_a_tuple_of_independent_states_is_two_solves(method):
    """Shapes differ, and so do the manifolds."""
    ball, lorentz, x0, y0, first, second = pair()
    options = {"method": method, "step": 0.1}
    with torch.no_grad():
        both = odeint(
            lambda t, s: (first(t, s[0]), second(t, s[1])), (x0, y0), TIMES, manifold=(ball, lorentz), **options
        )
        alone = [
            odeint(first, x0, TIMES, manifold=ball, **options),
            odeint(second, y0, TIMES, manifold=lorentz, **options),
        ]
    assert both.states[0].shape == (3, 5, 2)
    assert both.states[1].shape == (3, 2, 3, 3)
    assert isinstance(both.final, tuple)
    for ours, theirs in zip(both.states, alone, strict=True):
        assert torch.allclose(ours, theirs.states, atol=1e-12)


def test_gradients_flow_through_tuples():
    ball, lorentz, x0, y0, first, second = pair()

    def coupled(t, s):
        x, y = s
        return first(t, x) * lorentz.dist0(y).mean(), second(t, y) * ball.dist0(x).mean()

    gradients = []
    for gradient in ("backprop", "recompute"):
        x, y = x0.clone().requires_grad_(), y0.clone().requires_grad_()
        solution = odeint(coupled, (x, y), TIMES, manifold=(ball, lorentz), method="rk4", step=0.25, gradient=gradient)
        value = solution.final[0].square().sum() + lorentz.dist0(solution.final[1]).sum()
        gradients.append(torch.autograd.grad(value, (x, y, first.matrix, ball.curvature.log_scale)))
    for a, b in zip(*gradients, strict=True):
        assert torch.equal(a, b)
        assert float(a.abs().max()) > 0

    def final(x, v):
        end = odeint(coupled, (x, lorentz.expmap0(v)), TIMES, manifold=(ball, lorentz), method="rk4", step=0.5).final
        return end[0], lorentz.logmap0(end[1])

    inputs = (x0[:1].clone().requires_grad_(), lorentz.logmap0(y0[:1, :1]).clone().requires_grad_())
    # Outputs without a gradient are a matter of functions written for autograd, and there is none among these.
    assert torch.autograd.gradcheck(final, inputs, atol=1e-6, rtol=1e-4, check_undefined_grad=False)


def test_tuples_with_a_product_a_flow_tolerances_and_events():
    ball, flat = PoincareBall(1.0), Euclidean()
    x0 = torch.full((3, 2), 0.2, dtype=torch.float64)
    y0 = torch.ones(1, 1, dtype=torch.float64)
    flow = Flow(lambda t, s: (ball.expmap(s[0], -0.5 * s[0]), 0.5 * s[1]))
    solution = odeint(
        flow, (x0, y0), (0.0, 5.0), manifold=Product([ball, flat], [2, 1]), method="dopri5", rtol=1e-8,
        events=lambda t, s: s[1].sum() - 0.25,
    )  # fmt: skip
    assert solution.status is Status.EVENT
    assert solution.times[-1] == pytest.approx(2.0 * math.log(4.0), abs=1e-5)
    assert float(solution.final[1]) == pytest.approx(0.25, abs=1e-10)


def test_every_point_of_every_part_meets_the_tolerance():
    """The fast part decides the steps, whichever place it has."""

    def field(t, s):
        return torch.stack([-20.0 * s[0][..., 1], 20.0 * s[0][..., 0]], dim=-1), -s[1]

    x0 = (torch.tensor([[1.0, 0.0]], dtype=torch.float64), torch.ones(50, 1, dtype=torch.float64))
    solution = odeint(field, x0, (0.0, 1.0), method="dopri5", rtol=1e-6)
    exact = torch.tensor([math.cos(20.0), math.sin(20.0)], dtype=torch.float64)
    assert float((solution.final[0] - exact).norm()) < 20e-6
    assert solution.statistics.accepted > 40


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"manifold": (Euclidean(),)}, r"each of the 2 parts of x0, got 1"),
        ({"manifold": Euclidean()}, r"each of the 2 parts of x0, got Euclidean"),
        ({"manifold": (Euclidean(), PoincareBall(1.0))}, r"part 1 of x0 is not a valid state.*beyond"),
        ({"x0": (torch.ones(2), torch.ones(3, dtype=torch.float64))}, r"one dtype and device"),
        ({"field": lambda t, s: s[0]}, r"to return a tuple of 2 tensors like the state, got Tensor"),
        ({"field": lambda t, s: (s[0], s[0])}, r"part 1 of what the field returns to have shape \(3,\)"),
    ],
)
def test_bad_tuples_are_explained(change, words):
    options = {"field": lambda t, s: (-s[0], -s[1]), "x0": (torch.ones(2), torch.ones(3)), "t": (0.0, 1.0)} | change
    with pytest.raises(InputError, match=words):
        odeint(**options, step=0.5)


def test_a_pack_s_differentials_are_its_parts():
    """With the end of the geodesic given or not."""
    parts = (PoincareBall(0.7), Euclidean())
    random = torch.Generator().manual_seed(0)
    x, v, w = (
        [0.3 * torch.randn(4, width, generator=random, dtype=torch.float64) for width in (2, 3)] for _ in range(3)
    )
    packed = Packed(parts, [t.shape for t in x])
    for name in ("dexp", "dexp_inv"):
        expected = packed.pack([getattr(m, name)(*own) for m, *own in zip(parts, x, v, w, strict=True)])
        arguments = [packed.pack(t) for t in (x, v, w)]
        end = packed.expmap(*arguments[:2])
        torch.testing.assert_close(getattr(packed, name)(*arguments), expected)
        torch.testing.assert_close(getattr(packed, name)(*arguments, end), expected)
