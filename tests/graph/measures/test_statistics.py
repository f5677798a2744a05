"""Statistics against graphs whose answers are known, and hyperbolicity against a plain loop over all 4-tuples."""

from itertools import combinations

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hgde.graph import Graph
from hgde.graph.measures.hyperbolicity import hyperbolicity
from hgde.graph.measures.statistics import component_labels, edge_homophily, graph_statistics


def from_networkx(graph):
    return Graph.from_edges(list(graph.edges), graph.number_of_nodes())


def test_counts_of_a_small_graph():
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 0), (3, 4), (5, 5)], 7, self_loops=True)
    measured = graph_statistics(graph, torch.tensor([0, 0, 1, -1, 1, 0, 0]))
    assert (measured.num_nodes, measured.num_edges, measured.num_self_loops) == (7, 4, 1)
    assert (measured.num_components, measured.largest_component, measured.num_isolated) == (4, 3, 2)
    assert (measured.min_degree, measured.max_degree, measured.median_degree) == (0, 2, 1)
    assert measured.mean_degree == pytest.approx(8 / 7)
    assert measured.edge_homophily == pytest.approx(1 / 3), "edges at unlabelled nodes are not counted"


@pytest.mark.parametrize("num_nodes", [0, 1, 3])
def test_graphs_without_edges(num_nodes):
    graph = Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), num_nodes)
    measured = graph_statistics(graph, torch.zeros(num_nodes, dtype=torch.int64))
    assert (measured.num_components, measured.num_isolated) == (num_nodes, num_nodes)
    assert measured.edge_homophily is None
    assert hyperbolicity(graph).maximum == 0


def test_direction_does_not_matter_for_components():
    graph = Graph.from_edges([(0, 1), (2, 1)], undirected=False)
    assert component_labels(graph).tolist() == [0, 0, 0]
    assert edge_homophily(graph, torch.tensor([1, 1, 0])) == 0.5


def all_tuples(graph):
    distance = dict(networkx.all_pairs_shortest_path_length(graph))
    deltas = []
    for a, b, c, d in combinations(graph, 4):
        sums = sorted(
            [distance[a][b] + distance[c][d], distance[a][c] + distance[b][d], distance[a][d] + distance[b][c]]
        )
        deltas.append((sums[2] - sums[1]) / 2)
    return max(deltas), float(np.mean(deltas))


@settings(max_examples=25, deadline=None)
@given(st.integers(4, 14), st.integers(0, 20), st.integers(0, 10**6))
def test_exact_hyperbolicity_of_random_graphs(num_nodes, extra, seed):
    graph = networkx.random_labeled_tree(num_nodes, seed=seed)
    random = np.random.RandomState(seed)
    graph.add_edges_from(pair for pair in random.randint(0, num_nodes, (extra, 2)).tolist() if pair[0] != pair[1])
    largest, mean = all_tuples(graph)
    measured = hyperbolicity(from_networkx(graph))
    assert measured.exact
    assert measured.maximum == largest
    assert measured.mean == pytest.approx(mean)


@pytest.mark.parametrize("size", [4, 5, 8, 12, 13, 20])
def test_cycles(size):
    """The delta of a cycle of ``n`` nodes: ``n // 4``, half a step less if ``n`` is 1 more than a multiple of 4."""
    expected = size // 4 - (0.5 if size % 4 == 1 else 0)
    assert hyperbolicity(from_networkx(networkx.cycle_graph(size))).maximum == expected


@pytest.mark.parametrize("exact_up_to", [0, 1000])
def test_trees_and_complete_graphs_have_none(exact_up_to):
    for graph in (networkx.random_labeled_tree(300, seed=0), networkx.complete_graph(30)):
        measured = hyperbolicity(from_networkx(graph), 2000, exact_up_to=exact_up_to)
        assert (measured.maximum, measured.mean) == (0, 0)


def test_the_interval_covers_the_exact_mean_about_as_often_as_it_says():
    graph = from_networkx(networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(6, 7)))
    exact = hyperbolicity(graph)
    covered = 0
    for seed in range(60):
        sampled = hyperbolicity(graph, 400, seed, exact_up_to=0)
        assert not sampled.exact
        assert sampled.maximum <= exact.maximum
        covered += sampled.low <= exact.mean <= sampled.high
    assert covered >= 50


def test_only_the_largest_component_is_measured():
    graph = networkx.disjoint_union(networkx.random_labeled_tree(30, seed=1), networkx.cycle_graph(8))
    assert hyperbolicity(from_networkx(graph)).maximum == 0


def test_more_than_64_sources_and_long_paths():
    path = from_networkx(networkx.path_graph(500))
    assert hyperbolicity(path, 3000, exact_up_to=0).maximum == 0
    ring = hyperbolicity(from_networkx(networkx.cycle_graph(400)), 20_000, exact_up_to=0)
    assert 90 < ring.maximum <= 100
