"""What an epoch is chosen by, and what a fitted task is made of again."""

import math

import pytest
import torch

from hgde.data import Dataset
from hgde.data.splits import NodeSplit
from hgde.graph import Graph
from hgde.tasks.base import TaskError
from hgde.tasks.multilabel import MultiLabel, MultiLabelSettings
from hgde.tasks.nodes import NodeClassification, NodeSettings
from hgde.tasks.regression import NodeRegression, RegressionSettings

GRAPH = Graph.from_edges([(i, i + 1) for i in range(9)], 10)
LABELS = torch.tensor([0, 0, 0, 1, 2, 0, 0, 1, 2, 0])
SPLIT = NodeSplit(torch.arange(0, 5), torch.arange(5, 8), torch.arange(8, 10), "by hand")
SHARED = NodeSplit(torch.arange(0, 5), torch.arange(4, 8), torch.arange(8, 10), "by hand")


def classes_of(**options):
    data = Dataset("made", GRAPH, torch.eye(10), LABELS, class_names=["a", "b", "c"])
    return NodeClassification.pose_on(data, NodeSettings(**options), SPLIT, allow_overlap=False).task


def gain(task):
    """Of predictions that are right for both of class a, one of two of class b, none of class c."""
    truth, said = torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 0, 1, 2, 0])
    predictions = torch.nn.functional.one_hot(said, 3).double()
    return task.gain(predictions, truth, task.scores(predictions, truth))


def test_nodes_count_as_in_the_loss():
    """Alike; by the weights of their classes; or as the metric has it that was asked for."""
    assert gain(classes_of()) == pytest.approx(3 / 5)
    assert gain(classes_of(class_weight="a=4,c=3")) == pytest.approx((4 + 4 + 1) / (4 + 4 + 1 + 1 + 3))
    balanced = [5 / 9, 5 / 3, 5 / 3]  # 3, 1 and 1 of 5 training nodes
    expected = (2 * balanced[0] + balanced[1]) / (2 * balanced[0] + 2 * balanced[1] + balanced[2])
    assert gain(classes_of(class_weight="balanced")) == pytest.approx(expected)
    assert gain(classes_of(class_weight="balanced", metric="accuracy")) == pytest.approx(3 / 5)
    task = classes_of(class_weight="balanced", metric="log_loss")
    assert gain(task) < 0, "an error, turned round"


def test_no_weight_at_all_is_no_gain():
    task = classes_of(class_weight="a=0,b=0,c=0")
    assert gain(task) == 0.0


@pytest.mark.parametrize("class_weight", ["none", "balanced"])
def test_an_empty_part_has_no_gain(class_weight):
    task = classes_of(class_weight=class_weight)
    predictions, truth = torch.zeros(0, 3).double(), torch.zeros(0).long()
    assert math.isnan(task.gain(predictions, truth, task.scores(predictions, truth)))


@pytest.mark.parametrize("kind", ["values", "labels"])
def test_parts_may_share_nodes_only_when_allowed(kind):
    if kind == "values":
        task, options = NodeRegression, RegressionSettings()
        data = Dataset("made", GRAPH, torch.eye(10), values=torch.arange(10.0).double()[:, None])
    else:
        task, options = MultiLabel, MultiLabelSettings()
        data = Dataset("made", GRAPH, torch.eye(10), label_sets=torch.ones(10, 2, dtype=torch.int8))
    with pytest.raises(TaskError, match="training and validation part share 1 nodes"):
        task.pose_on(data, options, SHARED)
    assert task.pose_on(data, options, SHARED, allow_overlap=True).parts["val"].size == 4


@pytest.mark.parametrize(
    "change",
    [
        {"mean": [0.0]},
        {"scale": [1.0]},
        {"names": ["one"]},
        {"mean": [0.0], "scale": [1.0]},
        {"scale": [1.0, 0.0]},
        {"scale": [1.0, -1.0]},
    ],
)
def test_fitted_values_need_a_mean_and_a_scale_each(change):
    fitted = {"names": ["one", "two"], "mean": [0.0, 1.0], "scale": [1.0, 2.0]}
    again = NodeRegression.from_fitted(RegressionSettings(), fitted)
    assert again.outputs == 2
    with pytest.raises(ValueError, match="a mean and a scale above zero"):
        NodeRegression.from_fitted(RegressionSettings(), fitted | change)
