"""Classes of nodes: cross entropy on the training nodes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hgde.data import Dataset, DataWarning, looks_continuous
from hgde.data.settings import DataSettings
from hgde.data.splits import NodeSplit, node_split
from hgde.models.base import Model
from hgde.sections import Section, SettingsError, setting
from hgde.tasks.base import (
    TASKS,
    Learner,
    Part,
    Predicted,
    Problem,
    Scores,
    SelectWithLabels,
    Table,
    Task,
    TaskError,
)
from hgde.tasks.metrics import CLASSES
from hgde.tasks.parts import check_protocol, check_split, node_parts, part_column, refuse_pairs


@dataclass(frozen=True)
class NodeSettings(Section):
    metric: str = setting(
        "auto", "Score to choose the epoch by and to report first (`hgde list metrics`; auto: accuracy)."
    )
    labels_per_class: int | None = setting(
        None, "Number of training labels per class, in a few-label split instead of the data set's own.", above=0
    )
    class_weight: str = setting(
        "none",
        "Weights of the classes in the loss: none (all nodes alike), balanced (rare classes as much "
        "as frequent ones), or class=weight,class=weight (others 1).",
    )
    consistency: float = setting(
        0.0,
        "Weight of the agreement between two dropout passes on labelled and unlabelled nodes (0: off).",
        at_least=0,
    )
    consistency_temperature: float = setting(
        0.5,
        "Below 1, the passes are pulled towards a sharpened version of their mean.",
        above=0,
        inert=lambda s: "consistency is 0" if s.consistency == 0 else None,
    )
    labels: bool = setting(False, "Also use the training labels around a node, except its own; on the training graph.")

    def check(self) -> None:
        if self.class_weight not in ("none", "balanced"):
            parse_class_weights(self.class_weight)


def parse_class_weights(text: str) -> dict[str, float]:
    """``a=2,b=0.5`` as a dictionary."""
    weights = {}
    for part in text.split(","):
        name, mark, number = part.rpartition("=")
        try:
            weights[name.strip()] = float(number)
        except ValueError:
            mark = ""
        if not mark or not 0 <= weights[name.strip()] < float("inf"):
            raise SettingsError(f"class_weight must be none, balanced or class=weight,..., got {text!r}")
    return weights


@TASKS.register("nodes")
class NodeClassification(Task):
    """Classes of nodes, some of which are labelled.

    >>> from hgde import load
    >>> from hgde.data import DataSettings
    >>> tree = load("tree-random", num_nodes=50)
    >>> problem = NodeClassification.pose(tree, NodeClassification.Settings(class_weight="balanced"), DataSettings())
    >>> problem.task.metric.name, problem.task.outputs == tree.num_classes
    ('accuracy', True)
    """

    Settings = NodeSettings
    kind = CLASSES
    default_metric = "accuracy"
    reported = ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "calibration_error")

    options: NodeSettings

    def __init__(self, options: NodeSettings, classes: list[str], class_weights: Tensor | None = None) -> None:
        super().__init__(options)
        self.classes, self.class_weights = classes, class_weights

    @property
    def outputs(self) -> int:
        return len(self.classes)

    @classmethod
    def pose(cls, dataset: Dataset, options: NodeSettings, data: DataSettings) -> Problem:
        check_protocol(dataset, data)
        _refuse_measurements(dataset)
        split = (
            node_split(dataset, data.protocol, index=data.split, seed=data.split)
            if options.labels_per_class is None
            else node_split(
                dataset,
                "few",
                seed=data.split,
                per_class=options.labels_per_class,
                num_val=_few_validation(dataset, options.labels_per_class),
            )
        )
        return cls.pose_on(dataset, options, split, allow_overlap=data.protocol == "published")

    @classmethod
    def pose_on(cls, dataset: Dataset, options: NodeSettings, split: NodeSplit, *, allow_overlap: bool) -> Problem:
        """The problem on a split at hand. ``allow_overlap`` admits the literature's faulty splits that share nodes."""
        labels = dataset.labels
        if labels is None:
            raise TaskError(
                f"{dataset.name} has no labels; add a column label, choose one with --label-column, or use --task links"
            )
        if len(labels) != dataset.graph.num_nodes:
            raise TaskError(f"there are {len(labels)} labels for {dataset.graph.num_nodes} nodes")
        check_split(split, labels >= 0, allow_overlap=allow_overlap)
        classes = dataset.class_names or [str(k) for k in range(dataset.num_classes)]
        parts = node_parts(split, labels, dataset.sample_weights)
        task = cls(options, classes, _class_weights(options, parts["train"], classes))
        return Problem(task, dataset.graph, parts, split.name, split.hash)

    def fitted(self) -> dict[str, Any]:
        weights = None if self.class_weights is None else self.class_weights.tolist()
        return {"classes": self.classes, "class_weights": weights}

    @classmethod
    def from_fitted(cls, options: NodeSettings, fitted: Mapping[str, Any]) -> NodeClassification:
        weights = fitted["class_weights"]
        return cls(options, list(fitted["classes"]), None if weights is None else torch.tensor(weights).double())

    def head(self, model: Model, num_nodes: int) -> nn.Module:
        return SelectWithLabels(num_nodes, self.outputs) if self.options.labels else super().head(model, num_nodes)

    def loss(self, learner: Learner, problem: Problem) -> Tensor:
        if self.options.consistency == 0:
            return super().loss(learner, problem)
        part = problem.parts["train"]
        passes = torch.stack([learner.outputs(problem.inputs, problem.graph) for _ in range(2)])
        chosen = passes.index_select(1, part.items)
        supervised = torch.stack([self.discrepancy(logits, part.truth, part.weights) for logits in chosen]).mean()
        loss = supervised + self.options.consistency * disagreement(passes, self.options.consistency_temperature)
        return loss + learner.penalty(problem.inputs, problem.graph, passes[0])

    def discrepancy(self, predictions: Tensor, truth: Tensor, weights: Tensor | None = None) -> Tensor:
        scale = None if self.class_weights is None else self.class_weights.to(predictions.device, predictions.dtype)
        if weights is None:
            return nn.functional.cross_entropy(predictions, truth, scale)
        each = nn.functional.cross_entropy(predictions, truth, scale, reduction="none")
        total = weights if scale is None else weights * scale.index_select(0, truth)
        return (weights * each).sum() / total.sum()

    def gain(self, predictions: Tensor, truth: Tensor, scores: Scores) -> float:
        """With class weights, and unless a metric was asked for, accuracy in which every node counts as in the loss."""
        if self.class_weights is None or self.options.metric != "auto" or truth.numel() == 0:
            return super().gain(predictions, truth, scores)
        weights = self.class_weights.to(truth.device).index_select(0, truth)
        right = (predictions.argmax(-1) == truth).to(weights.dtype)
        return float((weights * right).sum() / weights.sum().clamp_min(1e-300))

    def table(self, predicted: Predicted) -> Table:
        refuse_pairs(predicted)
        chances = predicted.outputs.double().softmax(-1)
        names = np.array(self.classes)
        table: Table = {"id": predicted.ids, "prediction": names[chances.argmax(-1).cpu().numpy()]}
        table["confidence"] = chances.max(-1).values.cpu().numpy()
        return table | {f"p_{name}": chances[:, k].cpu().numpy() for k, name in enumerate(self.classes)}

    def truth_columns(self, problem: Problem, num_nodes: int) -> Table:
        truth = np.full(num_nodes, "", dtype=object)
        for part in problem.parts.values():
            truth[part.items.cpu().numpy()] = np.array(self.classes, dtype=object)[part.truth.cpu().numpy()]
        return {"truth": truth, "part": part_column(problem, num_nodes)}


