"""Baselines of nodes and links on graphs small enough for counting by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from hgde.data import Dataset
from hgde.data.settings import DataSettings
from hgde.data.splits import NodeSplit
from hgde.graph import Graph
from hgde.sections import SettingsError
from hgde.tasks.baselines import BASELINES, _class_logits, _label_logits, baseline_scores, baselines_for
from hgde.tasks.link_baselines import _as_odds
from hgde.tasks.links import LinkPrediction, LinkSettings
from hgde.tasks.metrics import CLASSES, LABELS, VALUES
from hgde.tasks.multilabel import MultiLabel, MultiLabelSettings
from hgde.tasks.nodes import NodeClassification, NodeSettings
from hgde.tasks.regression import NodeRegression, RegressionSettings

COUNT = 24
RING = torch.stack([torch.arange(COUNT), (torch.arange(COUNT) + 1) % COUNT])
GRAPH = Graph.from_edges(RING, COUNT)
SPLIT = NodeSplit(torch.arange(0, 12), torch.arange(12, 18), torch.arange(18, 24), "by hand")
X = torch.randn(COUNT, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def posed(kind):
    if kind == CLASSES:
        data = Dataset("ring", GRAPH, X, (X[:, 0] > 0).long() + (X[:, 1] > 1).long())
        problem = NodeClassification.pose_on(data, NodeSettings(), SPLIT, allow_overlap=False)
    elif kind == LABELS:
        sets = torch.stack([X[:, 0] > 0, torch.ones(COUNT) > 0, torch.ones(COUNT) < 0], 1).to(torch.int8)
        sets[3, 0] = -1
        problem = MultiLabel.pose_on(Dataset("ring", GRAPH, X, label_sets=sets), MultiLabelSettings(), SPLIT)
    else:
        values = torch.stack([2 * X[:, 0] - X[:, 2] + 5, X[:, 1] ** 3], 1)
        values[2, 1] = math.nan
        problem = NodeRegression.pose_on(Dataset("ring", GRAPH, X, values=values), RegressionSettings(), SPLIT)
    return problem.with_features(X)


@pytest.mark.parametrize("kind", [CLASSES, LABELS, VALUES])
def test_majority_is_the_share_of_each_in_training(kind):
    problem = posed(kind)
    predictions = BASELINES.get("majority")(problem)
    truth = problem.parts["train"].truth
    if kind == CLASSES:
        expected = torch.bincount(truth, minlength=problem.task.outputs) / len(truth)
        given = predictions["test"].softmax(-1)
    elif kind == LABELS:
        known = [truth[truth[:, k] >= 0, k].double().mean() for k in range(3)]
        expected, given = torch.stack(known), torch.sigmoid(predictions["test"])
    else:
        expected, given = torch.zeros(2), predictions["test"]
    assert given.shape[0] == 6
    torch.testing.assert_close(given, expected.double().expand_as(given), rtol=1e-5, atol=2e-6)
    assert predictions["val"].shape == (6, problem.task.outputs)


def test_linear_models_are_scikit_learn_s_with_the_penalty_of_the_validation_part():
    problem = posed(CLASSES)
    x = (X / X[:12].abs().amax(0)).numpy()
    truth = problem.parts["train"].truth.numpy()
    best = None
    for strength in (0.1, 1.0, 10.0, 100.0):
        model = LogisticRegression(C=strength, max_iter=200).fit(x[:12], truth)
        logits = torch.from_numpy(np.log(model.predict_proba(x) + 1e-12))
        scores = problem.task.scores(logits[12:18], problem.parts["val"].truth)
        rank = (scores["accuracy"], -scores["loss"])
        if best is None or rank > best[0]:
            best = rank, logits[18:]
    torch.testing.assert_close(BASELINES.get("logistic-regression")(problem)["test"], best[1], rtol=1e-6, atol=1e-6)


def test_ridge_regression_leaves_out_rows_with_gaps():
    problem = posed(VALUES)
    x = (X / X[:12].abs().amax(0)).numpy()
    truth = problem.parts["train"].truth.numpy()
    rows = np.array([k for k in range(12) if k != 2])
    fits = [Ridge(1 / s).fit(x[rows], truth[rows]).predict(x) for s in (0.1, 1.0, 10.0, 100.0)]
    r2 = [problem.task.scores(torch.from_numpy(f[12:18]), problem.parts["val"].truth)["r2"] for f in fits]
    given = BASELINES.get("logistic-regression")(problem)["test"]
    np.testing.assert_allclose(given, fits[int(np.argmax(r2))][18:], rtol=1e-6)


def test_labels_that_never_vary_are_certain():
    problem = posed(LABELS)
    given = BASELINES.get("logistic-regression")(problem)["test"]
    assert given[:, 1].tolist() == [20.0] * 6
    assert given[:, 2].tolist() == [-20.0] * 6
    column = problem.parts["train"].truth[:, 0].numpy()
    x = (X / X[:12].abs().amax(0)).numpy()
    logits = _label_logits(x, np.arange(12), column, 1.0)
    rows = np.array([k for k in range(12) if k != 3])
    np.testing.assert_allclose(
        logits, LogisticRegression(C=1.0).fit(x[rows], column[rows]).decision_function(x), rtol=1e-3
    )


def test_one_class_alone_is_certain_and_absent_ones_are_not_predicted():
    x = X.numpy()
    alone = _class_logits(LogisticRegression(), x, np.arange(4), np.array([2, 2, 2, 2]), 4)
    assert alone.shape == (COUNT, 4)
    assert (alone.argmax(1) == 2).all()
    assert (alone[:, 2] == 0).all()
    two = _class_logits(LogisticRegression(), x, np.arange(4), np.array([0, 3, 0, 3]), 4)
    assert np.exp(two[:, [0, 3]]).sum(1) == pytest.approx(np.ones(COUNT))
    assert (two[:, [1, 2]] < -20).all()


@pytest.mark.parametrize("kind", [CLASSES, VALUES])
def test_label_propagation_is_its_iteration(kind):
    """``F <- a S F + (1 - a) Y`` fifty times with dense matrices; values are divided by what is known of them."""
    problem = posed(kind)
    a = torch.from_numpy(GRAPH.to_scipy().toarray()).double() + torch.eye(COUNT)
    d = a.sum(1).rsqrt()
    spread = d[:, None] * a * d[None]
    truth = problem.parts["train"].truth
    start = torch.zeros(COUNT, problem.task.outputs if kind == CLASSES else 4, dtype=torch.float64)
    if kind == CLASSES:
        start[torch.arange(12), truth] = 1.0
    else:
        known = torch.isfinite(truth)
        start[:12] = torch.cat([torch.where(known, truth, 0.0), known], 1)
    best = None
    for share in (0.5, 0.9, 0.99):
        state = start
        for _ in range(50):
            state = share * spread @ state + (1 - share) * start
        if kind == CLASSES:
            state = state + 1e-9 * start.sum(0) / start.sum() + 1e-15
            values = (state / state.sum(1, keepdim=True)).log()
        else:
            values = state[:, :2] / state[:, 2:].clamp_min(1e-12)
        scores = problem.task.scores(values[12:18], problem.parts["val"].truth, names=())
        rank = (problem.task.metric.gain(scores[problem.task.metric.name]), -scores["loss"])
        if best is None or rank > best[0]:
            best = rank, values[18:]
    torch.testing.assert_close(BASELINES.get("label-propagation")(problem)["test"], best[1], rtol=1e-9, atol=1e-9)


def test_baselines_are_scored_on_both_parts():
    problem = posed(CLASSES)
    scores = baseline_scores(problem)
    assert set(scores) == set(baselines_for(CLASSES)) == {"majority", "label-propagation", "logistic-regression"}
    predictions = BASELINES.get("majority")(problem)
    for part in ("val", "test"):
        assert scores["majority"][part] == problem.task.scores(predictions[part], problem.parts[part].truth)
    assert set(baseline_scores(problem, ["majority"])) == {"majority"}


def test_scores_become_odds_in_their_order():
    assert _as_odds(torch.tensor([0.0, 2.0, 4.0, 0.0])).tolist() == [-1.0, 1.0, 3.0, -1.0]
    assert _as_odds(torch.zeros(2)).tolist() == [-1.0, -1.0], "nothing in common is below even odds"


def test_links_by_degrees_and_by_features():
    star = torch.cat([RING, torch.stack([torch.zeros(6).long(), torch.arange(5, 11)])], 1)
    data = Dataset("made", Graph.from_edges(star, COUNT), X)
    problem = LinkPrediction.pose(data, LinkSettings(), DataSettings()).with_features(X)
    assert (problem.parts["train"].truth == 1).all(), "all training pairs are linked"
    assert problem.parts["train"].truth.dtype == torch.int64
    degree = torch.bincount(problem.graph.rows, minlength=COUNT).double()
    u, v = problem.parts["test"].items
    products = degree[u] * degree[v]
    given = BASELINES.get("preferential-attachment")(problem)["test"]
    torch.testing.assert_close(given, products - 0.5 * products[products > 0].min())
    cosine = torch.nn.functional.cosine_similarity(X[u], X[v])
    torch.testing.assert_close(BASELINES.get("feature-likeness")(problem)["test"], cosine)
    counts = BASELINES.get("common-neighbours")(problem)
    assert {name: len(values) for name, values in counts.items()} == {
        name: problem.parts[name].size for name in ("val", "test")
    }


def test_published_protocols_need_something_published():
    data = Dataset("mine", GRAPH, X, (X[:, 0] > 0).long())
    with pytest.raises(SettingsError, match="mine is a graph of your own without a stored split"):
        NodeClassification.pose(data, NodeSettings(), DataSettings(protocol="published"))
    stored = replace(data, fixed_splits={"fixed": (SPLIT,)})
    assert NodeClassification.pose(stored, NodeSettings(), DataSettings(protocol="published")).parts["train"].size == 12
