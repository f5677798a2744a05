"""Objectives of a search, on predictions whose worth is known beforehand."""

import statistics

import pytest
import torch

from hgde.experiments.objectives import OBJECTIVES, Trajectory, best_epoch, cross_fitted
from hgde.settings import Settings
from hgde.training.prepare import load_dataset, make_task
from hgde.training.run import train

EPOCHS = 40


@pytest.fixture(scope="module")
def settings():
    return Settings(data="disease-sim", epochs=5, width=4, time=1.0)


@pytest.fixture(scope="module")
def task(settings):
    return make_task(load_dataset(settings), settings)


def coins(seed, nodes=60):
    """Labels, and epochs that know nothing of them."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(2, (nodes,), generator=generator)
    return labels, [torch.randn(nodes, 2, generator=generator) for _ in range(EPOCHS)]


def test_the_best_of_many_coin_throws_looks_good_but_is_not_when_cross_fitted(task):
    throws = [coins(seed) for seed in range(10)]
    assert statistics.fmean(best_epoch(task, epochs, labels, "score") for labels, epochs in throws) > 0.6
    honest = statistics.fmean(cross_fitted(task, epochs, labels, "score") for labels, epochs in throws)
    assert honest == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("keep", ["score", "loss"])
@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_an_epoch_that_knows_every_label_is_found_among_coin_throws(task, objective, keep):
    labels, trajectory = coins(0)
    trajectory[17] = torch.nn.functional.one_hot(labels, 2).float()
    assert objective(task, trajectory, labels, keep) == 1


@pytest.mark.parametrize("keep", ["score", "loss"])
def test_the_best_epoch_of_a_trajectory_is_the_one_that_training_keeps(settings, task, keep):
    trajectory = Trajectory()
    outcome = train(settings.replace(keep=keep), task=task, reporter=trajectory).outcomes[0]
    assert len(trajectory.predictions) == settings.epochs
    assert best_epoch(task, trajectory.predictions, task.val_labels, keep) == outcome.validation[task.metric]
