"""The trainer on a line of three numbers: which epoch is kept, when it stops, what it averages, clips and counts."""

import math
import sys

import pytest
import torch
from torch import nn

from hgde.geometry import numerics
from hgde.graph import Graph
from hgde.models.base import Model
from hgde.solvers import InputError
from hgde.tasks.base import Learner, Part, Problem, SelectNodes
from hgde.tasks.metrics import CLASSES, VALUES, Metric
from hgde.training.checkpoint import CheckpointError
from hgde.training.settings import TrainingSettings
from hgde.training.trainer import Trainer, TrainingError, peak_memory_mib, rank, running_mean

GRAPH = Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), 3)


class Line(Model):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[1.0], [-3.0]]))
        self.seen = []

    def feature_parameters(self):
        return [self.weight]

    def forward(self, features, graph):
        return features @ self.weight

    def prepare(self, graph):
        self.seen.append("prepare")

    def observe(self, targets, nodes):
        self.seen.append(("observe", targets.tolist(), nodes.tolist()))


class Scripted:
    """A task whose validation scores and losses are given; it learns to make the outputs small."""

    kind = CLASSES

    def __init__(self, scores=(), losses=(), larger_is_better=True, loss_scale=1.0):
        self.metric = Metric("scripted", lambda predictions, truth: 0.0, (CLASSES,), larger_is_better)
        self.script = [iter(scores), iter(losses)]
        self.loss_scale, self.asked = loss_scale, []

    def loss(self, learner, problem):
        return self.loss_scale * learner(problem.inputs, problem.graph, problem.parts["train"].items).square().sum()

    def scores(self, predictions, truth, names=None):
        self.asked.append(truth.tolist())
        score, loss = (next(values, 0.0) for values in self.script)
        return {"scripted": score, "loss": loss}

    def gain(self, predictions, truth, scores):
        return self.metric.gain(scores["scripted"])

    def temperature(self, predictions, truth):
        return 2.0 + len(truth)


def make(task, path=None, seed=0, every=50, **settings):
    settings = TrainingSettings(**{"warm_up": 0, "weight_decay": 0.0, "calibrate": False} | settings)
    parts = {name: Part(torch.tensor([k]), torch.tensor([k])) for k, name in enumerate(("train", "val", "test"))}
    features = torch.tensor([[1.0, 0.5], [0.2, 1.0], [2.0, 2.0]])
    problem = Problem(task, GRAPH, parts, "made", "", features)
    generator = torch.Generator().manual_seed(seed)
    return Trainer(Learner(Line(), SelectNodes(), 1), problem, settings, seed, generator, path, every)


def weights_by_epoch(trainer):
    seen = {}
    outcome = trainer.fit(
        on_epoch=lambda epoch: seen.update({epoch.number: trainer.learner.model.weight.detach().clone()})
    )
    return outcome, seen


SCORES, LOSSES = (0.5, 0.9, 0.5, 0.8, 0.8), (3.0, 2.0, 1.0, 4.0, 2.0)


@pytest.mark.parametrize(
    ("settings", "larger", "best"),
    [
        ({"smoothing": 0.0}, True, 2),
        ({"smoothing": 0.5}, True, 5),  # 0.5, 0.7, 0.6, 0.7, 0.75
        ({"smoothing": 0.5, "epochs": 4}, True, 2),  # the same mean twice, the earlier with the smaller loss
        ({"keep": "loss"}, True, 3),
        ({"smoothing": 0.0}, False, 3),  # two smallest, the later with the smaller loss
        ({"smoothing": 0.5}, False, 1),
    ],
)
def test_the_epoch_that_is_kept(settings, larger, best):
    trainer = make(Scripted(SCORES, LOSSES, larger), **{"epochs": 5} | settings)
    outcome, seen = weights_by_epoch(trainer)
    assert outcome.best_epoch == best
    assert torch.equal(trainer.learner.model.weight, seen[best]), "its weights are put in"
    assert outcome.epochs == len(seen) == settings.get("epochs", 5)
    assert [row["score"] for row in outcome.history] == list(SCORES[: outcome.epochs])
    assert [row["validation_loss"] for row in outcome.history] == list(LOSSES[: outcome.epochs])


