"""Data that cannot be trained on is refused before training starts, with words."""

import math
from dataclasses import replace

import pytest
import torch

from hgde.data.sets.disease_sim import simulate_disease
from hgde.data.splits import NodeSplit, link_split
from hgde.graph import Graph, GraphError
from hgde.models import HGDE
from hgde.settings import Settings
from hgde.training.inputs import InputScaling
from hgde.training.metrics import accuracy, f1
from hgde.training.prepare import make_task
from hgde.training.tasks import LinkTask, NodeTask, TaskError, disagreement


@pytest.fixture(scope="module")
def dataset():
    return simulate_disease(seed=0, num_nodes=100)


def split(train, val, test):
    return NodeSplit(*(torch.tensor(part, dtype=torch.int64) for part in (train, val, test)), "by hand")


GOOD = split(range(60), range(60, 80), range(80, 100))


def test_good_data_is_accepted(dataset):
    assert NodeTask(dataset, GOOD).num_classes == 2


def spoil(dataset, what):
    features, labels = dataset.features.clone(), dataset.labels.clone()
    if what == "nan":
        features[7, 3] = math.nan
        return replace(dataset, features=features)
    if what == "infinite":
        features[7, 3] = math.inf
        return replace(dataset, features=features)
    if what == "no labels":
        return replace(dataset, labels=None)
    if what == "label missing":
        labels[65] = -1
        return replace(dataset, labels=labels)
    if what == "rows":
        return replace(dataset, features=features[:99])
    if what == "columns":
        return replace(dataset, features=features[:, :0])
    if what == "labels":
        return replace(dataset, labels=labels[:99])
    assert what == "one class"
    return replace(dataset, labels=torch.zeros_like(labels))


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nan", "feature 3 of node 7 is nan"),
        ("infinite", "feature 3 of node 7 is inf"),
        ("no labels", "has no labels"),
        ("label missing", "node 65 of the validation part has no label"),
        ("rows", "99 rows of features for 100 nodes"),
        ("columns", "no features"),
        ("labels", "99 labels for 100 nodes"),
        ("one class", "one class only"),
    ],
)
def test_bad_data(what, words, dataset):
    with pytest.raises(TaskError, match=words):
        NodeTask(spoil(dataset, what), GOOD)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((range(60), range(50, 80), range(80, 100)), "training and validation part share 10 nodes, such as node 50"),
        ((range(60), range(60, 80), range(55, 100)), "training and test part share 5 nodes"),
        ((range(60), range(60, 85), range(80, 100)), "validation and test part share 5 nodes"),
        ((range(60), range(60, 80), [100]), "test part names node 100, but there are 100 nodes"),
        (([], range(60, 80), [90]), "must not be empty"),
        ((range(60), [], [90]), "must not be empty"),
    ],
)
def test_bad_splits(parts, words, dataset):
    with pytest.raises(TaskError, match=words):
        NodeTask(dataset, split(*parts))


def test_an_overlap_is_admitted_only_when_asked_for(dataset):
    faulty = split(range(60), range(60, 80), range(50, 100))
    assert NodeTask(dataset, faulty, allow_overlap=True).test.numel() == 50


def test_index_out_of_range():
    with pytest.raises(GraphError, match=r"edge 1 is \(2, 5\), but the graph has 5 nodes"):
        Graph.from_edges([(0, 1), (2, 5)], 5)


def test_an_empty_graph_is_refused():
    nothing = simulate_disease(num_nodes=100).select(torch.empty(0, dtype=torch.int64))
    with pytest.raises(TaskError, match="no nodes"):
        NodeTask(nothing, split([], [], []))


def test_links_need_edges(dataset):
    with pytest.raises(GraphError, match="too few"):
        make_task(replace(dataset, graph=Graph.from_edges([(0, 1)], 100)), Settings(task="links"))
    with pytest.raises(TaskError, match="feature 3 of node 7"):
        LinkTask(spoil(dataset, "nan"), link_split(dataset.graph, protocol="clean"))


def test_messages_travel_on_training_edges_only(dataset):
    task = make_task(dataset, Settings(task="links"))
    held = torch.cat([task.split.val_pos, task.split.test_pos], dim=1)
    passed = {tuple(pair) for pair in task.graph.undirected_edges.T.tolist()}
    assert not passed & {tuple(sorted(pair)) for pair in held.T.tolist()}


def test_new_nodes_meet_the_scale_of_the_trained_ones(dataset):
    scaling = InputScaling.of(dataset.features)
    torch.testing.assert_close(scaling(dataset.features[:10]), scaling(dataset.features)[:10])
    with pytest.raises(ValueError, match="there are 3 features, the model was trained on 16"):
        scaling(dataset.features[:, :3])


def test_metrics_by_hand():
    scores = torch.tensor([[2.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    labels = torch.tensor([0, 1, 0, 1])
    assert accuracy(scores, labels) == 0.5
    assert f1(scores, labels) == pytest.approx(0.5)


def test_passes_that_agree_and_are_sure_do_not_disagree():
    sure = torch.tensor([[30.0, 0.0], [0.0, 30.0]])
    assert float(disagreement(torch.stack([sure, sure]), 0.5)) < 1e-6
    # Two opposite passes meet half way, at a distance of sqrt(1/2) from each.
    assert float(disagreement(torch.stack([sure, -sure]), 0.5)) == pytest.approx(0.5, abs=1e-6)


def test_a_low_temperature_asks_for_decided_nodes():
    undecided = torch.tensor([[[0.4, 0.0]], [[0.4, 0.0]]], requires_grad=True)
    assert float(disagreement(undecided.detach(), 1.0)) == pytest.approx(0.0, abs=1e-12)
    disagreement(undecided, 0.5).backward()
    assert bool((undecided.grad[..., 0] < 0).all())
    assert bool((undecided.grad[..., 1] > 0).all())


def test_consistency_needs_no_label_of_the_unlabelled(dataset):
    settings = Settings(consistency=1.0, dropout=0.5, hidden_dropout=0.5, width=4, time=1.0)
    unlabelled = dataset.labels.clone()
    unlabelled[80:] = 1 - unlabelled[80:]
    losses = []
    for labels in (dataset.labels, unlabelled):
        task = NodeTask(replace(dataset, labels=labels), GOOD, consistency=1.0)
        torch.manual_seed(0)
        model = HGDE.from_settings(settings, dataset.num_features, 2)
        losses.append(float(task.loss(model).detach()))
    assert losses[0] == losses[1]
    torch.manual_seed(0)
    model = HGDE.from_settings(settings, dataset.num_features, 2)
    assert losses[0] != float(NodeTask(dataset, GOOD).loss(model).detach())


@pytest.mark.parametrize("self_loops", [False, True])
def test_hidden_edges_are_learned_from_and_not_diffused_along(self_loops, dataset):
    settings = Settings(task="links", hidden_edges=0.3, self_loops=self_loops)
    task = make_task(dataset, settings)
    positives, graph = task._hide()
    count = task.train_pos.shape[1]
    assert positives.shape[1] == round(0.3 * count)
    loops = dataset.graph.num_nodes if self_loops else 0
    assert graph.num_edges == 2 * (count - positives.shape[1]) + loops
    assert task.graph.num_edges == 2 * count + loops
    present = {(int(a), int(b)) for a, b in graph.edge_index.T}
    assert not any((int(a), int(b)) in present or (int(b), int(a)) in present for a, b in positives.T)
    again, _ = task._hide()
    assert not again.equal(positives)
