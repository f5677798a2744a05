"""Every metric against scikit-learn or a loop written from its definition."""

import math

import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from hgde.tasks.metrics import CLASSES, LABELS, METRICS, PAIRS, VALUES, MetricError, fitting, metric_for

RANDOM = np.random.default_rng(0)
LOGITS, CLASS = RANDOM.normal(size=(60, 4)), RANDOM.integers(0, 4, 60)
TWO, BINARY = RANDOM.normal(size=(60, 2)), RANDOM.integers(0, 2, 60)
ODDS, LINKED = RANDOM.normal(size=60), np.r_[np.ones(30, int), np.zeros(30, int)]
SETS, TRUE_SETS = RANDOM.normal(size=(60, 3)), RANDOM.integers(0, 2, (60, 3))
VALUE, TRUE_VALUE = RANDOM.normal(size=(60, 2)), RANDOM.normal(size=(60, 2))


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


EXPECTED = {
    ("accuracy", CLASSES): (LOGITS, CLASS, sk.accuracy_score(CLASS, LOGITS.argmax(1))),
    ("accuracy", PAIRS): (ODDS, LINKED, sk.accuracy_score(LINKED, ODDS > 0)),
    ("balanced_accuracy", CLASSES): (LOGITS, CLASS, sk.balanced_accuracy_score(CLASS, LOGITS.argmax(1))),
    ("binary_f1", CLASSES): (TWO, BINARY, sk.f1_score(BINARY, TWO.argmax(1))),
    ("micro_f1", CLASSES): (LOGITS, CLASS, sk.f1_score(CLASS, LOGITS.argmax(1), average="micro")),
    ("macro_f1", CLASSES): (LOGITS, CLASS, sk.f1_score(CLASS, LOGITS.argmax(1), average="macro")),
    ("micro_f1", LABELS): (SETS, TRUE_SETS, sk.f1_score(TRUE_SETS, SETS > 0, average="micro")),
    ("macro_f1", LABELS): (SETS, TRUE_SETS, sk.f1_score(TRUE_SETS, SETS > 0, average="macro")),
    ("roc_auc", CLASSES): (LOGITS, CLASS, sk.roc_auc_score(CLASS, softmax(LOGITS), multi_class="ovr")),
    ("roc_auc", PAIRS): (ODDS, LINKED, sk.roc_auc_score(LINKED, ODDS)),
    ("roc_auc", LABELS): (SETS, TRUE_SETS, sk.roc_auc_score(TRUE_SETS, SETS, average="macro")),
    ("average_precision", CLASSES): (
        LOGITS,
        CLASS,
        np.mean([sk.average_precision_score(k == CLASS, softmax(LOGITS)[:, k]) for k in range(4)]),
    ),
    ("average_precision", PAIRS): (ODDS, LINKED, sk.average_precision_score(LINKED, ODDS)),
    ("average_precision", LABELS): (SETS, TRUE_SETS, sk.average_precision_score(TRUE_SETS, SETS, average="macro")),
    ("log_loss", CLASSES): (LOGITS, CLASS, sk.log_loss(CLASS, softmax(LOGITS))),
    ("log_loss", PAIRS): (ODDS, LINKED, sk.log_loss(LINKED, sigmoid(ODDS))),
    ("log_loss", LABELS): (SETS, TRUE_SETS, sk.log_loss(TRUE_SETS.ravel(), sigmoid(SETS).ravel())),
    ("r2", VALUES): (VALUE, TRUE_VALUE, sk.r2_score(TRUE_VALUE, VALUE)),
    ("rmse", VALUES): (VALUE, TRUE_VALUE, math.sqrt(sk.mean_squared_error(TRUE_VALUE, VALUE))),
    ("mae", VALUES): (VALUE, TRUE_VALUE, sk.mean_absolute_error(TRUE_VALUE, VALUE)),
}
BY_LOOP = {"calibration_error", "mrr", "hits@1", "hits@3", "hits@10", "hits@50", "hits@100"}


@pytest.mark.parametrize(("name", "kind"), EXPECTED)
def test_as_scikit_learn(name, kind):
    predictions, truth, expected = EXPECTED[name, kind]
    assert metric_for(name, kind)(torch.tensor(predictions), torch.tensor(truth)) == pytest.approx(expected)


def test_every_metric_is_tested():
    tested = {name for name, _ in EXPECTED} | BY_LOOP
    assert tested == {name for name in METRICS.names() if METRICS.origin(name) == "built in"}


def test_ranks_among_shared_negatives_ties_counted_half():
    odds = torch.tensor([3.0, 1.0, 0.0, 2.0, 1.0, -1.0])
    linked = torch.tensor([1, 1, 1, 0, 0, 0])
    ranks = [1.0, 2.5, 3.0]
    assert METRICS.get("mrr")(odds, linked) == pytest.approx(np.mean([1 / r for r in ranks]))
    assert METRICS.get("hits@1")(odds, linked) == pytest.approx(1 / 3)
    assert METRICS.get("hits@3")(odds, linked) == pytest.approx(1.0)


def test_ranks_among_the_negatives_of_each_edge():
    odds = torch.tensor([2.0, 0.0, 1.0, 3.0, -1.0, 1.0])
    linked = torch.tensor([1, 1, 0, 0, 0, 0])
    assert METRICS.get("mrr")(odds, linked) == pytest.approx((1 / 2 + 1 / 2) / 2)


def test_calibration_error_by_hand():
    confident = torch.tensor([[5.0, 0.0], [0.0, 5.0], [5.0, 0.0], [0.2, 0.0]])
    truth = torch.tensor([0, 1, 1, 0])
    p, q = float(torch.sigmoid(torch.tensor(5.0))), float(torch.sigmoid(torch.tensor(0.2)))
    expected = (abs(3 * p - 2) + abs(q - 1)) / 4
    assert METRICS.get("calibration_error")(confident, truth) == pytest.approx(expected, abs=1e-6)


def test_what_is_not_known_does_not_count():
    sets = torch.tensor(TRUE_SETS.copy())
    sets[:10] = -1
    assert METRICS.get("micro_f1")(torch.tensor(SETS), sets) == pytest.approx(
        sk.f1_score(TRUE_SETS[10:], SETS[10:] > 0, average="micro")
    )
    values = torch.tensor(TRUE_VALUE.copy())
    values[:10, 0] = float("nan")
    kept = np.concatenate([(VALUE - TRUE_VALUE)[10:, 0], (VALUE - TRUE_VALUE)[:, 1]])
    assert METRICS.get("mae")(torch.tensor(VALUE), values) == pytest.approx(np.abs(kept).mean())


def test_a_metric_that_does_not_fit_is_refused_with_those_that_do():
    with pytest.raises(MetricError, match=r"rmse does not score classes; these do: accuracy, average_precision"):
        metric_for("rmse", CLASSES)
    assert "mrr" in fitting(PAIRS)
    assert "mrr" not in fitting(CLASSES)


def test_an_empty_part_has_no_score():
    assert math.isnan(METRICS.get("accuracy")(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)))
    assert math.isnan(METRICS.get("roc_auc")(torch.zeros(3), torch.ones(3, dtype=torch.int64)))


def test_gain_turns_errors_round():
    assert METRICS.get("rmse").gain(2.0) == -2.0
    assert METRICS.get("r2").gain(0.5) == 0.5