def test_rank_is_score_then_loss_or_loss_then_score():
    assert rank(1.0, 5.0, "score") > rank(0.9, 1.0, "score")
    assert rank(1.0, 1.0, "score") > rank(1.0, 5.0, "score")
    assert rank(0.1, 1.0, "loss") > rank(0.9, 2.0, "loss")
    assert rank(0.9, 1.0, "loss") > rank(0.1, 1.0, "loss")


def test_patience_counts_from_the_best_epoch():
    trainer = make(Scripted([0.1, 0.2, 0.3]), epochs=50, patience=4, smoothing=0.0)
    outcome = trainer.fit()
    assert (outcome.best_epoch, outcome.epochs) == (3, 7)
    assert trainer.is_done


def test_validation_falls_on_multiples_and_on_the_last_epoch():
    seen = []
    trainer = make(Scripted(), epochs=7, validate_every=3)
    trainer.start()
    trainer.advance(2, seen.append)
    trainer.advance(7, seen.append)
    assert [epoch.number for epoch in seen] == [3, 6, 7]
    assert [row["epoch"] for row in trainer.progress.history] == [3, 6, 7]
    assert all(epoch.predictions.shape == (1, 1) for epoch in seen)


def test_parts_are_used_for_what_they_are_for():
    task = Scripted()
    trainer = make(task, epochs=2)
    trainer.fit()
    assert task.asked == [[1], [1], [1], [2]], "validation each epoch; in the end validation and test"
    assert trainer.learner.model.seen == ["prepare", ("observe", [0], [0])]
    assert not trainer.learner.training


def test_losses_are_those_before_the_step():
    trainer = make(Scripted(), epochs=3, lr=0.1)
    outcome, seen = weights_by_epoch(trainer)
    row = trainer.problem.inputs[0]
    start = Line().weight.detach()
    expected = [float((row @ weight).square()) for weight in (start, seen[1], seen[2])]
    assert [entry["loss"] for entry in outcome.history] == pytest.approx(expected)
    assert expected[0] > 0


@pytest.mark.parametrize("clip", [None, 0.25])
def test_long_gradients_are_shortened(clip):
    trainer = make(Scripted(loss_scale=100.0), epochs=1, clip=clip)
    trainer.learner.model.weight.data.fill_(1.0)
    trainer.fit()
    length = float(trainer.learner.model.weight.grad.norm())
    assert length == pytest.approx(0.25) if clip else length > 100


def test_averages_are_what_is_scored_and_kept():
    trainer = make(Scripted([0.0, 0.0, 1.0]), epochs=3, averaging=0.75, smoothing=0.0, lr=0.3)
    outcome, seen = weights_by_epoch(trainer)
    mean = seen[1]
    for epoch, kept in ((2, 2 / 11), (3, 3 / 12)):  # the first epochs are forgotten sooner
        mean = kept * mean + (1 - kept) * seen[epoch]
    assert outcome.best_epoch == 3
    torch.testing.assert_close(trainer.learner.model.weight.detach(), mean)
    assert not torch.allclose(mean, seen[3])


def test_an_average_keeps_no_more_than_its_share():
    update, average = running_mean(0.5), torch.zeros(2)
    update([average], [torch.ones(2)], 100)
    torch.testing.assert_close(average, torch.full((2,), 0.5))
    update([average], [torch.zeros(2)], torch.tensor(2))
    torch.testing.assert_close(average, torch.full((2,), 0.125))


def test_log_odds_are_calibrated_on_the_validation_part_alone():
    trainer = make(Scripted(), epochs=1, calibrate=True)
    trainer.fit()
    assert float(trainer.learner.temperature) == 3.0
    assert float(trainer.best["temperature"]) == 3.0
    inputs = trainer.problem.inputs
    outputs = trainer.learner.outputs(inputs, GRAPH)
    torch.testing.assert_close(outputs, inputs @ trainer.learner.model.weight / 3.0)
    uncalibrated = make(Scripted(), epochs=1)
    uncalibrated.fit()
    assert float(uncalibrated.learner.temperature) == 1.0


def test_numbers_are_not_calibrated():
    task = Scripted()
    task.kind = VALUES
    assert set(make(task).idle) - set(make(Scripted()).idle) == {"calibrate"}


def test_projections_are_counted_over_all_epochs():
    class Leaving(Scripted):
        def loss(self, learner, problem):
            numerics.record_projections(torch.tensor(2))
            return super().loss(learner, problem)

    seen = []
    outcome = make(Leaving(), epochs=4, validate_every=2).fit(on_epoch=seen.append)
    assert [row["projected"] for row in outcome.history] == [4, 4]
    assert [epoch.projected for epoch in seen] == [4, 8]
    assert outcome.projected == 8


