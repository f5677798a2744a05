"""Gradients of one evaluation in float32 against float64 on the same points, out to the limit of the dtype."""

import pytest
import torch

from hgde.geometry import ball
from hgde.graph import Graph
from hgde.kernels import (
    AttentionWeights,
    ChannelWeights,
    EdgeWeights,
    diffuse,
    edge_values,
    reference,
    tangent_sum,
)
from kernels.graphs import awkward, points, weights

BOUNDS = {0.1: 1e-6, 2.0: 1e-5, 4.0: 1e-4, 6.0: 1e-3, 8.0: 1e-2}
ETA = (1.0, 0.6, 0.1)
EPS = torch.finfo(torch.float32).eps


def problem(kind, distance):
    generator = torch.Generator().manual_seed(0)
    graph = Graph.from_edges(torch.randint(0, 200, (2, 600), generator=generator), 200)
    x = torch.nn.functional.normalize(torch.randn(200, 12, generator=generator).double(), dim=-1)
    z = (torch.tanh(torch.tensor(distance / 2).double()) * x).float()
    tensors, build = weights(kind, graph, 12, torch.float32)
    toward = torch.randn(200, 12, generator=generator)
    return graph, z, tensors, build, toward


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("kind", ["edge", "attention", "channel"])
@pytest.mark.parametrize("distance", BOUNDS)
def test_float32_gradients_are_exact(distance, kind, residual, backend):
    graph, z, tensors, build, toward = problem(kind, distance)

    def gradients(dtype, backend):
        leaves = [t.to(dtype).requires_grad_() for t in (z, *tensors)]
        c = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        eta = torch.tensor(ETA, dtype=torch.float64, requires_grad=True)
        given = (leaves[0], eta) if residual else (None, None)
        out = diffuse(leaves[0], graph, build(*leaves[1:]), c, *given, backend=backend)
        return torch.autograd.grad((out * toward.to(dtype)).sum(), [*leaves, c, *([eta] if residual else [])])

    exact = gradients(torch.float64, "reference")
    for found, right in zip(gradients(torch.float32, backend), exact, strict=True):
        slack = 0.0
        if backend == "reference" and right.dim() == 0:
            # Plain torch has its attention weights in float32, each off by up to EPS/2 of itself. The gradient of c is
            # linear in them, so it is off by EPS/2 of its terms' absolute sum, of which |<g, z>| is the size; the
            # terms have both signs and may cancel to far less. The compiled path is given no such allowance.
            slack = EPS * (exact[0] * z).abs().sum()
        assert (found - right).norm() <= BOUNDS[distance] * right.norm() + slack


def test_curvature_is_used_as_given():
    """0.7 is not a float32; rounding it would move points at distance 8 by a part in a thousand."""
    graph, z, tensors, build, _ = problem("edge", 6.0)
    out = tangent_sum(z, graph, build(*tensors), 0.9, "fused")
    right = tangent_sum(z.double(), graph, build(*(t.double() for t in tensors)), 0.9, "reference")
    assert (out - right).norm() <= 1e-6 * right.norm()


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_a_virtual_neighbour_at_the_origin(backend):
    graph, z = awkward(True), points(17, 5)
    (values,), _ = weights("edge", graph, 5)
    origin = torch.linspace(-0.3, 0.9, 17, dtype=torch.float64)
    with_origin = tangent_sum(z, graph, EdgeWeights(values, origin), 0.7, backend)
    without = tangent_sum(z, graph, EdgeWeights(values), 0.7, backend)
    expected = origin[:, None] * ball.logmap(z, torch.zeros_like(z), 0.7)
    torch.testing.assert_close(with_origin - without, expected, rtol=0, atol=1e-12)


def with_edges(kind, graph, edge):
    tensors, build = weights(kind, graph, 3)
    if kind == "attention":
        return tensors, lambda t, s, e: AttentionWeights(t, s, edge=e)
    made = build(*tensors)
    return tensors, lambda table, scale, e: ChannelWeights(table, made.index, scale, e)


@pytest.mark.parametrize("kind", ["attention", "channel"])
def test_edges_with_weights_of_their_own(kind):
    """Fused against plain, plain against the definition; a weight of two is an edge listed twice, zero is none."""
    graph, z = awkward(True, 9), points(9, 3)
    edge = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    edge[::4] = 0.0
    tensors, build = with_edges(kind, graph, edge)
    inputs = [t.clone().requires_grad_() for t in (z, *tensors)]
    grads = []
    for backend in ("fused", "reference"):
        out = diffuse(inputs[0], graph, build(*inputs[1:], edge), 0.7, backend=backend)
        grads.append((out.detach(), *torch.autograd.grad(out.square().sum(), inputs)))
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
    values = edge_values(graph, build(*tensors, edge), backend="reference")
    assert (values[::4] == 0).all()
    if kind == "attention":
        sums = torch.zeros(9, dtype=torch.float64).index_add(0, graph.rows, values)
        has = torch.zeros(9).index_add(0, graph.rows, edge.float()) > 0
        torch.testing.assert_close(sums[has], torch.ones_like(sums[has]))
        assert (sums[~has] == 0).all()


@pytest.mark.parametrize("kind", ["attention", "channel"])
def test_gradcheck_of_the_edges_own_weights(kind):
    graph, z = awkward(True, 9), points(9, 3)
    edge = 0.2 + torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    tensors, build = with_edges(kind, graph, edge)
    edge.requires_grad_()
    assert torch.autograd.gradcheck(lambda e: diffuse(z, graph, build(*tensors, e), 0.7, backend="fused"), (edge,))


def test_constant_weights_cost_no_gradient(monkeypatch):
    graph, z = awkward(False, 20), points(20, 8).requires_grad_()
    (values,), _ = weights("edge", graph, 8)
    from hgde.kernels.ops import diffusion

    asked = []
    original = diffusion.Gradients.__init__

    def record(self, path, wanted, **others):
        asked.append(wanted)
        original(self, path, wanted, **others)

    monkeypatch.setattr(diffusion.Gradients, "__init__", record)
    diffuse(z, graph, EdgeWeights(values), 1.0, backend="fused").sum().backward()
    diffuse(z, graph, EdgeWeights(values.clone().requires_grad_()), 1.0, backend="fused").sum().backward()
    assert asked == [False, True]


@pytest.mark.parametrize("heads", [1, 2])
def test_global_gradients_do_not_depend_on_the_number_of_threads(heads, monkeypatch):
    from hgde.kernels import tangent_sum_global

    monkeypatch.setattr(reference, "PAIRS", 20_000)
    z = points(300, 16, dtype=torch.float32).requires_grad_()
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(300, heads, 8, generator=generator, requires_grad=True) for _ in range(2))
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            out = tangent_sum_global(z, q, k, 0.7, "fused")
            results.append((out, *torch.autograd.grad(out.square().sum(), (z, q, k))))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))
