"""All pairs: tiles against the dense table, and the linear stand-in."""

import pytest
import torch

from hgde.geometry import ball
from hgde.graph import Graph
from hgde.kernels import (
    diffuse,
    link_logits,
    reference,
    set_backend,
    tangent_sum_global,
    tangent_sum_global_linear,
)
from hgde.kernels.ops import pairs
from kernels.graphs import awkward, points, weights

FLOAT32_BUDGET = 5e-6


@pytest.fixture(autouse=True)
def fresh_rounds():
    pairs.rounds.cache_clear()
    yield
    pairs.rounds.cache_clear()


def dense(z, q, k, c):
    """The definition, with every table there is."""
    affinity = torch.einsum("ihe,jhe->hij", q, k).sigmoid()
    weight = (affinity / affinity.sum(-1, keepdim=True)).mean(0)
    return (weight[..., None] * ball.logmap(z[:, None], z[None], c)).sum(1)


def scores(nodes, heads, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(nodes, heads, 4, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2)]


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("nodes", [1, 5, 90, 330])
@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_tiles_equal_the_dense_table(backend, nodes, heads, monkeypatch):
    monkeypatch.setattr(pairs, "TILES", 1)
    monkeypatch.setattr(reference, "PAIRS", 2000)
    inputs = [t.requires_grad_() for t in (points(nodes, 6), *scores(nodes, heads), torch.tensor(0.7).double())]
    ours, theirs = tangent_sum_global(*inputs, backend=backend), dense(*inputs)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)
    g = points(nodes, 6, 5)
    for a, b in zip(*(torch.autograd.grad(out, inputs, g) for out in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_gradcheck():
    inputs = [t.requires_grad_() for t in (points(7, 3), *scores(7, 2), torch.tensor(0.7).double())]
    assert torch.autograd.gradcheck(lambda *a: tangent_sum_global(*a, backend="fused"), inputs)


@pytest.mark.parametrize("heads", [1, 2])
def test_float32_within_its_budget(heads):
    z, (q, k) = points(300, 16, dtype=torch.float32), scores(300, heads, torch.float32)
    exact = dense(z.double(), q.double(), k.double(), 1.0)
    error = (tangent_sum_global(z, q, k, 1.0, backend="fused") - exact).abs().max() / exact.abs().max()
    assert error < FLOAT32_BUDGET


def test_close_pairs_near_the_boundary_do_not_cancel():
    z = torch.full((4, 2), 0.7, dtype=torch.float32)
    z += 1e-5 * torch.arange(8).reshape(4, 2)
    q, k = scores(4, 1, torch.float32)
    exact = dense(z.double(), q.double(), k.double(), 1.0)
    ours = tangent_sum_global(z, q, k, 1.0, backend="fused")
    # The final sum of points cancels to a few units of rounding of the points themselves; the distances must not.
    assert (ours - exact).abs().max() < 4 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_gradients_of_points_on_the_boundary_are_finite_and_right(backend):
    z = torch.nn.functional.normalize(torch.randn(12, 3, generator=torch.Generator().manual_seed(0)), dim=1) * 0.99999
    z[6:] = z[:6]  # pairs that coincide
    q, k = scores(12, 1, torch.float32)
    found, exact = [], []
    for dtype, into in ((torch.float32, found), (torch.float64, exact)):
        inputs = [tensor.to(dtype).requires_grad_() for tensor in (z, q, k)]
        path = backend if dtype == torch.float32 else "reference"
        out = tangent_sum_global(*inputs, 1.0, backend=path)
        into += torch.autograd.grad(out, inputs, torch.full_like(out, 1e7))
    for ours, right in zip(found, exact, strict=True):
        assert (ours - right).norm() < 1e-4 * right.norm()


def test_no_nodes():
    assert tangent_sum_global(torch.zeros(0, 3), torch.zeros(0, 1, 2), torch.zeros(0, 1, 2), 1.0).shape == (0, 3)
    assert tangent_sum_global_linear(torch.zeros(0, 3), torch.zeros(0, 1, 2), torch.zeros(0, 1, 2), 1.0).shape == (0, 3)


def test_shapes_of_scores_are_checked():
    with pytest.raises(ValueError, match="q and k must both be"):
        tangent_sum_global(torch.zeros(4, 3), torch.zeros(4, 2), torch.zeros(4, 2), 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["edge", "attention", "channel", "all pairs", "links"])
def test_the_plain_path_compiles_without_graph_breaks(kind):
    """What other devices run. Inductor itself is measured by ``benchmarks/compiled_plain.py``."""
    graph, z = awkward(True, 9), points(9, 3, dtype=torch.float32).requires_grad_()
    c = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    if kind == "all pairs":
        rest = scores(9, 2, torch.float32)
        function = lambda z, c, q, k: tangent_sum_global(z, q, k, c)  # noqa: E731  # a name for an expression
    elif kind == "links":
        rest = [torch.tensor([[0, 3, 4], [1, 2, 8]])]
        function = lambda z, c, pairs: link_logits(z, pairs, c)  # noqa: E731  # a name for an expression
    else:
        rest, build = weights(kind, graph, 3, torch.float32)
        pattern = (graph.indptr, graph.indices)

        def function(z, c, *rest):
            return diffuse(z, Graph(*pattern), build(*rest), c, z, (1.0, 0.6, 0.1), "tanh")

    set_backend("reference")
    try:
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        found = [f(z, c, *rest) for f in (compiled, function)]
        grads = [torch.autograd.grad(out.square().sum(), (z, c)) for out in found]
    finally:
        set_backend("auto")
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
