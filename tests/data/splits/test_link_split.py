"""Link splits: disjoint as undirected edges, negatives included; messages on training edges only."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, triu

from hgde.data import load
from hgde.data.splits.links import LINK_PROTOCOLS, link_split
from hgde.graph import Graph, GraphError


def random_graph(num_nodes=120, num_edges=700, seed=0):
    random = np.random.RandomState(seed)
    return Graph.from_edges(random.randint(0, num_nodes, (2, num_edges)), num_nodes)


def keys(pairs, num_nodes):
    low, high = pairs.min(0).values, pairs.max(0).values
    return set((low * num_nodes + high).tolist())


@pytest.mark.parametrize("protocol", LINK_PROTOCOLS)
@pytest.mark.parametrize("seed", range(5))
def test_parts_are_disjoint_and_messages_stay_on_training_edges(protocol, seed):
    graph = random_graph(seed=seed)
    n, split = graph.num_nodes, link_split(graph, seed, protocol)
    edges = keys(graph.undirected_edges, n)
    positives = [keys(part, n) for part in (split.train_pos, split.val_pos, split.test_pos)]
    negatives = [keys(part, n) for part in (split.val_neg, split.test_neg)]
    assert sum(map(len, positives)) == len(edges)
    assert set.union(*positives) == edges
    assert not edges & set.union(*negatives)
    assert not negatives[0] & negatives[1]
    assert len(negatives[0]) == split.val_pos.shape[1] == int(0.05 * len(edges))
    assert len(negatives[1]) == split.test_pos.shape[1] == int(0.10 * len(edges))
    assert keys(split.graph.undirected_edges, n) == positives[0]
    assert split.graph.is_symmetric
    assert split.graph.num_nodes == n


@pytest.mark.parametrize("protocol", LINK_PROTOCOLS)
def test_a_split_is_reproducible_from_its_seed(protocol):
    graph = random_graph()
    assert link_split(graph, 5, protocol).hash == link_split(graph, 5, protocol).hash
    assert link_split(graph, 5, protocol).hash != link_split(graph, 6, protocol).hash
    assert link_split(graph, 5, "clean").hash != link_split(graph, 5, "published").hash
    assert torch.equal(link_split(graph, 5, "clean").test_pos, link_split(graph, 5, "published").test_pos)


def test_clean_training_negatives_avoid_everything_held_out():
    graph = random_graph(num_nodes=25, num_edges=120)
    split = link_split(graph, 0, "clean")
    drawn = split.sample_training_negatives(20_000, torch.Generator().manual_seed(0))
    n = graph.num_nodes
    held_out = keys(torch.cat([split.val_neg, split.test_neg], dim=1), n)
    assert drawn.shape == (2, 20_000)
    assert bool((drawn[0] < drawn[1]).all())
    assert not keys(drawn, n) & (keys(graph.undirected_edges, n) | held_out)
    free = n * (n - 1) // 2 - len(keys(graph.undirected_edges, n)) - len(held_out)
    assert len(keys(drawn, n)) == free, "every pair that may be drawn is drawn"


def test_published_training_negatives_contain_what_hgcns_do():
    graph = random_graph(num_nodes=25, num_edges=120)
    split = link_split(graph, 0, "published")
    drawn = split.sample_training_negatives(40_000, torch.Generator().manual_seed(0))
    n = graph.num_nodes
    seen = keys(drawn, n)
    assert not seen & keys(split.train_pos, n)
    assert keys(split.test_pos, n) <= seen, "the fault: test edges are training negatives"
    assert bool((drawn[0] == drawn[1]).any()), "the other fault: a node paired with itself"
    assert len(seen) == n * (n + 1) // 2 - split.train_pos.shape[1]
    counts = torch.bincount(drawn[0] * n + drawn[1])
    counts = counts[counts > 0].double()
    assert float(counts.std()) < 1.3 * float(counts.mean()) ** 0.5, "all pairs are equally likely, loops included"


def test_negatives_depend_on_the_generator_alone():
    split = link_split(random_graph(), 0, "clean")
    first, again = (split.sample_training_negatives(50, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first, again)


def reference_split(graph, seed):
    """HGCN's procedure as its authors wrote it: shuffle the rows of both pair lists in place."""
    adjacency = graph.to_scipy()
    random = np.random.RandomState(seed)
    edges = np.stack(triu(adjacency).nonzero(), axis=1)
    random.shuffle(edges)
    others = np.stack(triu(csr_matrix(1.0 - adjacency.toarray())).nonzero(), axis=1)
    random.shuffle(others)
    num_val, num_test = int(len(edges) * 0.05), int(len(edges) * 0.1)
    cuts = [num_val, num_val + num_test]
    return np.split(edges, cuts), np.split(others, cuts)[:2]


@pytest.mark.parametrize("seed", [0, 1234])
def test_the_published_split_is_hgcns_for_the_seed(seed):
    graph = random_graph()
    split = link_split(graph, seed, "published")
    (val, test, train), (val_neg, test_neg) = reference_split(graph, seed)
    for ours, theirs in (
        (split.val_pos, val),
        (split.test_pos, test),
        (split.train_pos, train),
        (split.val_neg, val_neg),
        (split.test_neg, test_neg),
    ):
        np.testing.assert_array_equal(ours.T, theirs)


@pytest.mark.parametrize("protocol", LINK_PROTOCOLS)
def test_large_graphs_are_split_without_listing_all_pairs(protocol, monkeypatch):
    monkeypatch.setattr("hgde.data.splits.links._ENUMERATE_UP_TO", 0)
    graph = random_graph()
    split = link_split(graph, 0, protocol)
    n = graph.num_nodes
    negatives = torch.cat([split.val_neg, split.test_neg], dim=1)
    assert len(keys(negatives, n)) == negatives.shape[1] == split.val_pos.shape[1] + split.test_pos.shape[1]
    assert not keys(negatives, n) & keys(graph.undirected_edges, n)


def test_real_sizes(data_file):
    graph = load("disease_lp", data_file("disease_lp").parent).graph
    split = link_split(graph, 1234, "clean")
    assert [p.shape[1] for p in (split.train_pos, split.val_pos, split.test_pos)] == [2265, 133, 266]


def test_impossible_splits_say_why():
    with pytest.raises(GraphError, match="unknown link protocol 'x'"):
        link_split(random_graph(), 0, "x")
    with pytest.raises(GraphError, match="3 edges are too few"):
        link_split(Graph.from_edges([(0, 1), (1, 2), (2, 3)]), 0, "clean")
    complete = Graph.from_edges(np.stack(np.triu_indices(12, 1)))
    with pytest.raises(GraphError, match="0 pairs without an edge, 9 are needed"):
        link_split(complete, 0, "clean")


def test_messages_keep_the_directions_and_weights_of_the_graph():
    random = np.random.RandomState(0)
    pairs = random.randint(0, 60, (2, 500))
    graph = Graph.from_edges(pairs, 60, random.rand(500) + 0.1, undirected=False)
    split = link_split(graph, 0, "clean")
    assert not split.graph.is_symmetric
    held_out = keys(torch.cat([split.val_pos, split.test_pos], 1), 60)
    weight_of = dict(zip(map(tuple, graph.edge_index.T.tolist()), graph.weights.tolist(), strict=True))
    listed = list(map(tuple, split.graph.edge_index.T.tolist()))
    assert listed == [pair for pair in weight_of if min(pair) * 60 + max(pair) not in held_out]
    assert split.graph.weights.tolist() == [weight_of[pair] for pair in listed]
