"""Trajectories to the last states of some nodes: the same as all rows, selected at the end."""

import gc
import weakref

import pytest
import torch

from hgde.graph import Graph
from hgde.kernels import AttentionRule, ChannelWeights, EdgeWeights, attend_steps, diffuse_steps, reach_of
from hgde.kernels.cpu.layout import layout_of
from kernels.graphs import awkward, points, vectors

ETA = (1.0, 0.6, -0.3)


def tree(nodes: int = 700) -> Graph:
    """Every node tied to one before it: far from a few leaves there is much that they do not depend on."""
    generator = torch.Generator().manual_seed(0)
    above = [int(torch.randint(max(0, n - 40), n, (1,), generator=generator)) for n in range(1, nodes)]
    return Graph.from_edges(list(zip(above, range(1, nodes), strict=True)), nodes)


ASKED = torch.tensor([650, 3, 420, 77])


def run(kind, restricted, steps=3, dtype=torch.float64, width=5, eta=ETA, backend="auto"):
    """The states of the nodes asked for, and gradients of start, curvature, weights of residual and of attention."""
    graph = tree()
    reach = reach_of(graph, ASKED, steps)
    z, c = points(graph.num_nodes, width, 1, dtype=dtype).requires_grad_(), torch.tensor(0.8).double().requires_grad_()
    edge = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(dtype) / 9
    three = None if eta is None else torch.tensor(eta, dtype=torch.float64, requires_grad=True)
    scoring = vectors(width, 4, 3, dtype=dtype).requires_grad_()
    start = z.index_select(0, reach.rows) if restricted else z
    options = {"eta": three, "activation": "tanh", "backend": backend, "reach": reach if restricted else None}
    if kind == "attention":
        out = attend_steps(start, graph, AttentionRule(scoring, edge=edge), c, steps, **options)
    else:
        origin = torch.linspace(0, 0.2, graph.num_nodes, dtype=dtype) if kind == "anchored" else None
        out = diffuse_steps(start, graph, EdgeWeights(edge, origin), c, steps, **options)
    out = out if restricted else out.index_select(0, ASKED)
    leaves = [x for x in (z, c, three, scoring if kind == "attention" else None) if x is not None]
    return out.detach(), *torch.autograd.grad(out, leaves, vectors(*out.shape, 4).to(dtype))


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("eta", [ETA, None])
@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("kind", ["edges", "anchored", "attention"])
def test_equals_all_rows_selected(kind, steps, eta, backend):
    restricted, whole = (run(kind, way, steps, eta=eta, backend=backend) for way in (True, False))
    for ours, expected in zip(restricted, whole, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", ["edges", "attention"])
def test_states_have_the_bits_of_all_rows(kind):
    restricted, whole = (run(kind, way, dtype=torch.float32, width=8) for way in (True, False))
    assert torch.equal(restricted[0], whole[0])


def test_steps_that_keep_no_sums(monkeypatch):
    monkeypatch.setattr("hgde.kernels.ops.diffusion.KEEP_BYTES", 0)
    for kind in ("edges", "attention"):
        for ours, expected in zip(run(kind, True), run(kind, False), strict=True):
            torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", ["edges", "attention"])
def test_same_bits_for_any_number_of_threads(kind, monkeypatch):
    monkeypatch.setattr("hgde.kernels.cpu.threads.MIN_SHARED", 1)
    monkeypatch.setattr("hgde.kernels.cpu.threads.ALWAYS_SHARED", 0)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(run(kind, True, 4, torch.float32, 8))
    finally:
        torch.set_num_threads(before)
    for one, two, three in zip(*results, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)


def test_rows_come_by_distance_and_no_step_has_more_than_it_needs():
    graph = tree()
    reach = reach_of(graph, ASKED, 3)
    assert reach.rows[: len(ASKED)].tolist() == ASKED.tolist()
    needed, counts = set(ASKED.tolist()), [len(ASKED)]
    for _ in range(3):
        needed |= {j for i in needed for j in graph.indices[graph.indptr[i] : graph.indptr[i + 1]].tolist()}
        counts.append(len(needed))
    assert reach.counts == tuple(reversed(counts))
    assert set(reach.rows.tolist()) == needed
    assert reach_of(graph, ASKED, 3) is reach


def test_all_nodes_need_all_nodes():
    graph = tree()
    assert reach_of(graph, torch.arange(graph.num_nodes), 3).counts == (graph.num_nodes,) * 4


def test_what_cannot_be_restricted_has_none():
    graph = tree()
    assert reach_of(graph, torch.tensor([5, 9, 5]), 3) is None  # a node twice
    assert reach_of(graph, ASKED[:0], 3) is None
    assert reach_of(awkward(True, 60), torch.tensor([50]), 1) is None  # edges without a reverse


def test_nodes_and_weights_that_change_are_seen():
    graph, nodes = tree(), ASKED.clone()
    reach = reach_of(graph, nodes, 2)
    weights = torch.ones(graph.num_edges)
    assert (reach.of_edges(weights) == 1).all()
    weights.mul_(2)
    assert (reach.of_edges(weights) == 2).all()
    nodes[0] = 10
    assert reach_of(graph, nodes, 2).rows[0] == 10


def test_refusals():
    graph = tree()
    reach, z = reach_of(graph, ASKED, 2), points(graph.num_nodes, 4)
    with pytest.raises(ValueError, match="nodes within reach"):
        diffuse_steps(z, graph, EdgeWeights(torch.ones(graph.num_edges).double()), 1.0, 2, reach=reach)
    channels = ChannelWeights(torch.ones(1, 4), torch.zeros(graph.num_edges, dtype=torch.int64), z)
    with pytest.raises(ValueError, match="leave out reach"):
        diffuse_steps(z[reach.rows], graph, channels, 1.0, 2, reach=reach)
    edges = EdgeWeights(torch.ones(graph.num_edges).double())
    with pytest.raises(ValueError, match="2 steps"):
        diffuse_steps(z[reach.rows], graph, edges, 1.0, 3, reach=reach)


def test_what_was_worked_out_for_nodes_goes_with_them():
    graph, nodes = tree(), ASKED.clone()
    layout = weakref.ref(layout_of(*reach_of(graph, nodes, 2).pattern))
    assert layout() is not None
    del nodes
    gc.collect()
    assert layout() is None
