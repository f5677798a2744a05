"""What is learned: classes of nodes, or links between them.

A task holds the features, the graph that messages may pass on, and the labels. Labels of the test part are read by
``test_scores`` alone.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn

from hgde.data import Dataset
from hgde.data.splits import LinkSplit, NodeSplit
from hgde.graph import Features, Graph
from hgde.models import HGDE, NodeModel
from hgde.training.metrics import METRICS

Scores = dict[str, float]


class TaskError(ValueError):
    """Data that cannot be trained on; the message says what is wrong."""


class Task(Protocol):
    """What the trainer asks of a task."""

    features: Features
    graph: Graph
    num_classes: int | None
    metric: str
    split_hash: str
    val_labels: Tensor

    def loss(self, model: NodeModel) -> Tensor:
        """Training loss, with gradient."""

    def outputs(self, model: NodeModel) -> Tensor:
        """What the model says of every node: logits, or points for links. No gradient is kept by the caller."""

    def validation_predictions(self, model: NodeModel, outputs: Tensor) -> Tensor:
        """What the model says of the validation part, whose truth is ``val_labels``."""

    def judge(self, predictions: Tensor, labels: Tensor) -> Scores:
        """``{metric: ..., "loss": ...}`` of predictions."""

    def test_scores(self, model: NodeModel, outputs: Tensor) -> Scores:
        """Every metric of the task on the test part; read once, at the epoch that validation chose."""

    def to(self, device: torch.device, dtype: torch.dtype) -> None: ...


def check_features(features: Features, num_nodes: int) -> None:
    values = features if isinstance(features, Tensor) else features.values
    if features.shape[0] != num_nodes:
        raise TaskError(f"there are {features.shape[0]} rows of features for {num_nodes} nodes")
    if num_nodes == 0:
        raise TaskError("the graph has no nodes; there is nothing to train on")
    if features.shape[1] == 0:
        raise TaskError("the nodes have no features; give some columns, or use identity features")
    wrong = ~torch.isfinite(values)
    if bool(wrong.any()):
        place = int(wrong.reshape(-1).nonzero()[0])
        row, column = (
            divmod(place, features.shape[1])
            if isinstance(features, Tensor)
            else (int(features.rows[place]), int(features.indices[place]))
        )
        raise TaskError(
            f"feature {column} of node {row} is {values.reshape(-1)[place]}; every feature must be a finite number "
            f"({int(wrong.sum())} are not)"
        )


class _Held:
    """What both tasks hold, and how it moves to a device."""

    features: Features
    graph: Graph

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        self.features = self.features.to(device).to(dtype)
        self.graph = self.graph.to(device)
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and not value.is_floating_point():
                setattr(self, name, value.to(device))


class NodeTask(_Held):
    """Classify nodes; cross entropy on the training nodes.

    Args:
        allow_overlap: admits the literature's faulty splits, whose parts share nodes.
        consistency: weight of :func:`disagreement` between two passes, each with dropout of its own; 0 for one pass.
        temperature: of the mean that the passes are drawn to.
    """

    def __init__(
        self,
        dataset: Dataset,
        split: NodeSplit,
        metric: str = "auto",
        *,
        allow_overlap: bool = False,
        consistency: float = 0.0,
        temperature: float = 0.5,
    ) -> None:
        labels = dataset.labels
        check_features(dataset.features, dataset.graph.num_nodes)
        if labels is None:
            raise TaskError(f"{dataset.name} has no labels; use task 'links', or give a column of labels")
        if len(labels) != dataset.graph.num_nodes:
            raise TaskError(f"there are {len(labels)} labels for {dataset.graph.num_nodes} nodes")
        for part, name in ((split.train, "training"), (split.val, "validation"), (split.test, "test")):
            if part.numel() and (int(part.min()) < 0 or int(part.max()) >= len(labels)):
                raise TaskError(f"the {name} part names node {int(part.max())}, but there are {len(labels)} nodes")
            missing = part[labels[part] < 0]
            if missing.numel():
                raise TaskError(f"node {int(missing[0])} of the {name} part has no label ({missing.numel()} have none)")
        if split.train.numel() == 0 or split.val.numel() == 0:
            raise TaskError("training and validation part must not be empty; label more nodes")
        if not allow_overlap:
            for a, b, names in (
                (split.train, split.val, "training and validation"),
                (split.train, split.test, "training and test"),
                (split.val, split.test, "validation and test"),
            ):
                shared = a[torch.isin(a, b)]
                if shared.numel():
                    raise TaskError(f"{names} part share {shared.numel()} nodes, such as node {int(shared[0])}")
        self.features, self.graph = dataset.features, dataset.graph
        self.num_classes: int | None = dataset.num_classes
        self.metric = "accuracy" if metric == "auto" else metric
        self.split_hash = split.hash
        self.train, self.val, self.test = split.train, split.val, split.test
        self.train_labels, self.val_labels = labels[split.train], labels[split.val]
        self._test_labels = labels[split.test]
        if bool((self.train_labels == self.train_labels[0]).all()):
            raise TaskError("the training part holds one class only; a classifier needs two")
        self.consistency, self.temperature = consistency, temperature

    def loss(self, model: NodeModel) -> Tensor:
        if self.consistency == 0:
            return nn.functional.cross_entropy(model(self.features, self.graph, self.train), self.train_labels)
        passes = torch.stack([model(self.features, self.graph) for _ in range(2)])
        labelled = passes.index_select(1, self.train).flatten(0, 1)
        supervised = nn.functional.cross_entropy(labelled, self.train_labels.repeat(2))
        return supervised + self.consistency * disagreement(passes, self.temperature)

    def outputs(self, model: NodeModel) -> Tensor:
        return model(self.features, self.graph)

    def validation_predictions(self, model: NodeModel, outputs: Tensor) -> Tensor:
        return outputs.index_select(0, self.val)

    def judge(self, predictions: Tensor, labels: Tensor) -> Scores:
        loss = nn.functional.cross_entropy(predictions, labels)
        return {self.metric: METRICS[self.metric](predictions, labels), "loss": float(loss)}

    def test_scores(self, model: NodeModel, outputs: Tensor) -> Scores:
        names = ("accuracy", "f1")
        if self.test.numel() == 0:
            return dict.fromkeys(names, math.nan)
        chosen = outputs.index_select(0, self.test)
        return {name: METRICS[name](chosen, self._test_labels) for name in names}


class LinkTask(_Held):
    """Predict links; cross entropy on the training edges against as many fresh non-edges each epoch.

    An edge that points are moved along is easy to tell: its ends have come nearer to each other. Those of held-out
    edges have not. With ``hidden_edges``, a fresh share of the training edges is taken out of the graph each epoch, and
    the loss is that of these edges only, so that training asks for what the test will ask for.
    """

    num_classes: int | None = None

    def __init__(self, dataset: Dataset, split: LinkSplit, metric: str = "auto", *, hidden_edges: float = 0.0) -> None:
        check_features(dataset.features, dataset.graph.num_nodes)
        if split.train_pos.shape[1] == 0 or split.val_pos.shape[1] == 0:
            raise TaskError("the graph has too few edges to hold some out for validation")
        self.features, self.graph = dataset.features, split.graph
        self.metric = "roc_auc" if metric == "auto" else metric
        self.split_hash = split.hash
        self.split = split
        self.hidden_edges = hidden_edges
        self.train_pos = split.train_pos
        self.val_pairs, self.val_labels = _labelled(split.val_pos, split.val_neg)
        self._test_pairs, self._test_labels = _labelled(split.test_pos, split.test_neg)

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        super().to(device, dtype)
        self.split = self.split.to(device)

    def loss(self, model: NodeModel) -> Tensor:
        assert isinstance(model, HGDE)
        positives, graph = self.train_pos, self.graph
        if self.hidden_edges > 0:
            positives, graph = self._hide()
        negatives = self.split.sample_training_negatives(positives.shape[1])
        z = model.embed(self.features, graph)
        scores = model.score_pairs(z, torch.cat([positives, negatives], dim=1))
        labels = torch.zeros_like(scores)
        labels[: positives.shape[1]] = 1
        return 2 * nn.functional.binary_cross_entropy_with_logits(scores, labels)

    def _hide(self) -> tuple[Tensor, Graph]:
        """A fresh share of the training edges, and the graph without them."""
        order = torch.randperm(self.train_pos.shape[1], device=self.train_pos.device)
        count = max(1, round(self.hidden_edges * len(order)))
        graph = Graph.from_edges(self.train_pos[:, order[count:]], self.graph.num_nodes)
        has_self_loops = self.graph.num_edges > self.split.graph.num_edges
        return self.train_pos[:, order[:count]], graph.with_self_loops() if has_self_loops else graph

    def outputs(self, model: NodeModel) -> Tensor:
        assert isinstance(model, HGDE)
        return model.embed(self.features, self.graph)

    def validation_predictions(self, model: NodeModel, outputs: Tensor) -> Tensor:
        assert isinstance(model, HGDE)
        return model.score_pairs(outputs, self.val_pairs)

    def judge(self, predictions: Tensor, labels: Tensor) -> Scores:
        loss = nn.functional.binary_cross_entropy_with_logits(predictions, labels.to(predictions.dtype))
        return {self.metric: METRICS[self.metric](predictions, labels), "loss": float(loss)}

    def test_scores(self, model: NodeModel, outputs: Tensor) -> Scores:
        assert isinstance(model, HGDE)
        names = ("roc_auc", "average_precision")
        if self._test_labels.numel() == 0:
            return dict.fromkeys(names, math.nan)
        scores = model.score_pairs(outputs, self._test_pairs)
        return {name: METRICS[name](scores, self._test_labels) for name in names}


def disagreement(logits: Tensor, temperature: float) -> Tensor:
    """Mean squared distance of the passes' class probabilities ``[passes, N, classes]`` from their sharpened mean.

    No label enters. No gradient flows through the mean: the passes come to it, not it to them.
    """
    probabilities = logits.softmax(-1)
    target = (probabilities.detach().mean(0).log() / temperature).softmax(-1)
    return (probabilities - target).square().sum(-1).mean()


def _labelled(positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    labels = torch.cat([torch.ones(positive.shape[1]), torch.zeros(negative.shape[1])]).to(torch.int64)
    return torch.cat([positive, negative], dim=1), labels
