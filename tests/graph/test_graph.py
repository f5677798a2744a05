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


WEIGHTED = PAIRS.flatmap(
    lambda case: st.tuples(
        st.just(case[0]),
        st.just(case[1]),
        st.lists(st.integers(1, 9), min_size=len(case[1]), max_size=len(case[1])),
    )
)


def dense_weights(graph):
    return graph.to_scipy(weighted=True).toarray()


@settings(max_examples=80, deadline=None)
@given(WEIGHTED, st.booleans(), st.booleans())
def test_weights_of_repeated_edges_add_up_and_both_directions_share_the_larger(case, undirected, self_loops):
    num_nodes, pairs, weights = case
    graph = Graph.from_edges(pairs, num_nodes, weights, undirected=undirected, self_loops=self_loops)
    expected = np.zeros((num_nodes, num_nodes))
    for (source, target), weight in zip(pairs, weights, strict=True):
        if self_loops or source != target:
            expected[target, source] += weight
    if undirected:
        expected = np.maximum(expected, expected.T)
    np.testing.assert_array_equal(dense_weights(graph), expected)
    assert graph.weights.dtype == torch.float64
    np.testing.assert_array_equal(graph.weighted_degree, expected.sum(1))
    _, targets, order = graph.by_source
    assert graph.weights[order].tolist() == [
        expected[t, s] for t, s in zip(targets.tolist(), graph.indices[order].tolist(), strict=True)
    ]


@settings(max_examples=40, deadline=None)
@given(WEIGHTED, st.randoms(use_true_random=False))
def test_weights_follow_their_edges(case, random):
    num_nodes, pairs, weights = case
    graph = Graph.from_edges(pairs, num_nodes, weights, undirected=False, self_loops=True)
    dense = dense_weights(graph)
    nodes = random.sample(range(num_nodes), random.randint(1, num_nodes))
    np.testing.assert_array_equal(dense_weights(graph.subgraph(torch.tensor(nodes))), dense[np.ix_(nodes, nodes)])
    loops = np.diag(np.where(np.diag(dense) == 0, 1.0, 0.0))
    np.testing.assert_array_equal(dense_weights(graph.with_self_loops()), dense + loops)
    kept = torch.tensor([random.random() < 0.5 for _ in range(graph.num_edges)], dtype=torch.bool)
    assert torch.equal(graph.keep_edges(kept).weights, graph.weights[kept])
    assert torch.equal(graph.keep_edges(kept).edge_index, graph.edge_index[:, kept])
    assert torch.equal(graph.to("cpu").weights, graph.weights)


def test_the_hash_sees_weights():
    pairs = [(0, 1), (1, 2)]
    plain, ones, twos = (Graph.from_edges(pairs, 3, weights) for weights in (None, [1.0, 1.0], [2.0, 2.0]))
    assert len({plain.hash, ones.hash, twos.hash}) == 3
    assert ones.unweighted().hash == plain.hash
    assert torch.equal(plain.weighted_degree, ones.weighted_degree)


def test_pairs_are_taken_out_in_both_directions():
    graph = Graph.from_edges([(0, 1), (1, 0), (2, 1), (2, 0)], 3, [1.0, 2.0, 3.0, 4.0], undirected=False)
    rest = graph.without_pairs(torch.tensor([[1], [0]]))
    assert rest.edge_index.tolist() == [[2, 2], [0, 1]]
    assert rest.weights.tolist() == [4.0, 3.0]


@pytest.mark.parametrize("weights", [[1.0, 0.0], [1.0, -1.0], [1.0, float("nan")], [float("inf"), 1.0]])
def test_impossible_weights_say_where(weights):
    with pytest.raises(GraphError, match=r"weight of edge \d is .*; weights are positive and finite"):
        Graph.from_edges([(0, 1), (1, 2)], 3, weights)
    with pytest.raises(GraphError, match="one weight for each of 2 edges"):
        Graph.from_edges([(0, 1), (1, 2)], 3, weights[:1])


def test_a_weighted_matrix_keeps_its_values_when_asked():
    matrix = coo_matrix(([2.0, 3.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert Graph.from_scipy(matrix).weights is None
    weighted = Graph.from_scipy(matrix, weighted=True)
    np.testing.assert_array_equal(dense_weights(weighted), (matrix + matrix.T).toarray())
    directed = Graph.from_scipy(matrix, undirected=False, weighted=True)
    np.testing.assert_array_equal(dense_weights(directed), matrix.toarray().T)
    assert "directed, weighted" in repr(directed)


def test_a_list_of_triples_is_not_read_as_pairs():
    with pytest.raises(GraphError, match=r"must hold pairs \(source, target\), got shape \[2, 3\]"):
        Graph.from_edges([(0, 1, 5), (1, 2, 7)])


def test_every_edge_knows_its_undirected_edge():
    graph = Graph.from_edges([(0, 1), (1, 0), (2, 2), (1, 3)], 4, undirected=False, self_loops=True)
    ends = torch.stack([torch.minimum(graph.rows, graph.indices), torch.maximum(graph.rows, graph.indices)])
    proper = graph.rows != graph.indices
    assert torch.equal(graph.undirected_edges[:, graph.undirected_index[proper]], ends[:, proper])
    assert graph.undirected_index[~proper].tolist() == [-1]
