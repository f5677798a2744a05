"""A model's own term of the loss is added once by every task, and models without one have none."""

import pytest
import torch
from torch import nn

from hgde import randomness
from hgde.data import Dataset
from hgde.data.settings import DataSettings
from hgde.data.splits import NodeSplit
from hgde.graph import Graph
from hgde.models.base import Model
from hgde.tasks.base import Learner
from hgde.tasks.links import LinkPrediction, LinkSettings
from hgde.tasks.multilabel import MultiLabel, MultiLabelSettings
from hgde.tasks.nodes import NodeClassification, NodeSettings
from hgde.tasks.regression import NodeRegression, RegressionSettings

COUNT = 24
RING = Graph.from_edges([(i, (i + 1) % COUNT) for i in range(COUNT)], COUNT)
X = torch.randn(COUNT, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
SPLIT = NodeSplit(torch.arange(0, 6), torch.arange(6, 9), torch.arange(9, 12), "by hand")


class Linear(Model):
    def __init__(self, outputs):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.weight = nn.Parameter(torch.randn(3, outputs, generator=generator, dtype=torch.float64))

    def forward(self, features, graph):
        return features @ self.weight

    embed = forward


class Penalised(Linear):
    """With a term that names what it was given: features, graph and the outputs of all nodes."""

    def penalty(self, features, graph, outputs):
        return features.sum() + 10 * graph.num_edges + 100 * outputs.square().sum()


class Silent(Linear):
    def penalty(self, features, graph, outputs):
        return None


def posed(kind):
    if kind == "links":
        data = Dataset("ring", RING, X)
        return LinkPrediction.pose(data, LinkSettings(), DataSettings()).with_features(X), 2
    if kind == "values":
        data = Dataset("ring", RING, X, values=X[:, :1] ** 2)
        return NodeRegression.pose_on(data, RegressionSettings(), SPLIT).with_features(X), 1
    if kind == "labels":
        data = Dataset("ring", RING, X, label_sets=(X[:, :2] > 0).to(torch.int8))
        return MultiLabel.pose_on(data, MultiLabelSettings(), SPLIT).with_features(X), 2
    data = Dataset("ring", RING, X, (X[:, 0] > 0).long())
    options = NodeSettings(consistency=0.5) if kind == "two passes" else NodeSettings()
    return NodeClassification.pose_on(data, options, SPLIT, allow_overlap=False).with_features(X), 2


def loss_of(model, problem):
    learner = Learner(model, problem.task.head(model, 5), None if problem.task.kind == "pairs" else 2).double().train()
    with randomness.use(torch.Generator().manual_seed(2)):
        return problem.task.loss(learner, problem)


@pytest.mark.parametrize("kind", ["classes", "two passes", "labels", "values", "links"])
def test_the_penalty_is_added_once(kind):
    problem, outputs = posed(kind)
    model = Penalised(outputs)
    plain, silent, penalised = (loss_of(made, problem) for made in (Linear(outputs), Silent(outputs), model))
    assert float(plain.detach()) == pytest.approx(float(silent.detach()), rel=1e-12)
    term = model.penalty(problem.inputs, problem.graph, problem.inputs @ model.weight)
    assert float((penalised - plain).detach()) == pytest.approx(float(term.detach()), rel=1e-9)
    (slope,) = torch.autograd.grad(penalised - term, model.weight)
    (expected,) = torch.autograd.grad(loss_of(other := Linear(outputs), problem), other.weight)
    torch.testing.assert_close(slope, expected, rtol=1e-6, atol=1e-6)
