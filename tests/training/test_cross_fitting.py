"""The score that searches maximise: honest about the epoch, and the fast way equal to the slow one."""

import pytest
import torch

from hgde.tasks.links import LinkPrediction, LinkSettings
from hgde.tasks.nodes import NodeClassification, NodeSettings
from hgde.training import cross_fitting
from hgde.training.cross_fitting import calibrated_loss, cross_fitted


def task(metric="auto"):
    return NodeClassification(NodeSettings(metric=metric), ["a", "b", "c"])


def noise(epochs=40, nodes=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = [torch.randn(nodes, 3, generator=generator) for _ in range(epochs)]
    return logits, torch.randint(0, 3, (nodes,), generator=generator)


def test_choosing_among_epochs_of_noise_gains_nothing():
    """The best epoch of noise looks good; what cross-fitting says stays near chance."""
    fitted, best = [], []
    for seed in range(8):
        logits, truth = noise(seed=seed)
        fitted.append(cross_fitted(task(), logits, truth))
        best.append(max(float((epoch.argmax(-1) == truth).double().mean()) for epoch in logits))
    assert sum(fitted) / 8 == pytest.approx(1 / 3, abs=0.04)
    assert sum(best) / 8 > 0.42


@pytest.mark.parametrize("keep", ["score", "loss"])
def test_the_fast_way_is_the_slow_one(keep, monkeypatch):
    logits, truth = noise()
    fast = cross_fitted(task(), logits, truth, keep)
    monkeypatch.setattr(cross_fitting, "CLASSES", "none")
    monkeypatch.setattr(cross_fitting, "FEW_HALVINGS", cross_fitting.HALVINGS)
    monkeypatch.setattr(cross_fitting, "MOST_EPOCHS", len(logits))
    assert cross_fitted(task(), logits, truth, keep) == pytest.approx(fast)


def test_a_model_that_learns_is_scored_by_what_it_learned():
    _, truth = noise()
    good = 5 * torch.nn.functional.one_hot(truth, 3).double()
    assert cross_fitted(task(), [torch.zeros(60, 3), good], truth) == 1.0


def test_errors_are_turned_round():
    logits, truth = noise()
    assert cross_fitted(task("log_loss"), logits, truth) < 0


def test_pairs_keep_linked_ones_first_in_both_halves():
    truth = torch.cat([torch.ones(21), torch.zeros(21)]).long()
    for halves in cross_fitting._halves(truth, 4):
        for half in halves:
            assert 10 <= int(truth[half].sum()) <= 11
            assert truth[half].tolist() == sorted(truth[half].tolist(), reverse=True)
    good = truth.double() - 0.5
    assert cross_fitted(LinkPrediction(LinkSettings()), [-good, good], truth) == 1.0


def test_no_epoch_is_the_worst_of_all():
    assert cross_fitted(task(), [], torch.zeros(3).long()) == float("-inf")


def test_an_unsure_candidate_is_ranked_by_its_loss_once_calibrated():
    """Log-odds that are too small by a factor lose nothing but what the prior of the temperature costs."""
    generator = torch.Generator().manual_seed(0)
    sure = 2 * torch.randn(400, 3, generator=generator)
    truth = torch.multinomial(sure.softmax(-1), 1, generator=generator).squeeze(1)
    unsure, plain = sure / 3, torch.nn.functional.cross_entropy
    assert float(plain(unsure, truth)) > float(plain(sure, truth)) + 0.1
    losses = [calibrated_loss(task(), [torch.zeros_like(sure), one], truth) for one in (sure, unsure)]
    assert losses[0] == pytest.approx(losses[1], abs=0.01)
