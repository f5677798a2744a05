"""What the Triton step must do; run by ``test_triton.py`` under ``TRITON_INTERPRET=1``."""

import pytest
import torch

from hgde.geometry import PoincareBall
from hgde.kernels import EdgeWeights, diffuse, tangent_sum
from hgde.kernels import triton as by_triton
from hgde.kernels.ops.register import registered
from hgde.kernels.triton import edges, step
from kernels.graphs import awkward, points, weights


def problem(directed=True, nodes=17, width=5, dtype=torch.float64):
    graph = awkward(directed, nodes)
    (values,), _ = weights("edge", graph, width, dtype)
    z, z0 = (points(nodes, width, seed, dtype=dtype).requires_grad_() for seed in range(2))
    c = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    eta = torch.tensor([1.0, 0.6, -0.3], dtype=torch.float64, requires_grad=True)
    return graph, values.detach(), z, z0, c, eta


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(("nodes", "width"), [(9, 1), (17, 5), (30, 16)])
def test_values_and_gradients_equal_plain_torch(nodes, width, directed):
    graph, values, z, z0, c, eta = problem(directed, nodes, width)
    ours = by_triton.diffuse(z, graph, values, c, z0, eta, "tanh")
    plain = diffuse(z, graph, EdgeWeights(values), c, z0, eta, "tanh", backend="reference")
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-13)
    g = points(nodes, width, 7)
    for a, b in zip(*(torch.autograd.grad(out, (z, z0, c, eta), g) for out in (ours, plain)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


def test_more_edges_than_a_chunk_holds(monkeypatch):
    monkeypatch.setattr(edges, "CHUNK", 4)
    graph, values, z, _, c, _ = problem(False, 40)
    found = by_triton.tangent_sum(z, graph, values, c)
    torch.testing.assert_close(found, tangent_sum(z, graph, EdgeWeights(values), c, "reference"), rtol=0, atol=1e-13)


@pytest.mark.parametrize("distance", [0.1, 4.0, 8.0])
def test_float32_is_as_accurate_as_the_compiled_kernels(distance):
    graph, values, *_ = problem(False, 30, 12, torch.float32)
    x = torch.nn.functional.normalize(points(30, 12), dim=-1)
    z = (torch.tanh(torch.tensor(distance / 2)) * x).float()
    toward = torch.randn(30, 12, generator=torch.Generator().manual_seed(0))

    def gradients(function, dtype):
        leaf, c = z.to(dtype).requires_grad_(), torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad((function(leaf, values.to(dtype), c) * toward.to(dtype)).sum(), (leaf, c))

    eta = torch.tensor([1.0, 0.6, 0.1])
    exact = gradients(lambda z, v, c: diffuse(z, graph, EdgeWeights(v), c, z, eta, backend="reference"), torch.float64)
    fused = gradients(lambda z, v, c: diffuse(z, graph, EdgeWeights(v), c, z, eta, backend="fused"), torch.float32)
    ours = gradients(lambda z, v, c: by_triton.diffuse(z, graph, v, c, z, eta), torch.float32)
    for a, b, right in zip(ours, fused, exact, strict=True):
        bound = max(float((b - right).norm()), 4 * torch.finfo(torch.float32).eps * float(right.norm()))
        assert float((a - right).norm()) <= 2 * bound


def test_gradcheck_and_second_derivatives_refused():
    graph, values, z, z0, c, eta = problem(True, 7, 3)
    function = lambda z, z0, c, eta: by_triton.diffuse(z, graph, values, c, z0, eta)  # noqa: E731  # a name for an expression
    assert torch.autograd.gradcheck(function, (z, z0, c, eta), fast_mode=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.gradgradcheck(function, (z, z0, c, eta))


def test_torch_finds_nothing_wrong():
    graph, values, z, _, c, _ = problem(True, 7, 3)
    torch.library.opcheck(registered(step.edge_sum), (z, values, c, graph.indptr, graph.indices), rtol=1e-6, atol=1e-8)


def test_the_same_bits_twice():
    graph, values, z, z0, c, eta = problem(False, 30, 12, torch.float32)
    runs = []
    for _ in range(2):
        out = by_triton.diffuse(z, graph, values, c, z0, eta)
        runs.append((out, *torch.autograd.grad(out.square().sum(), (z, z0, c, eta))))
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


def test_points_held_at_the_limit_and_nodes_without_edges():
    graph, values, z, *_ = problem(True, 9, 2)
    z = PoincareBall().project(z.detach() * 1e6).requires_grad_()
    ours = by_triton.tangent_sum(z, graph, values, 1.0)
    plain = tangent_sum(z, graph, EdgeWeights(values), 1.0, "reference")
    torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-12)
    assert bool(torch.isfinite(torch.autograd.grad(ours.sum(), z)[0]).all())


def test_weights_that_want_a_gradient_are_refused():
    graph, values, z, *_ = problem(True, 7, 3)
    with pytest.raises(ValueError, match="constant weights"):
        by_triton.tangent_sum(z, graph, values.requires_grad_(), 1.0)