def _few_validation(dataset: Dataset, per_class: int) -> int:
    """1000 validation nodes, as is usual with few labels; half of what is left where a set is too small for them."""
    labelled = 0 if dataset.labels is None else int((dataset.labels >= 0).sum())
    left = labelled - per_class * dataset.num_classes
    return 1000 if left > 1000 else max(left // 2, 1)


def _refuse_measurements(dataset: Dataset) -> None:
    """Classes that are numbers with fractions are a mistake; many whole ones may be."""
    values = dataset.values
    if values is None or not looks_continuous(values):
        return
    known = values[torch.isfinite(values)]
    count, example = known.unique().numel(), float(known[0])
    column = f", column {dataset.target_names[0]}," if dataset.target_names else ""
    advice = "learn them as values with task 'regression' (--task regression)"
    if bool((known != known.floor()).any()):
        raise TaskError(
            f"the labels of {dataset.name}{column} look like measurements, not classes: {count} different numbers such "
            f"as {example:g}; {advice}, or write the classes as words"
        )
    warnings.warn(
        f"the labels of {dataset.name}{column} are {count} different whole numbers, which look like measurements; "
        f"if they are, {advice}",
        DataWarning,
        stacklevel=3,
    )


def _class_weights(options: NodeSettings, train: Part, classes: list[str]) -> Tensor | None:
    """As given by name, or ``n / (C n_k)`` for a class of ``n_k`` of the ``n`` training nodes (``balanced``)."""
    if options.class_weight == "none":
        return None
    if options.class_weight == "balanced":
        counts = torch.bincount(train.truth, minlength=len(classes)).double()
        return counts.sum() / (len(classes) * counts.clamp_min(1))
    given = parse_class_weights(options.class_weight)
    unknown = sorted(set(given) - set(classes))
    if unknown:
        raise TaskError(f"class_weight names class {unknown[0]!r}; the classes are {', '.join(classes[:20])}")
    return torch.tensor([given.get(name, 1.0) for name in classes], dtype=torch.float64)


def disagreement(logits: Tensor, temperature: float) -> Tensor:
    """Mean squared distance of the passes' class probabilities ``[passes, N, classes]`` from their sharpened mean.

    No label enters. No gradient flows through the mean: the passes come to it, not it to them.
    """
    chances = logits.softmax(-1)
    target = (chances.detach().mean(0).log() / temperature).softmax(-1)
    return (chances - target).square().sum(-1).mean()
