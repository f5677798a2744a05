"""What is learned. A task owns split, head, loss, scores and the table of predictions.

Two nouns. A :class:`Task` is the question, fitted to the training data (which classes there are, how values are
scaled); it is stored with a run and reads predictions on any graph. A :class:`Problem` is that question asked of one
data set: the graph that messages may travel on, and parts for training, validation and testing, each with its truth.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from hgde.data import Dataset
from hgde.data.settings import DataSettings
from hgde.graph import Features, Graph
from hgde.models.base import Model
from hgde.registry import Registry
from hgde.sections import Section
from hgde.tasks.evidence import LabelEvidence
from hgde.tasks.metrics import METRICS, VALUES, Metric, fitting, metric_for

Scores = dict[str, float]
Array = np.ndarray[Any, Any]
Table = dict[str, Array]
PARTS = ("train", "val", "test")
CALIBRATE_FROM = 30
"""Fewer validation items say too little about probabilities."""
LOG_TEMPERATURE_SPREAD = 0.5
"""Of the logarithm of a temperature, before anything is seen."""

TASKS: Registry[type[Task]] = Registry(
    "task",
    "tasks",
    home=("hgde.tasks",),
    accepts=lambda value: isinstance(value, type) and issubclass(value, Task),
)
"""Subclasses of :class:`Task` by name (``hgde list tasks``); ``TASKS.register`` adds one."""


class TaskError(ValueError):
    """Data that cannot be trained on; the message says what is wrong and what to try.

    >>> import torch
    >>> from hgde import Dataset, Graph, make_settings
    >>> from hgde.pipeline import prepare
    >>> settings = make_settings({"task": {"name": "regression"}})
    >>> prepare(settings, Dataset("bare", Graph.from_edges([(0, 1)]), torch.eye(2)))
    Traceback (most recent call last):
    hgde.tasks.base.TaskError: bare has no numbers to learn; give a numeric column of labels
    """


@dataclass(frozen=True, eq=False)
class Part:
    """What is asked: nodes ``[n]`` or pairs ``[2, m]``, the truth about each, and how much each counts (default 1).

    >>> import torch
    >>> Part(items=torch.tensor([0, 3, 4]), truth=torch.tensor([1, 0, 1])).size
    3
    """

    items: Tensor
    truth: Tensor
    weights: Tensor | None = None

    @property
    def size(self) -> int:
        return int(self.items.shape[-1])

    def to(self, device: torch.device, dtype: torch.dtype) -> Part:
        truth = self.truth.to(device)
        weights = None if self.weights is None else self.weights.to(device, dtype)
        return Part(self.items.to(device), truth.to(dtype) if truth.is_floating_point() else truth, weights)


@dataclass(frozen=True, eq=False)
class Problem:
    """A task asked of one data set. Truth of the test part is read by the final score alone.

    >>> from hgde import TASKS, load
    >>> from hgde.data import DataSettings
    >>> nodes = TASKS.get("nodes")
    >>> problem = nodes.pose(load("tree-random", num_nodes=50), nodes.Settings(), DataSettings())
    >>> {name: part.size for name, part in problem.parts.items()}
    {'train': 32, 'val': 9, 'test': 9}
    """

    task: Task
    graph: Graph
    parts: Mapping[str, Part]
    split_name: str
    split_hash: str
    features: Features | None = None
    extra: Any = field(default=None, repr=False)
    """What the task's own loss needs besides, such as the split that negatives are drawn by."""

    @property
    def inputs(self) -> Features:
        if self.features is None:
            raise TaskError("the problem has no input features yet")
        return self.features

    def with_features(self, features: Features) -> Problem:
        check_features(features, self.graph.num_nodes)
        return replace(self, features=features)

    def to(self, device: torch.device, dtype: torch.dtype) -> Problem:
        return replace(
            self,
            graph=self.graph.to(device),
            parts={name: part.to(device, dtype) for name, part in self.parts.items()},
            features=None if self.features is None else self.features.to(device).to(dtype),
            extra=self.extra.to(device) if hasattr(self.extra, "to") else self.extra,
        )


