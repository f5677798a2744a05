"""Sums, inner products and softmax along edges: against the plain formulas, torch's checks of operations."""

import pytest
import torch

from hgde.graph import Graph
from hgde.kernels import get_backend, set_backend
from hgde.kernels.ops import between
from hgde.kernels.ops.masked import masked_sums
from hgde.kernels.ops.register import registered
from hgde.models.zoo._common import edge_dot, edge_scores, edge_softmax, edge_sum, pattern
from kernels.graphs import awkward

NODES = 9


def numbers(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


def matrix(dtype=torch.float64):
    graph = awkward(True, NODES)
    return pattern(graph, torch.ones(graph.num_edges, dtype=dtype))


def calls(edges, heads, width, dtype):
    count = edges.indices.numel()
    weights, x, y = numbers(count, heads, dtype=dtype), *(numbers(NODES, heads, width, dtype=dtype) for _ in range(2))
    ends = (numbers(NODES, heads, dtype=dtype), numbers(heads, NODES, dtype=dtype).T)
    return {
        "sum": (edge_sum, (weights, x)),
        "dot": (edge_dot, (x, 2 * y)),
        "scores": (edge_scores, ends),
        "softmax": (edge_softmax, (9 * weights,)),
    }


def outcome(function, edges, given):
    given = [g.detach().clone().requires_grad_() for g in given]
    out = function(edges, *given)
    pull = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    grads = torch.autograd.grad(out, given, pull)
    return [out.detach(), *grads]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("heads", "width"), [(1, 5), (3, 8), (8, 17)])
@pytest.mark.parametrize("name", ["sum", "dot", "scores", "softmax"])
def test_compiled_and_plain_agree_with_their_gradients(name, heads, width, dtype):
    edges = matrix(dtype)
    function, given = calls(edges, heads, width, dtype)[name]
    compiled = outcome(function, edges, given)
    before = get_backend()
    set_backend("reference")
    try:
        plain = outcome(function, edges, given)
    finally:
        set_backend(before)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for one, other in zip(compiled, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_one_head_needs_no_dimension_of_its_own():
    edges = matrix()
    w, x = numbers(edges.indices.numel(), 1), numbers(NODES, 1, 4)
    assert torch.equal(edge_sum(edges, w[:, 0], x[:, 0]), edge_sum(edges, w, x)[:, 0])
    assert torch.equal(edge_dot(edges, x[:, 0], x[:, 0]), edge_dot(edges, x, x)[:, 0])
    assert torch.equal(edge_softmax(edges, w[:, 0]), edge_softmax(edges, w)[:, 0])
    assert torch.equal(edge_scores(edges, x[:, 0, 0], x[:, 0, 1]), edge_scores(edges, x[:, :, 0], x[:, :, 1])[:, 0])


def test_large_scores_and_rows_without_edges():
    edges = matrix()
    weights = edge_softmax(edges, 1000 * numbers(edges.indices.numel(), 2))
    total = torch.zeros(NODES, 2, dtype=torch.float64).index_add(0, edges.rows, weights)
    torch.testing.assert_close(total, (edges.indptr.diff() > 0).double()[:, None].expand(NODES, 2))


def test_torch_s_own_checks():
    edges = matrix()
    ends = (edges.indptr, edges.indices)
    w, x, y = numbers(edges.indices.numel(), 2), numbers(NODES, 2, 3), numbers(NODES, 2, 4)[..., 1:]
    for transposed in (False, True):
        torch.library.opcheck(registered(between.edge_sum), (w, x, *ends, transposed))
    torch.library.opcheck(registered(between.edge_dot), (x, y, *ends))
    torch.library.opcheck(registered(between.edge_softmax), (w, *ends))
    torch.library.opcheck(registered(between.edge_add), (x[..., 0], y[..., 0], *ends, 0.2))
    mask, cuts = (numbers(6, NODES) > 0).double(), torch.tensor([0, 3, NODES, 5, 5, 1])
    torch.library.opcheck(registered(masked_sums), (mask, cuts, torch.arange(NODES).flip(0), x))
    assert torch.autograd.gradcheck(lambda w, x: between.edge_sum(w, x, *ends, True), (w, x))
    assert torch.autograd.gradgradcheck(lambda a, b: between.edge_dot(a, b, *ends), (x, y))


def test_any_number_of_threads_gives_the_same_bits():
    nodes, heads, width = 900, 4, 16
    drawn = torch.Generator().manual_seed(0)
    graph = Graph.from_edges(torch.randint(nodes, (2, 12_000), generator=drawn), nodes)
    edges = pattern(graph, torch.ones(graph.num_edges))
    w, x = numbers(graph.num_edges, heads, dtype=torch.float32), numbers(nodes, heads, width, dtype=torch.float32)
    mask, cuts = (numbers(nodes, nodes) > 0).float(), torch.randint(nodes, (nodes,), generator=drawn)
    table, order = numbers(nodes, 2, width, dtype=torch.float32), torch.randperm(nodes, generator=drawn)

    def work():
        found = [
            edge_sum(edges, edge_softmax(edges, w), x),
            edge_dot(edges, x, x),
            edge_scores(edges, x[..., 0], w[:nodes]),
        ]
        found.append(masked_sums(mask, cuts, order, table))
        return [*found, *torch.autograd.grad(sum(y.square().sum() for y in found), (w, x, table))]

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = work()
        torch.set_num_threads(3)
        together = work()
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))
