"""Scores, by name. All take class or link scores and true labels, and are better when larger."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def accuracy(scores: Tensor, labels: Tensor) -> float:
    """Share of nodes whose highest score is their class."""
    return float((scores.argmax(-1) == labels).double().mean())


def f1(scores: Tensor, labels: Tensor) -> float:
    """F1 of class 1 where there are two classes (HGCN's metric on Disease), else micro-F1, which equals accuracy."""
    if scores.shape[-1] > 2:
        return accuracy(scores, labels)
    predicted = scores.argmax(-1)
    hits = float(((predicted == 1) & (labels == 1)).sum())
    total = float((predicted == 1).sum() + (labels == 1).sum())
    return 2 * hits / total if total else 0.0


def roc_auc(scores: Tensor, labels: Tensor) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels.cpu().numpy(), scores.cpu().numpy()))


def average_precision(scores: Tensor, labels: Tensor) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(labels.cpu().numpy(), scores.cpu().numpy()))


METRICS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "roc_auc": roc_auc,
    "average_precision": average_precision,
}