def test_checkpoints_are_written_when_due(tmp_path):
    path = tmp_path / "run"
    trainer = make(Scripted(), path, every=3, epochs=10)
    written = []
    trainer.start()
    save = trainer._save
    trainer._save = lambda: (written.append(trainer.progress.epoch), save())
    trainer.advance(8)
    assert written == [3, 6]
    assert path.exists()
    trainer.advance(10)
    trainer.finish()
    assert written == [3, 6, 10] or written == [3, 6, 9, 10]


def test_going_on_is_the_same_as_not_stopping(tmp_path):
    whole = make(Scripted(SCORES, LOSSES), epochs=5, averaging=0.5)
    expected = whole.fit()
    first = make(Scripted(SCORES, LOSSES), tmp_path / "run", epochs=5, averaging=0.5, every=2)
    first.start()
    first.advance(2)
    second = make(Scripted(SCORES[2:], LOSSES[2:]), tmp_path / "run", epochs=5, averaging=0.5)
    second.generator.manual_seed(99)
    second.start(resume=True)
    assert second.progress.epoch == 2
    assert torch.equal(second.generator.get_state(), first.generator.get_state())
    second.advance(5)
    outcome = second.finish()
    assert (outcome.history, outcome.best_epoch) == (expected.history, expected.best_epoch)
    for name, value in whole.learner.state_dict().items():
        assert torch.equal(second.learner.state_dict()[name], value), name
    fresh = make(Scripted(), tmp_path / "run", epochs=5, averaging=0.5)
    fresh.start()
    assert fresh.progress.epoch == 0, "a checkpoint is read only when asked for"
    seen = []
    make(Scripted(), tmp_path / "run", epochs=5, averaging=0.5).fit(on_epoch=seen.append)
    assert [epoch.number for epoch in seen] == [1, 2, 3, 4, 5]
    with pytest.raises(CheckpointError, match="of seed 0, not 1"):
        make(Scripted(), tmp_path / "run", seed=1, averaging=0.5).start(resume=True)


def test_losses_and_outputs_that_are_not_finite_end_in_words():
    with pytest.raises(TrainingError, match=r"the loss became nan after 1 epochs"):
        make(Scripted(loss_scale=math.nan), epochs=3).fit()
    trainer = make(Scripted(), epochs=3)
    trainer.problem.inputs[2, 0] = math.inf
    with pytest.raises(TrainingError, match="output became infinite"):
        trainer.fit()


def test_nothing_to_train_is_scored_once():
    trainer = make(Scripted([0.4]), epochs=5)
    trainer.optimisers.parts = {}
    trainer.start()
    assert trainer.is_done
    trainer.advance(5)
    assert trainer.finish().epochs == 0
    (row,) = trainer.progress.history
    assert (row["score"], row["loss"], row["projected"], row["epoch"]) == (0.4, 0.0, 0, 0)


def test_times_and_memory_are_measured(monkeypatch):
    outcome = make(Scripted(), epochs=3).fit()
    assert 0 < outcome.epoch_ms / 1000 <= outcome.seconds < 60
    assert 20 < peak_memory_mib() < 2**20
    assert outcome.peak_mib == pytest.approx(peak_memory_mib(), rel=0.2)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    monkeypatch.setattr(sys, "platform", "darwin")
    assert peak_memory_mib() == pytest.approx(outcome.peak_mib * unit / 2**20, rel=0.2), "macOS counts bytes"


def test_a_flow_that_refuses_its_input_ends_in_words():
    """Weights that an overflowing gradient has spoilt: met in training, and when validating."""

    class Spoilt(Scripted):
        def loss(self, learner, problem):
            raise InputError("a point is not finite")

    with pytest.raises(TrainingError, match=r"a point is not finite after 0 epochs.*smaller learning rate"):
        make(Spoilt(), epochs=2).fit()
    trainer = make(Scripted(), epochs=2)

    def refuse(features, graph):
        raise InputError("a point is not finite")

    trainer.learner.outputs = refuse
    with pytest.raises(TrainingError, match="a point is not finite after 0 epochs"):
        trainer._validate(0.0, 0)
