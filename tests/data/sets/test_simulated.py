"""Simulated sets: the same for the same seed, of the promised form, and learnable only with the graph's help."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from hgde.data import DATASETS, DataError, load
from hgde.graph.measures.hyperbolicity import hyperbolicity
from hgde.graph.measures.statistics import graph_statistics

# Families that are grown to a size. Tree1111 is of one size, and its features alone tell its classes apart by design.
SIMULATED = [name for name, spec in DATASETS.items() if spec.kind == "generated" and name != "tree1111"]
TREES = ("tree-balanced", "tree-random", "disease-sim")


@pytest.fixture(scope="module")
def made():
    return {name: load(name) for name in SIMULATED}


def test_the_families_of_the_benchmark_are_there():
    assert {*TREES, "taxonomy-sim", "hyperbolic-sim", "attachment-leaves", "mixture-knn"} <= set(SIMULATED)
    assert {"blocks-homophilous", "blocks-heterophilous"} <= set(SIMULATED)


@pytest.mark.parametrize("name", SIMULATED)
def test_a_seed_is_all_that_decides(name, made):
    dataset = made[name]
    assert load(name, seed=0).hash == dataset.hash
    assert load(name, seed=1).hash != dataset.hash
    assert dataset.name == name
    assert 1000 <= dataset.num_nodes <= 3000
    assert bool((torch.bincount(dataset.labels) > 20).all())
    assert bool(torch.isfinite(dataset.features).all())
    assert load(name, num_nodes=600).num_nodes == 600


@pytest.mark.parametrize("name", SIMULATED)
def test_an_option_that_is_not_there_or_cannot_be(name):
    with pytest.raises(DataError, match=f"{name} has no option 'colour'; it takes seed, num_nodes"):
        load(name, colour=3)
    with pytest.raises(DataError, match=f"{name} cannot be made with num_nodes=1"):
        load(name, num_nodes=1)


def accuracy(x, dataset, train):
    labels = dataset.labels.numpy()
    model = LogisticRegression(max_iter=500).fit(x[train], labels[train])
    return model.score(x[~train], labels[~train])


@pytest.mark.parametrize("name", SIMULATED)
def test_labels_can_be_learned_and_the_graph_helps(name, made):
    dataset = made[name]
    own = dataset.features.numpy()
    adjacency = dataset.graph.to_scipy()
    mean = adjacency @ own / np.maximum(dataset.graph.degree.numpy(), 1)[:, None]
    two_hops = adjacency @ mean / np.maximum(dataset.graph.degree.numpy(), 1)[:, None]
    train = np.random.RandomState(99).rand(dataset.num_nodes) < 0.5
    majority = float(torch.bincount(dataset.labels).max()) / dataset.num_nodes
    alone = accuracy(own, dataset, train)
    together = accuracy(np.concatenate([own, mean, two_hops], axis=1), dataset, train)
    assert alone > majority + 0.03
    assert alone < 0.95
    assert together > alone + 0.03


def test_each_has_the_form_it_is_named_after(made):
    measured = {name: graph_statistics(dataset.graph, dataset.labels) for name, dataset in made.items()}
    for name in TREES:
        assert measured[name].num_edges == measured[name].num_nodes - 1
        assert measured[name].num_components == 1
    assert measured["blocks-homophilous"].edge_homophily == pytest.approx(0.8, abs=0.03)
    assert measured["blocks-heterophilous"].edge_homophily == pytest.approx(0.1, abs=0.03)
    counts = torch.bincount(made["taxonomy-sim"].labels)
    assert float(counts.max()) / float(counts.min()) > 10
    leaves = (made["attachment-leaves"].graph.degree == 1).double().mean()
    assert float(leaves) > 0.4
    assert measured["attachment-leaves"].max_degree > 10 * measured["attachment-leaves"].mean_degree
    assert measured["hyperbolic-sim"].mean_degree == pytest.approx(8, abs=1.5)
    assert measured["hyperbolic-sim"].max_degree > 100
    assert hyperbolicity(made["hyperbolic-sim"].graph, 5000).mean < 0.3
