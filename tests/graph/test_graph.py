"""The graph container: what goes in comes out, in the promised order."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix

from hgde.graph import Graph, GraphError

PAIRS = st.integers(1, 12).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40))
)


@settings(max_examples=60, deadline=None)
@given(PAIRS, st.booleans(), st.booleans())
def test_edges_are_those_given(case, undirected, self_loops):
    num_nodes, pairs = case
    graph = Graph.from_edges(pairs, num_nodes, undirected=undirected, self_loops=self_loops)
    wanted = {(u, v) for u, v in pairs if self_loops or u != v}
    if undirected:
        wanted |= {(v, u) for u, v in wanted}
    assert sorted(map(tuple, graph.edge_index.T.tolist())) == sorted(wanted)
    assert graph.indptr.tolist() == np.concatenate([[0], np.cumsum(graph.degree.numpy())]).tolist()
    for node in range(num_nodes):
        row = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
        assert row == sorted(row)
    assert graph.is_symmetric == all((v, u) in wanted for u, v in wanted)
    expected = sorted({(min(p), max(p)) for p in wanted if p[0] != p[1]})
    assert list(map(tuple, graph.undirected_edges.T.tolist())) == expected


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_grouping_by_source_is_the_transpose(case):
    num_nodes, pairs = case
    graph = Graph.from_edges(pairs, num_nodes, undirected=False)
    indptr, targets, order = graph.by_source
    sources = torch.repeat_interleave(torch.arange(num_nodes), indptr.diff())
    assert torch.equal(graph.indices[order], sources)
    assert torch.equal(graph.rows[order], targets)


@settings(max_examples=40, deadline=None)
@given(PAIRS, st.randoms(use_true_random=False))
def test_subgraphs_and_relabelling(case, random):
    num_nodes, pairs = case
    graph = Graph.from_edges(pairs, num_nodes)
    nodes = random.sample(range(num_nodes), random.randint(1, num_nodes))
    part = graph.subgraph(torch.tensor(nodes))
    dense, inner = graph.to_scipy().toarray(), part.to_scipy().toarray()
    np.testing.assert_array_equal(inner, dense[np.ix_(nodes, nodes)])


def test_the_hash_sees_structure_and_nothing_else():
    graph = Graph.from_edges([(0, 1), (1, 2)], 4)
    assert graph.hash == Graph.from_edges([(2, 1), (1, 0), (0, 1)], 4).hash
    assert graph.hash != Graph.from_edges([(0, 1), (1, 2)], 5).hash
    assert graph.hash != Graph.from_edges([(0, 1), (1, 3)], 4).hash


def test_self_loops_are_added_once():
    graph = Graph.from_edges([(0, 0), (0, 1)], 3, self_loops=True).with_self_loops()
    assert sorted(map(tuple, graph.edge_index.T.tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)]


def test_scipy_round_trip_ignores_stored_zeros():
    matrix = coo_matrix(([1.0, 0.0, 2.0], ([0, 1, 2], [1, 2, 2])), shape=(3, 3))
    graph = Graph.from_scipy(matrix)
    assert graph.undirected_edges.tolist() == [[0], [1]]
    assert Graph.from_scipy(graph.to_scipy()).hash == graph.hash


@pytest.mark.parametrize(
    ("edges", "num_nodes", "words"),
    [
        (np.zeros((3, 2), dtype=int), None, r"shape \[2, E\]"),
        (np.array([[0.5], [1.0]]), None, "integer node numbers"),
        (np.array([[0, 1], [1, -2]]), None, r"edge 1 is \(1, -2\): node numbers start at 0"),
        (np.array([[0, 1], [1, 7]]), 3, r"edge 1 is \(1, 7\), but the graph has 3 nodes"),
    ],
)
def test_impossible_graphs_say_where(edges, num_nodes, words):
    with pytest.raises(GraphError, match=words):
        Graph.from_edges(edges, num_nodes)


def test_only_square_matrices():
    with pytest.raises(GraphError, match="must be square, got 2 x 3"):
        Graph.from_scipy(coo_matrix(np.ones((2, 3))))


@pytest.mark.parametrize("num_nodes", [0, 1, 5])
def test_graphs_without_edges(num_nodes):
    graph = Graph.from_edges([], num_nodes)
    assert (graph.num_nodes, graph.num_edges) == (num_nodes, 0)
    assert graph.is_symmetric
    assert graph.undirected_edges.shape == (2, 0)
    assert "undirected" in repr(graph)
