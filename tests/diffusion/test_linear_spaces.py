"""The linear-cost global sum on every space: near the exact one, with its error known, and trained through."""

import pytest
import torch

from hgde.diffusion import make_diffusivity
from hgde.diffusion.plain import linear_pair_sum, pair_sum
from hgde.geometry import Euclidean, Lorentz, PoincareBall, Product
from hgde.graph import Graph
from hgde.kernels import watch_linear_errors

SPACES = {
    "ball": lambda: PoincareBall(0.7),
    "lorentz": lambda: Lorentz(0.7),
    "euclidean": Euclidean,
    "product": lambda: Product([PoincareBall(0.7), Euclidean()], [2, 2]),
}


@pytest.mark.parametrize("name", SPACES)
def test_near_the_exact_sum_on_every_space(name):
    space, generator = SPACES[name](), torch.Generator().manual_seed(0)
    z = space.expmap0(torch.randn(300, 4, generator=generator, dtype=torch.float64)).requires_grad_()
    q, k = (torch.randn(300, 2, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    right = pair_sum(z, q, k, space)
    with watch_linear_errors() as errors:
        found = linear_pair_sum(z, q, k, space, landmarks=100)
    distance = float((found - right).detach().norm() / right.detach().norm())
    assert distance < 0.1
    assert 0.2 * distance < errors[0] < 5 * distance
    assert bool(torch.isfinite(torch.autograd.grad(found.square().sum(), z)[0]).all())
    torch.testing.assert_close(linear_pair_sum(z, q, k, space, landmarks=300), right, rtol=0, atol=1e-12)


def test_more_landmarks_bring_the_flow_nearer_to_global():
    graph = Graph.from_edges(torch.randint(0, 400, (2, 900), generator=torch.Generator().manual_seed(0)), 400)
    ball = PoincareBall(1.0)
    z = ball.random(400, 4, generator=torch.Generator().manual_seed(1))

    def moved(name, **options):
        torch.manual_seed(0)
        module = make_diffusivity(name, 4, **options)
        with torch.no_grad():
            return module(z, graph, ball).tangent_sum(z, graph, ball)

    exact = moved("global")
    few, many, all_of_them = (moved("linear-global", landmarks=n) for n in (8, 200, 400))
    assert (many - exact).norm() < 0.5 * (few - exact).norm()
    assert torch.equal(all_of_them, exact)
