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


def test_k_is_selectable_when_loading():
    assert load("digits", k=3).graph.num_edges < load("digits").graph.num_edges