class Learner(nn.Module):
    """A model and a task's head: everything that is trained and stored.

    ``temperature`` divides log-odds once training is over (1 until then), so that they are calibrated.

    >>> from hgde import make_settings
    >>> from hgde.pipeline import fit
    >>> data = {"name": "tree-random", "options": ["num_nodes=40"]}
    >>> learner = fit(make_settings({"data": data, "training": {"epochs": 1}, "preset": "none"})).models[0].learner
    >>> type(learner).__name__, type(learner.model).__name__, float(learner.temperature) > 0
    ('Learner', 'HGDE', True)
    """

    temperature: Tensor

    def __init__(self, model: Model, head: nn.Module, outputs: int | None) -> None:
        super().__init__()
        self.model, self.head, self.wants_points = model, head, outputs is None
        self._selects_early = model.reads_out_each and self.evidence is None
        self.has_penalty = type(model).penalty is not Model.penalty
        self.register_buffer("temperature", torch.ones(()))

    @property
    def evidence(self) -> LabelEvidence | None:
        """What the labels around a node say, where the task has it read."""
        return self.head.evidence if isinstance(self.head, SelectWithLabels) else None

    def outputs(self, features: Features, graph: Graph) -> Tensor:
        """What the model gives for every node: ``[N, outputs]``, or points where pairs are compared."""
        if self.wants_points:
            points: Tensor = self.model.embed(features, graph)
            return points
        result: Tensor = self.model(features, graph)
        if self.evidence is not None:
            result = result + self.evidence(graph)
        return result if self.training else result / self.temperature

    def observe(self, graph: Graph, part: Part) -> None:
        """Work out, once before training, what the graph and the training part say."""
        self.model.prepare(graph)
        self.model.observe(part.truth, part.items)
        if self.evidence is not None:
            self.evidence.observe(graph, part.truth, part.items)

    def predict(self, outputs: Tensor, items: Tensor, graph: Graph | None = None) -> Tensor:
        """Predictions for some nodes or pairs, from the outputs of all nodes of a graph.

        A head that looks at the graph as well says so (``sees_graph``); without one it does with the outputs alone.
        """
        sees_graph = graph is not None and getattr(self.head, "sees_graph", False)
        result: Tensor = self.head(outputs, items, graph) if sees_graph else self.head(outputs, items)
        return result / self.temperature if self.wants_points and not self.training else result

    def forward(self, features: Features, graph: Graph, items: Tensor) -> Tensor:
        """Predictions for some nodes or pairs; nodes are selected before they are read out where that is the same."""
        if self.wants_points or not self._selects_early:
            return self.predict(self.outputs(features, graph), items, graph)
        return self.model.outputs_of(features, graph, items)

    def penalty(self, features: Features, graph: Graph, outputs: Tensor) -> Tensor | float:
        """The model's own term of the loss; a task that has a loss of its own adds it too."""
        value = self.model.penalty(features, graph, outputs) if self.has_penalty else None
        return 0.0 if value is None else value


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a table of predictions is made of: a learner's ``outputs`` for all nodes of a graph and the nodes' names.

    ``pairs [2, m]``: the pairs that are asked about, for a task on pairs; the learner's head compares them.

    >>> import numpy as np
    >>> import torch
    >>> from hgde import TASKS
    >>> nodes = TASKS.get("nodes")
    >>> task = nodes(nodes.Settings(), classes=["bird", "fish"])
    >>> table = task.table(Predicted(None, torch.tensor([[0.0, 2.0]]), np.array(["herring"])))
    >>> table["id"].tolist(), table["prediction"].tolist()
    (['herring'], ['fish'])
    """

    learner: Learner
    outputs: Tensor
    ids: Array
    pairs: Tensor | None = None
    graph: Graph | None = None


class SelectNodes(nn.Module):
    """The head of a task on nodes: the model has read them out already."""

    def forward(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        return outputs.index_select(0, nodes)


class SelectWithLabels(SelectNodes):
    """The head of classes that are also told by the labels around a node: the learner adds what these say."""

    def __init__(self, num_nodes: int, classes: int) -> None:
        super().__init__()
        self.evidence = LabelEvidence(num_nodes, classes)


class Task(ABC):
    """The question. Subclasses are registered and say which kind of predictions they make (see ``tasks.metrics``).

    >>> from hgde import TASKS
    >>> issubclass(TASKS.get("nodes"), Task)
    True
    """

    Settings: ClassVar[type[Section]]
    kind: ClassVar[str]
    default_metric: ClassVar[str]
    reported: ClassVar[tuple[str, ...]]
    """Metrics worked out for the validation and test part besides the one that chooses."""

    def __init__(self, options: Section) -> None:
        self.options = options
        wanted = str(getattr(options, "metric", "auto"))
        self.metric: Metric = metric_for(self.default_metric if wanted == "auto" else wanted, self.kind)

    @classmethod
    @abstractmethod
    def pose(cls, dataset: Dataset, options: Any, data: DataSettings) -> Problem:
        """Split the data set and fit the task to its training part; refuses, with words, what cannot be trained on."""

    @property
    @abstractmethod
    def outputs(self) -> int | None:
        """How many numbers per node are asked of a model; ``None`` for points."""

    @abstractmethod
    def fitted(self) -> dict[str, Any]:
        """What was learned of the training data, as plain values; the constructor takes it back."""

    @classmethod
    @abstractmethod
    def from_fitted(cls, options: Any, fitted: Mapping[str, Any]) -> Task: ...

    def head(self, model: Model, num_nodes: int) -> nn.Module:
        """What turns a model's outputs into predictions for nodes or pairs of a graph of so many nodes."""
        return SelectNodes()

    def loss(self, learner: Learner, problem: Problem) -> Tensor:
        """Training loss, with gradient."""
        part = problem.parts["train"]
        if not learner.has_penalty:
            predictions = learner(problem.inputs, problem.graph, part.items)
            return self.discrepancy(predictions, part.truth, part.weights)
        outputs = learner.outputs(problem.inputs, problem.graph)
        loss = self.discrepancy(learner.predict(outputs, part.items), part.truth, part.weights)
        return loss + learner.penalty(problem.inputs, problem.graph, outputs)

    @abstractmethod
    def discrepancy(self, predictions: Tensor, truth: Tensor, weights: Tensor | None = None) -> Tensor:
        """The loss of predictions: a mean over what is asked, weighted where weights are given."""

    def temperature(self, predictions: Tensor, truth: Tensor) -> float:
        """The number that log-odds are to be divided by to fit the truth best; 1 where there is too little to tell.

        Its logarithm is taken to be about 0, give or take 1/2, before anything is seen, so that few items do not move
        it far.
        """
        if self.kind == VALUES or int(truth.shape[0]) < CALIBRATE_FROM:
            return 1.0
        from scipy.optimize import minimize_scalar

        wide, count = predictions.double(), max(1, int((truth >= 0).sum()))
        loss = METRICS.get("log_loss")
        best = minimize_scalar(
            lambda log_t: loss(wide / math.exp(log_t), truth) + 0.5 * (log_t / LOG_TEMPERATURE_SPREAD) ** 2 / count,
            bounds=(-1.4, 1.4),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return math.exp(float(best.x))

    def natural(self, predictions: Tensor) -> Tensor:
        """Predictions in the units of the truth."""
        return predictions

    def scores(self, predictions: Tensor, truth: Tensor, names: tuple[str, ...] | None = None) -> Scores:
        """The chosen metric first, then the reported ones, then the loss."""
        wanted = dict.fromkeys((self.metric.name, *(self.reported if names is None else names)))
        natural = self.natural(predictions)
        result = {name: metric_for(name, self.kind)(natural, self.natural_truth(truth)) for name in wanted}
        loss = float(self.discrepancy(predictions, truth)) if truth.numel() else math.nan
        return result | {"loss": loss}

    def gain(self, predictions: Tensor, truth: Tensor, scores: Scores) -> float:
        """What an epoch is chosen by, larger is better: the metric, of which ``scores`` are known."""
        return self.metric.gain(scores[self.metric.name])

    def natural_truth(self, truth: Tensor) -> Tensor:
        return truth

    @abstractmethod
    def table(self, predicted: Predicted) -> Table:
        """A row per node (per pair for links): who, the prediction, probabilities."""

    def held_out_table(self, predicted: Predicted, problem: Problem) -> Table:
        """The table of the data set that was trained on, with truth and part of every row."""
        return self.table(predicted) | self.truth_columns(problem, len(predicted.ids))

    def truth_columns(self, problem: Problem, num_nodes: int) -> Table:
        """Truth and part of each node; empty where there is none."""
        return {}

    @classmethod
    def metrics(cls) -> list[str]:
        return fitting(cls.kind)


def check_features(features: Features, num_nodes: int) -> None:
    """Refuse features that are missing, of another number of nodes, or not finite."""
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
