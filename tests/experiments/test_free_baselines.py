"""Baselines that cost nothing: right on small graphs, by hand or against scikit-learn, and blind to test labels."""

import math

import numpy as np
import pytest
import torch
from experiment_graphs import write_blocks

from hgde.pipeline import make_settings, prepare
from hgde.sections import overlay
from hgde.tasks import TaskError
from hgde.tasks.baselines import BASELINES, baseline_scores, baselines_for
from hgde.tasks.metrics import CLASSES, PAIRS


def problem(folder, task="nodes", **changes):
    return prepare(make_settings(overlay(write_blocks(folder), {"task": {"name": task}, **changes}))).problem


@pytest.mark.parametrize("task", ["nodes", "links"])
def test_every_fitting_baseline_gives_finite_scores(tmp_path, task):
    posed = problem(tmp_path, task)
    scores = baseline_scores(posed)
    assert set(scores) == set(baselines_for(CLASSES if task == "nodes" else PAIRS))
    for name, parts in scores.items():
        assert math.isfinite(parts["test"][posed.task.metric.name]), name


def test_majority_is_the_share_of_the_commonest_class(tmp_path):
    posed = problem(tmp_path)
    commonest = int(torch.bincount(posed.parts["train"].truth).argmax())
    share = float((posed.parts["test"].truth == commonest).double().mean())
    assert baseline_scores(posed, ["majority"])["majority"]["test"]["accuracy"] == pytest.approx(share)


def test_labels_spread_along_a_path():
    """Two ends labelled, each half of the path follows its end."""
    from dataclasses import replace

    from hgde.data.dataset import Dataset
    from hgde.data.splits import NodeSplit
    from hgde.graph import Graph
    from hgde.tasks.nodes import NodeClassification, NodeSettings

    edges = np.stack([np.arange(9), np.arange(1, 10)])
    labels = torch.tensor([0] * 5 + [1] * 5)
    data = Dataset("path", Graph.from_edges(edges, 10), torch.eye(10), labels)
    split = NodeSplit(torch.tensor([0, 9]), torch.tensor([1, 8]), torch.tensor([2, 3, 4, 5, 6, 7]), "by hand")
    posed = NodeClassification.pose_on(data, NodeSettings(), split, allow_overlap=False)
    posed = replace(posed, features=torch.eye(10))
    assert baseline_scores(posed, ["label-propagation"])["label-propagation"]["test"]["accuracy"] == 1.0


def test_blocks_are_found_by_their_edges(tmp_path):
    scores = baseline_scores(problem(tmp_path))
    assert scores["label-propagation"]["test"]["accuracy"] > scores["majority"]["test"]["accuracy"] + 0.2


def test_links_of_blocks_are_better_than_chance_by_common_neighbours(tmp_path):
    scores = baseline_scores(problem(tmp_path, "links"), ["common-neighbours", "adamic-adar"])
    assert all(parts["test"]["roc_auc"] > 0.6 for parts in scores.values())


def test_a_baseline_for_links_refuses_nodes(tmp_path):
    with pytest.raises(TaskError, match="katz does not predict classes; these do: label-propagation"):
        BASELINES.get("katz")(problem(tmp_path))
