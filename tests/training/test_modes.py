"""Which mode the model is in, which epochs are looked at, when a slow run is kept."""

import pytest
import torch
from torch import nn

from hgde.graph import Graph
from hgde.models.base import Model
from hgde.tasks.base import Learner, Part, Problem, SelectNodes
from hgde.tasks.metrics import CLASSES, Metric
from hgde.tasks.nodes import NodeClassification, NodeSettings
from hgde.training import cross_fitting, trainer
from hgde.training.cross_fitting import cross_fitted
from hgde.training.settings import TrainingSettings
from hgde.training.trainer import Trainer

GRAPH = Graph.from_edges([(0, 1), (1, 2)], 3)


class Mode(Model):
    """Remembers the mode in which it was asked."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 1))
        self.modes = []

    def feature_parameters(self):
        return [self.weight]

    def forward(self, features, graph):
        self.modes.append((self.training, torch.is_grad_enabled()))
        return features @ self.weight


class Small:
    """Learns to make outputs small."""

    kind = CLASSES
    metric = Metric("none", lambda predictions, truth: 0.0, (CLASSES,), True)

    def loss(self, learner, problem):
        return learner(problem.inputs, problem.graph, problem.parts["train"].items).square().sum()

    def scores(self, predictions, truth, names=None):
        return {"none": 0.0, "loss": 0.0}

    def gain(self, predictions, truth, scores):
        return 0.0


def make(path=None, **settings):
    parts = {name: Part(torch.tensor([k]), torch.tensor([k])) for k, name in enumerate(("train", "val", "test"))}
    problem = Problem(Small(), GRAPH, parts, "made", "", torch.ones(3, 2))
    settings = TrainingSettings(**{"calibrate": False, "warm_up": 0} | settings)
    generator = torch.Generator().manual_seed(0)
    return Trainer(Learner(Mode(), SelectNodes(), 1), problem, settings, 0, generator, path, checkpoint_every=50)


def test_dropout_is_for_training_alone():
    """Epochs train with gradients; validation and the final scores have neither dropout nor gradients."""
    run = make(epochs=3)
    run.fit()
    learning, looking = (True, True), (False, False)
    assert run.learner.model.modes == [learning, looking] * 3 + [looking, looking]
    assert not run.learner.training


def test_a_slow_run_is_kept_more_often(tmp_path, monkeypatch):
    """After half a minute without a checkpoint the next epoch is kept, whatever the settings ask for."""
    clock = iter(range(0, 10_000, 4))
    monkeypatch.setattr(trainer.time, "perf_counter", lambda: float(next(clock)))
    run = make(tmp_path / "run", epochs=12, patience=50)
    kept = []
    monkeypatch.setattr(run, "_save", lambda: kept.append(run.progress.epoch))
    run.start()
    run.advance(12)
    assert kept
    assert kept == sorted(set(kept))
    assert 1 < kept[0] < 5, "an epoch takes some four looks at a clock that gains four seconds at each"
    assert trainer.MOST_SECONDS_LOST == 30.0


def noise(epochs, nodes=20):
    generator = torch.Generator().manual_seed(0)
    logits = [torch.randn(nodes, 3, generator=generator) for _ in range(epochs)]
    return logits, torch.randint(0, 3, (nodes,), generator=generator)


@pytest.mark.parametrize("more", [0, 1, 70])
def test_only_so_many_epochs_are_scored_evenly_spaced(more):
    most = cross_fitting.MOST_EPOCHS
    logits, truth = noise(most + more)
    task = NodeClassification(NodeSettings(metric="macro_f1"), ["a", "b", "c"])
    step = next(step for step in range(1, 99) if len(logits[::step]) <= most)
    assert cross_fitted(task, logits, truth) == cross_fitted(task, logits[::step], truth)


def test_one_item_cannot_be_halved():
    logits, truth = noise(4, nodes=1)
    task = NodeClassification(NodeSettings(), ["a", "b", "c"])
    right = [float(epoch.argmax(-1) == truth) for epoch in logits]
    assert cross_fitted(task, logits, truth) == max(right)


@pytest.mark.parametrize("count", [2, 7, 20])
def test_halves_are_halves_and_the_same_every_time(count):
    _, truth = noise(1, count)
    halves = cross_fitting._halves(truth, 5)
    assert len(halves) == 5
    for (first, second), (again, other) in zip(halves, cross_fitting._halves(truth, 5), strict=True):
        assert torch.equal(first, again)
        assert torch.equal(second, other)
        assert sorted([*first.tolist(), *second.tolist()]) == list(range(count))
        assert 0 <= len(first) - len(second) <= 1
        gaps = torch.bincount(truth[first], minlength=3) - torch.bincount(truth[second], minlength=3)
        assert int(gaps.abs().max()) <= 1, "classes are shared out evenly"
    if count > 2:
        assert len({tuple(first.tolist()) for first, _ in halves}) > 1
