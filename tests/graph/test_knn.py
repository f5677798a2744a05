"""Nearest neighbours agree with scikit-learn, whatever the block size."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import kneighbors_graph

from hgde.data import load
from hgde.graph import Graph, GraphError, SparseFeatures
from hgde.graph.knn import knn_graph, nearest_neighbours


def points(num_nodes=150, width=6, seed=0):
    return torch.from_numpy(np.random.RandomState(seed).randn(num_nodes, width)).float()


@pytest.mark.parametrize("k", [1, 2, 5, 20])
@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_same_graph_as_scikit_learn(k, block):
    x = points()
    reference = Graph.from_scipy(kneighbors_graph(x.double().numpy(), k, include_self=True))
    assert knn_graph(x, k, block=block).hash == reference.hash


def test_without_counting_the_node_itself():
    x = points()
    reference = Graph.from_scipy(kneighbors_graph(x.double().numpy(), 4, include_self=False))
    assert knn_graph(x, 4, include_self=False).hash == reference.hash
    assert knn_graph(x, 5).hash == reference.hash


def test_the_node_itself_comes_first_even_among_copies():
    x = points(20).repeat(3, 1)
    neighbours = nearest_neighbours(x, 3)
    assert neighbours[:, 0].tolist() == list(range(60))
    assert bool((neighbours % 20 == torch.arange(60)[:, None] % 20).all())


def test_equal_distances_go_to_the_smaller_number_for_any_block():
    grid = torch.stack(torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij"), -1).reshape(-1, 2)
    hashes = {knn_graph(grid, 4, block=block).hash for block in (1, 5, 64)}
    assert len(hashes) == 1


def by_brute_force(x, k):
    """Distances in whole numbers, so that ties are exact: sorted by distance, then number, the node itself first."""
    whole = x.to(torch.int64)
    distance = (whole[:, None] - whole[None]).square().sum(-1)
    distance.fill_diagonal_(-1)
    return torch.argsort(distance * x.shape[0] + torch.arange(x.shape[0]), dim=1)[:, :k]


@pytest.mark.parametrize("block", [1, 3, 50, 512])
@pytest.mark.parametrize("k", [1, 4, 9])
@pytest.mark.parametrize("kind", ["all equal", "three points", "grid", "words", "far away"])
def test_any_number_of_ties_goes_to_the_smaller_numbers(kind, k, block):
    random = np.random.RandomState(3)
    x = {
        "all equal": np.full((90, 4), 7),
        "three points": random.randint(0, 3, (90, 1)).repeat(5, 1),
        "grid": random.randint(0, 4, (120, 2)),
        "words": random.rand(100, 12) < 0.1,
        "far away": random.randint(0, 3, (90, 3)) + np.array([10_000, 77_777_777, 3]),
    }[kind]
    x = torch.from_numpy(np.asarray(x)).double()
    assert torch.equal(nearest_neighbours(x, k, block=block), by_brute_force(x, k))


def test_an_outlier_does_not_blur_the_others():
    x = points().double()
    x[0] = 1e7
    rest = nearest_neighbours(x, 5)[1:]
    alone = nearest_neighbours(x[1:], 5) + 1
    assert torch.equal(rest, alone)


def test_far_from_the_origin_nothing_is_lost():
    x = points().double()
    assert knn_graph(x + 1e5, 5).hash == knn_graph(x, 5).hash


def test_sparse_and_dense_agree():
    x = points() * (points(seed=1) > 0.8)
    from scipy.sparse import csr_matrix

    assert knn_graph(SparseFeatures.from_scipy(csr_matrix(x.numpy())), 5).hash == knn_graph(x, 5).hash


@pytest.mark.parametrize("k", [0, 151])
def test_impossible_k(k):
    with pytest.raises(GraphError, match="k must be between 1 and the number of nodes"):
        knn_graph(points(), k)


def test_impossible_features_and_k_without_the_node_itself():
    with pytest.raises(GraphError, match="finite features"):
        knn_graph(torch.tensor([[0.0], [1.0], [float("nan")]]), 2)
    with pytest.raises(GraphError, match=r"number of other nodes \(2\), got 3"):
        knn_graph(torch.tensor([[0.0], [1.0], [2.0]]), 3, include_self=False)


def test_k_is_selectable_when_loading():
    assert load("digits", k=3).graph.num_edges < load("digits").graph.num_edges
