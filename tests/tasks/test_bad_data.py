"""Data that cannot be trained on is refused before training starts, with words."""

import math
from dataclasses import replace

import pytest
import torch

from hgde.data.sets.disease_sim import simulate_disease
from hgde.data.splits import NodeSplit
from hgde.graph import Graph, GraphError
from hgde.pipeline import make_settings, prepare
from hgde.tasks import TaskError
from hgde.tasks.multilabel import MultiLabel, MultiLabelSettings
from hgde.tasks.nodes import NodeClassification, NodeSettings, disagreement
from hgde.tasks.regression import NodeRegression, RegressionSettings


@pytest.fixture(scope="module")
def dataset():
    return simulate_disease(seed=0, num_nodes=100)


def split(train, val, test):
    return NodeSplit(*(torch.tensor(list(part), dtype=torch.int64) for part in (train, val, test)), "by hand")


GOOD = split(range(60), range(60, 80), range(80, 100))


def pose(dataset, parts=GOOD, allow_overlap=False):
    return NodeClassification.pose_on(dataset, NodeSettings(), parts, allow_overlap=allow_overlap)


def test_good_data_is_accepted(dataset):
    assert pose(dataset).task.outputs == 2


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (lambda y: None, "has no labels"),
        (lambda y: torch.where(torch.arange(100) == 65, -1, y), "node 65 of the validation part has no label"),
        (lambda y: y[:99], "99 labels for 100 nodes"),
    ],
)
def test_bad_labels(labels, words, dataset):
    with pytest.raises(TaskError, match=words):
        pose(replace(dataset, labels=labels(dataset.labels)))


@pytest.mark.parametrize(("value", "words"), [(math.nan, "feature 3 of node 7 is nan"), (math.inf, "is inf")])
def test_bad_features(value, words, dataset):
    features = dataset.features.clone()
    features[7, 3] = value
    settings = make_settings({"preset": "none", "preprocessing": {"normalise": "none"}})
    with pytest.raises(TaskError, match=words):
        prepare(settings, replace(dataset, features=features))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((range(60), range(50, 80), range(80, 100)), "training and validation part share 10 nodes"),
        ((range(60), range(60, 80), range(55, 100)), "training and test part share 5 nodes"),
        ((range(60), range(60, 85), range(80, 100)), "validation and test part share 5 nodes"),
        ((range(60), range(60, 80), [100]), "test part names node 100, but there are 100 nodes"),
        (([], range(60, 80), [90]), "must not be empty"),
        ((range(60), [], [90]), "must not be empty"),
    ],
)
def test_bad_splits(parts, words, dataset):
    with pytest.raises(TaskError, match=words):
        pose(dataset, split(*parts))


def test_an_overlap_is_admitted_only_when_asked_for(dataset):
    assert pose(dataset, split(range(60), range(60, 80), range(50, 100)), allow_overlap=True).parts["test"].size == 50


@pytest.mark.parametrize(
    ("task", "options"), [(NodeRegression, RegressionSettings()), (MultiLabel, MultiLabelSettings())]
)
def test_targets_of_another_kind(task, options, dataset):
    with pytest.raises(TaskError, match="disease-sim has no"):
        task.pose_on(replace(dataset, values=None, label_sets=None), options, GOOD)


def test_links_need_edges(dataset):
    settings = make_settings({"preset": "none", "task": {"name": "links"}})
    with pytest.raises((GraphError, TaskError), match="too few"):
        prepare(settings, replace(dataset, graph=Graph.from_edges([(0, 1)], 100)))


def test_messages_travel_on_training_edges_only(dataset):
    problem = prepare(make_settings({"preset": "none", "task": {"name": "links"}}), dataset).problem
    passed = {tuple(pair) for pair in problem.graph.undirected_edges.T.tolist()}
    for name in ("val", "test"):
        part = problem.parts[name]
        linked = {tuple(sorted(pair)) for pair in part.items[:, part.truth == 1].T.tolist()}
        assert linked
        assert not passed & linked


def test_sample_weights_scale_the_loss(dataset):
    """Weighting by two and zero is the same as leaving out what counts nothing."""
    task = pose(dataset).task
    logits, truth = torch.randn(6, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 1, 0, 1, 0])
    weights = torch.tensor([2.0, 2.0, 0.0, 2.0, 0.0, 2.0])
    kept = weights > 0
    torch.testing.assert_close(task.discrepancy(logits, truth, weights), task.discrepancy(logits[kept], truth[kept]))


def test_equal_passes_with_temperature_one_agree():
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).expand(2, 5, 3)
    assert float(disagreement(logits, 1.0)) == pytest.approx(0, abs=1e-12)
    assert float(disagreement(logits, 0.5)) > 0
