"""Hard negatives: no links, distinct, related to the end they keep, and drawn the same for the same seed."""

import networkx
import numpy as np
import pytest
import torch

from hgde.data.splits import hard_negatives, link_split
from hgde.graph import Graph, GraphError, SparseFeatures


@pytest.fixture(scope="module")
def graph():
    made = networkx.powerlaw_cluster_graph(300, 4, 0.5, seed=0)
    return Graph.from_edges(list(made.edges), 300)


@pytest.fixture(scope="module")
def split(graph):
    return link_split(graph, 0, "clean")


def features(seed=0):
    return torch.from_numpy(np.random.RandomState(seed).randn(300, 8)).float()


@pytest.mark.parametrize("k", [2, 5, 20])
def test_they_are_distinct_pairs_without_a_link_that_share_an_end(graph, split, k):
    pairs = hard_negatives(split.graph, split.test_pos, features(), k, exclude=graph.undirected_edges)
    assert pairs.shape == (2, split.test_pos.shape[1], k)
    assert bool((pairs[0] < pairs[1]).all())
    links = {tuple(edge) for edge in graph.undirected_edges.T.tolist()}
    for place, (a, b) in enumerate(split.test_pos.T.tolist()):
        own = list(map(tuple, pairs[:, place].T.tolist()))
        assert len(set(own)) == k
        assert not set(own) & links
        assert sum(a in pair for pair in own) == (k + 1) // 2
        assert sum(b in pair for pair in own) == k // 2


def test_links_that_nobody_mentions_may_be_taken_for_negatives(graph, split):
    links = {tuple(edge) for edge in graph.undirected_edges.T.tolist()}
    pairs = hard_negatives(split.graph, split.test_pos, features(), 20)
    own = {tuple(pair) for pair in pairs.flatten(1).T.tolist()}
    assert not own & {tuple(edge) for edge in torch.cat([split.train_pos, split.test_pos], 1).T.tolist()}
    assert own & links, "validation edges are among them: this is what exclude is for"


def test_the_same_seed_gives_the_same_pairs_and_another_breaks_ties_otherwise(split):
    first, again, other = (hard_negatives(split.graph, split.test_pos, None, 10, seed) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_they_are_closer_than_random_ones(graph, split):
    """Hop distances and common neighbours of hard negatives lie between those of links and of random pairs."""
    adjacency = split.graph.to_scipy().toarray()
    common = adjacency @ adjacency
    hard = hard_negatives(split.graph, split.test_pos, None, 10, exclude=graph.undirected_edges).flatten(1)
    of_hard, of_random = common[tuple(hard)].mean(), common[tuple(split.test_neg)].mean()
    assert of_hard > 5 * of_random


def test_features_have_a_say_of_their_own():
    """In a graph without edges only features can tell who is related."""
    groups = torch.arange(40) % 4
    rows = torch.nn.functional.one_hot(groups, 4).float()
    pairs = hard_negatives(Graph.from_edges([], 40), torch.tensor([[0], [1]]), rows, 8)
    assert bool((groups[pairs[0]] == groups[pairs[1]]).all())
    from scipy.sparse import csr_matrix

    sparse = SparseFeatures.from_scipy(csr_matrix(rows.numpy()))
    assert torch.equal(hard_negatives(Graph.from_edges([], 40), torch.tensor([[0], [1]]), sparse, 8), pairs)


def test_places_that_no_ranking_fills_are_drawn_at_random():
    sparse, link = Graph.from_edges([(0, 1)], 50), torch.tensor([[2], [3]])
    drawn = {tuple(hard_negatives(sparse, link, None, 10, seed)[1, 0].tolist()) for seed in range(4)}
    assert len(drawn) > 1
    assert {len(partners) for partners in drawn} == {10}


def test_a_node_with_too_few_others_says_so():
    with pytest.raises(GraphError, match="nodes without a link to it, 3 are needed"):
        hard_negatives(Graph.from_edges([(0, 1), (0, 2)], 4), torch.tensor([[0], [3]]), None, 6)
    with pytest.raises(GraphError, match="at least 2 negatives"):
        hard_negatives(Graph.from_edges([], 4), torch.tensor([[0], [3]]), None, 1)
