"""How a task is posed and read out: splits by number, and nodes selected before or after they are read out."""

import pytest
import torch

from hgde import make_settings, randomness
from hgde.data import Dataset, DataSettings
from hgde.graph import Graph
from hgde.pipeline.prepare import build_learner, prepare
from hgde.tasks.regression import NodeRegression, RegressionSettings


def ring(count=40, **targets):
    nodes = torch.arange(count)
    features = torch.randn(count, 5, generator=torch.Generator().manual_seed(0))
    return Dataset("ring", Graph.from_edges(torch.stack([nodes, (nodes + 1) % count]), count), features, **targets)


def test_every_number_of_a_split_of_values_is_another_one():
    data = ring(values=torch.linspace(0, 1, 40)[:, None])
    problems = [NodeRegression.pose(data, RegressionSettings(), DataSettings(split=split)) for split in (0, 1, 2, 1)]
    hashes = [problem.split_hash for problem in problems]
    assert hashes[1] == hashes[3]
    assert len(set(hashes)) == 3


@pytest.mark.parametrize("model", ["hgde", "gcn"])
def test_nodes_selected_early_are_read_out_as_all_of_them_are(model):
    given = {"model": {"name": model, "dropout": 0.0}, "preset": "none"}
    settings = make_settings(given)
    prepared = prepare(settings, ring(labels=torch.arange(40) % 3, class_names=["a", "b", "c"]))
    problem = prepared.problem
    learner = build_learner(settings, problem.task, prepared.shape, randomness.make_generator(0))
    items = torch.tensor([7, 3, 31])
    for is_training in (True, False):
        learner.train(is_training)
        found = learner(problem.inputs, problem.graph, items)
        expected = learner.predict(learner.outputs(problem.inputs, problem.graph), items, problem.graph)
        torch.testing.assert_close(found, expected)
