"""What a choice of settings goes by: a score of one training run, worked out from its validation part alone."""

from __future__ import annotations

import statistics

import torch
from torch import Tensor, nn

from hgde.tasks import Task
from hgde.tasks.metrics import CLASSES, METRICS
from hgde.training.trainer import rank

HALVINGS = 10
FEW_HALVINGS, MOST_EPOCHS = 3, 25
"""Where each epoch is scored by itself: so many halvings, and epochs evenly spaced, so that no score chose them."""


def cross_fitted(task: Task, predictions: list[Tensor], truth: Tensor, keep: str = "score") -> float:
    """An epoch is chosen on one half of the validation part and scored on the other: the mean over random halvings.

    The best score of all epochs is the largest of many: it favours what fluctuates. This one was raised by no choice of
    an epoch; what it costs is the smaller part to choose on. Larger is better, also where the metric is an error.

    Args:
        task: whose metric chooses and scores.
        predictions: the model's predictions for the validation part, epoch by epoch, each ``[n, ...]``.
        truth: of the validation part, ``[n, ...]``.
        keep: what an epoch is chosen by, as in the training settings.
    """
    if not predictions:
        return float("-inf")
    if len(truth) < 2:
        return max(task.gain(epoch, truth, task.scores(epoch, truth, names=())) for epoch in predictions)
    is_decomposable = task.kind == CLASSES and task.metric.name == "accuracy"
    if is_decomposable and getattr(task, "class_weights", None) is None:
        return _by_items(predictions, truth, keep)
    step = -(-len(predictions) // MOST_EPOCHS)
    chosen = predictions[::step]
    scores = []
    for first, second in _halves(truth, FEW_HALVINGS):
        for chosen_on, scored_on in ((first, second), (second, first)):
            ranks = []
            for epoch in chosen:
                own = epoch[chosen_on], truth[chosen_on]
                one = task.scores(*own, names=())
                ranks.append(rank(task.gain(*own, one), one["loss"], keep))
            kept = max(range(len(ranks)), key=ranks.__getitem__)
            held = chosen[kept][scored_on], truth[scored_on]
            scores.append(task.gain(*held, task.scores(*held, names=())))
    return statistics.fmean(scores)


def calibrated_loss(task: Task, predictions: list[Tensor], truth: Tensor) -> float:
    """The smallest log loss of an epoch for classes, its log-odds divided by the temperature that suits them.

    Without that, a candidate under strong dropout, which is unsure of itself at first, would be ranked below its due.
    """
    loss = METRICS.get("log_loss")
    best = min(predictions, key=lambda epoch: loss(epoch, truth))
    return float(loss(best / task.temperature(best, truth), truth))


def _by_items(predictions: list[Tensor], truth: Tensor, keep: str) -> float:
    """The same for accuracy, which is a mean over nodes: two products instead of a score per epoch and half."""
    logits = torch.stack(predictions).double()
    right = (logits.argmax(-1) == truth).double()
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), truth.repeat(len(logits)), reduction="none").view_as(right)
    scores = []
    for first, second in _halves(truth, HALVINGS):
        for chosen_on, scored_on in ((first, second), (second, first)):
            gains, losses = right[:, chosen_on].mean(1).tolist(), loss[:, chosen_on].mean(1).tolist()
            pairs = [(g, -e) if keep == "score" else (-e, g) for g, e in zip(gains, losses, strict=True)]
            kept = max(range(len(pairs)), key=pairs.__getitem__)
            scores.append(float(right[kept, scored_on].mean()))
    return statistics.fmean(scores)


def _halves(truth: Tensor, count: int) -> list[tuple[Tensor, Tensor]]:
    """Random halves, the same for every run. Classes (or linked and other pairs) are shared out evenly."""
    generator = torch.Generator().manual_seed(0)
    halves = []
    for _ in range(count):
        order = torch.randperm(len(truth), generator=generator)
        if truth.dim() == 1 and not truth.is_floating_point():
            order = order[torch.argsort(truth.cpu()[order], stable=True)]
        order = order.to(truth.device)
        # Neighbours in this order go to different halves; in the order of the part itself, so that pairs stay in order.
        halves.append((order[::2].sort().values, order[1::2].sort().values))
    return halves
