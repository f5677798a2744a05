"""Scores by name. A metric says what kind of predictions it reads and whether larger is better.

Kinds of predictions: ``classes`` (logits ``[n, C]``, truth int64 ``[n]``), ``pairs`` (log-odds ``[m]``, truth 0 or 1,
the linked pairs first), ``labels`` (logits ``[n, L]``, truth 0, 1, or -1 where unknown), ``values`` (numbers
``[n, T]``, truth NaN where unknown). Scores are fractions, not per cent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.registry import Registry

CLASSES, PAIRS, LABELS, VALUES = "classes", "pairs", "labels", "values"
Score = Callable[[Tensor, Tensor], float]
Array = np.ndarray[Any, Any]


class MetricError(ValueError):
    """A metric that does not fit; the message names those that do.

    >>> from hgde.tasks.metrics import metric_for
    >>> metric_for("rmse", "classes")
    Traceback (most recent call last):
    hgde.tasks.metrics.MetricError: ...
    """


@dataclass(frozen=True)
class Metric:
    """A score: ``function(predictions, truth)``.

    >>> import torch
    >>> halves = Metric("halves", lambda predictions, truth: 0.5, kinds=("classes",), larger_is_better=False)
    >>> halves(torch.zeros(1, 2), torch.tensor([0])), halves.gain(0.5)
    (0.5, -0.5)
    """

    name: str
    function: Score
    kinds: tuple[str, ...]
    larger_is_better: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.function.__doc__)  # a metric is explained by its function

    def __call__(self, predictions: Tensor, truth: Tensor) -> float:
        return self.function(predictions, truth) if truth.numel() else math.nan

    def gain(self, score: float) -> float:
        """The score as something to be maximised."""
        return score if self.larger_is_better else -score


METRICS: Registry[Metric] = Registry(
    "metric", "metrics", home=("hgde.tasks.metrics",), accepts=lambda value: isinstance(value, Metric)
)
"""Scores by name (``hgde list metrics``); the decorator :func:`metric` adds one."""


def metric(name: str, *kinds: str, larger_is_better: bool = True) -> Callable[[Score], Metric]:
    """Decorator that registers a function as a metric.

    >>> from hgde import METRICS
    >>> @metric("share_of_first", "classes")
    ... def share_of_first(predictions, truth):
    ...     return float((predictions.argmax(-1) == 0).double().mean())
    >>> "share_of_first" in METRICS.names()
    True
    """

    def make(function: Score) -> Metric:
        made = Metric(name, function, kinds, larger_is_better)
        METRICS.add(name, made)
        return made

    return make


def fitting(kind: str) -> list[str]:
    """Names of the metrics that read predictions of a kind."""
    return [name for name, entry in METRICS.items() if kind in entry.kinds]


def metric_for(name: str, kind: str) -> Metric:
    """The metric of that name, refused with those that do fit where it does not."""
    entry = METRICS.get(name)
    if kind not in entry.kinds:
        raise MetricError(f"{name} does not score {kind}; these do: {', '.join(fitting(kind))}")
    return entry


def probabilities(predictions: Tensor) -> Tensor:
    """Class probabilities ``[n, C]`` of logits, or the probability of a link or label of log-odds."""
    wide = predictions.double()
    return wide.softmax(-1) if wide.dim() == 2 else wide.sigmoid()


def _arrays(*tensors: Tensor) -> list[Array]:
    return [tensor.detach().cpu().numpy() for tensor in tensors]


@metric("accuracy", CLASSES, PAIRS)
def accuracy(predictions: Tensor, truth: Tensor) -> float:
    """Share of the predictions that are right; a pair counts as linked from even odds on.

    >>> import torch
    >>> accuracy(torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 1, 1]))
    0.6666666666666666
    """
    chosen = predictions.argmax(-1) if predictions.dim() == 2 else (predictions > 0).to(truth.dtype)
    return float((chosen == truth).double().mean())


@metric("balanced_accuracy", CLASSES)
def balanced_accuracy(predictions: Tensor, truth: Tensor) -> float:
    """Mean over the classes that occur of the share of their nodes that is right.

    >>> import torch
    >>> balanced_accuracy(torch.tensor([[1.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))
    0.5
    """
    right = (predictions.argmax(-1) == truth).double()
    counts = torch.bincount(truth).double()
    hits = torch.zeros_like(counts).index_add_(0, truth, right)
    return float((hits[counts > 0] / counts[counts > 0]).mean())


@metric("binary_f1", CLASSES)
def binary_f1(predictions: Tensor, truth: Tensor) -> float:
    """F1 of the second class where there are two (the literature's score on Disease), else micro-F1.

    >>> import torch
    >>> round(binary_f1(torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), torch.tensor([1, 0, 0])), 4)
    0.6667
    """
    if predictions.shape[-1] > 2:
        return accuracy.function(predictions, truth)
    return _f1((predictions.argmax(-1) == 1).double(), (truth == 1).double())


@metric("micro_f1", CLASSES, LABELS)
def micro_f1(predictions: Tensor, truth: Tensor) -> float:
    """F1 over all decisions together; with one class per node it equals the accuracy.

    >>> import torch
    >>> micro_f1(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    0.5
    """
    if truth.dim() == 1:
        return accuracy.function(predictions, truth)
    known = truth >= 0
    return _f1((predictions > 0)[known].double(), (truth == 1)[known].double())


@metric("macro_f1", CLASSES, LABELS)
def macro_f1(predictions: Tensor, truth: Tensor) -> float:
    """Mean over classes (those that occur or are predicted) or labels of their F1.

    >>> import torch
    >>> round(macro_f1(torch.tensor([[1.0, 0.0]] * 3), torch.tensor([0, 0, 1])), 4)      # 0.8 and 0
    0.4
    """
    if truth.dim() == 1:
        chosen = predictions.argmax(-1)
        present = torch.unique(torch.cat([chosen, truth])).tolist()
        scores = [_f1((chosen == k).double(), (truth == k).double()) for k in present]
    else:
        scores = []
        for column, answers in zip((predictions > 0).T, truth.T, strict=True):
            known = answers >= 0
            scores.append(_f1(column[known].double(), (answers == 1)[known].double()))
    return float(np.mean(scores))


def _f1(predicted: Tensor, true: Tensor) -> float:
    total = float(predicted.sum() + true.sum())
    return 2 * float((predicted * true).sum()) / total if total else 0.0


@metric("roc_auc", CLASSES, PAIRS, LABELS)
def roc_auc(predictions: Tensor, truth: Tensor) -> float:
    """Area under the ROC curve; with several classes or labels the mean of each against the rest.

    >>> import torch
    >>> roc_auc(torch.tensor([2.0, -1.0, 0.5, -2.0]), torch.tensor([1, 1, 0, 0]))      # log-odds of four pairs
    0.75
    """
    return _one_against_the_rest(_wins, predictions, truth)


def _wins(answers: Array, scores: Array) -> float:
    """Share of the pairs of a positive and a negative in which the positive has the higher score, ties counted half.

    That is the area; sklearn goes through the curve's points and takes fifty times as long for a few hundred of them.
    """
    positive, negative = scores[answers], np.sort(scores[~answers])
    below = np.searchsorted(negative, positive, "left").sum() + np.searchsorted(negative, positive, "right").sum()
    return float(below / (2 * positive.size * negative.size))


@metric("average_precision", CLASSES, PAIRS, LABELS)
def average_precision(predictions: Tensor, truth: Tensor) -> float:
    """Average precision; with several classes or labels the mean of each against the rest.

    >>> import torch
    >>> average_precision(torch.tensor([2.0, 1.0, -1.0]), torch.tensor([1, 1, 0]))
    1.0
    """
    from sklearn.metrics import average_precision_score

    return _one_against_the_rest(lambda answers, scores: average_precision_score(answers, scores), predictions, truth)


def _one_against_the_rest(score: Callable[[Array, Array], float], predictions: Tensor, truth: Tensor) -> float:
    """The mean score of the columns in which both answers occur; not a number if there is none."""
    if truth.dim() == 2:
        columns = [
            (answers[known] == 1, values[known])
            for answers, values, known in zip(*_arrays(truth.T, predictions.T, truth.T >= 0), strict=True)
        ]
    elif predictions.dim() == 1:
        answers, values = _arrays(truth, predictions)
        columns = [(answers == 1, values)]
    else:
        answers, values = _arrays(truth, probabilities(predictions))
        wanted = [1] if values.shape[1] == 2 else range(values.shape[1])
        columns = [(answers == k, values[:, k]) for k in wanted]
    scores = [float(score(answers, values)) for answers, values in columns if 0 < answers.sum() < answers.size]
    return float(np.mean(scores)) if scores else math.nan


@metric("log_loss", CLASSES, PAIRS, LABELS, larger_is_better=False)
def log_loss(predictions: Tensor, truth: Tensor) -> float:
    """Mean negative logarithm of the probability given to what is true.

    >>> import torch
    >>> round(log_loss(torch.zeros(3, 2), torch.tensor([0, 1, 1])), 4)
    0.6931
    """
    wide = predictions.double()
    if truth.dim() == 1 and wide.dim() == 2:
        return float(torch.nn.functional.cross_entropy(wide, truth))
    known = truth >= 0
    return float(torch.nn.functional.binary_cross_entropy_with_logits(wide[known], truth[known].double()))


@metric("calibration_error", CLASSES, PAIRS, LABELS, larger_is_better=False)
def calibration_error(predictions: Tensor, truth: Tensor) -> float:
    """Expected calibration error: mean distance of confidence and accuracy over 15 bins of equal width.

    >>> import torch
    >>> calibration_error(torch.zeros(2, 2), torch.tensor([0, 1]))      # even odds, half of them right
    0.0
    """
    confidence, right = confidences(predictions, truth)
    edges = np.linspace(0, 1, 16)
    place = np.clip(np.digitize(confidence, edges[1:-1], right=True), 0, 14)
    gaps = [abs(confidence[place == k].sum() - right[place == k].sum()) for k in range(15)]
    return float(np.sum(gaps) / max(confidence.size, 1))


def confidences(predictions: Tensor, truth: Tensor) -> tuple[Array, Array]:
    """The probability of what is predicted, and whether it is right, for every decision."""
    if truth.dim() == 1 and predictions.dim() == 2:
        top, chosen = predictions.double().softmax(-1).max(-1)
        confidence, right = _arrays(top, (chosen == truth).double())
        return confidence, right
    known = truth >= 0
    positive = predictions.double().sigmoid()[known]
    certain = torch.maximum(positive, 1 - positive)
    confidence, right = _arrays(certain, ((positive > 0.5) == (truth[known] == 1)).double())
    return confidence, right


def _ranks(predictions: Tensor, truth: Tensor) -> Tensor:
    """The rank of every linked pair among its negatives, ties counted half.

    Negatives are those of the pair itself where each has as many in order (``m = P + P K``, ``K > 1``), else all.
    """
    linked, others = predictions[truth == 1].double(), predictions[truth == 0].double()
    count = linked.numel()
    if count and others.numel() > count and others.numel() % count == 0:
        rivals = others.view(count, -1)
        above = (rivals > linked[:, None]).sum(1) + 0.5 * (rivals == linked[:, None]).sum(1)
        return 1 + above
    order = others.sort().values
    below = torch.searchsorted(order, linked, right=False)
    below_or_equal = torch.searchsorted(order, linked, right=True)
    return 1 + (order.numel() - below_or_equal) + 0.5 * (below_or_equal - below)


@metric("mrr", PAIRS)
def mrr(predictions: Tensor, truth: Tensor) -> float:
    """Mean reciprocal rank of a linked pair among negatives (its own where it has several, else all).

    >>> import torch
    >>> mrr(torch.tensor([3.0, 1.0, 2.0, 0.0]), torch.tensor([1, 1, 0, 0]))      # ranks 1 and 2
    0.75
    """
    return float(_ranks(predictions, truth).reciprocal().mean())


def _hits(k: int) -> Score:
    def hits(predictions: Tensor, truth: Tensor) -> float:
        return float((_ranks(predictions, truth) <= k).double().mean())

    hits.__doc__ = f"""Share of the linked pairs ranked among the first {k}.

    >>> import torch
    >>> from hgde import METRICS
    >>> METRICS.get("hits@{k}")(torch.tensor([1.0, 0.0]), torch.tensor([1, 0]))
    1.0
    """
    return hits


for _k in (1, 3, 10, 50, 100):
    metric(f"hits@{_k}", PAIRS)(_hits(_k))


@metric("r2", VALUES)
def r2(predictions: Tensor, truth: Tensor) -> float:
    """Share of the variance that is explained; with several targets the mean over them.

    >>> import torch
    >>> r2(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[1.0], [2.0], [3.0]]))
    1.0
    """
    scores = []
    for values, answers in zip(predictions.double().T, truth.double().T, strict=True):
        known = torch.isfinite(answers)
        rest = (values[known] - answers[known]).square().sum()
        total = (answers[known] - answers[known].mean()).square().sum()
        scores.append(float(1 - rest / total) if float(total) > 0 else math.nan)
    return float(np.mean(scores))


@metric("rmse", VALUES, larger_is_better=False)
def rmse(predictions: Tensor, truth: Tensor) -> float:
    """Root of the mean squared error.

    >>> import torch
    >>> rmse(torch.tensor([[1.0], [2.0]]), torch.tensor([[4.0], [-1.0]]))
    3.0
    """
    known = torch.isfinite(truth)
    return float((predictions.double()[known] - truth.double()[known]).square().mean().sqrt())


@metric("mae", VALUES, larger_is_better=False)
def mae(predictions: Tensor, truth: Tensor) -> float:
    """Mean absolute error.

    >>> import torch
    >>> mae(torch.tensor([[1.0], [2.0]]), torch.tensor([[4.0], [1.0]]))
    2.0
    """
    known = torch.isfinite(truth)
    return float((predictions.double()[known] - truth.double()[known]).abs().mean())
