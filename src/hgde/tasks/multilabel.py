"""Several labels per node, each present or not: binary cross entropy over what is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hgde.data import Dataset
from hgde.data.settings import DataSettings
from hgde.data.splits import NodeSplit, node_split
from hgde.sections import Section, setting
from hgde.tasks.base import TASKS, Predicted, Problem, Table, Task, TaskError
from hgde.tasks.metrics import LABELS
from hgde.tasks.parts import check_protocol, check_split, node_parts, part_column, refuse_pairs


@dataclass(frozen=True)
class MultiLabelSettings(Section):
    metric: str = setting(
        "auto", "Score to choose the epoch by and to report first (`hgde list metrics`; auto: micro_f1)."
    )
    class_weight: str = setting(
        "none",
        "Whether the presence of a rare label counts as much as its absence.",
        choices=("none", "balanced"),
    )


@TASKS.register("multilabel")
class MultiLabel(Task):
    """Any number of labels at each node.

    >>> import torch
    >>> from hgde import Dataset, Graph
    >>> from hgde.data import DataSettings
    >>> path = Graph.from_edges([(k, k + 1) for k in range(9)])
    >>> sets = torch.tensor([[k % 2, k // 5] for k in range(10)], dtype=torch.int8)
    >>> hobbies = Dataset("hobbies", path, torch.eye(10), label_sets=sets, target_names=["sport", "music"])
    >>> MultiLabel.pose(hobbies, MultiLabel.Settings(), DataSettings()).task.names
    ['sport', 'music']
    """

    Settings = MultiLabelSettings
    kind = LABELS
    default_metric = "micro_f1"
    reported = ("micro_f1", "macro_f1", "roc_auc", "average_precision", "log_loss")

    options: MultiLabelSettings

    def __init__(self, options: MultiLabelSettings, names: list[str], presence: Tensor | None = None) -> None:
        super().__init__(options)
        self.names, self.presence = names, presence

    @property
    def outputs(self) -> int:
        return len(self.names)

    @classmethod
    def pose(cls, dataset: Dataset, options: MultiLabelSettings, data: DataSettings) -> Problem:
        check_protocol(dataset, data)
        split = node_split(dataset, data.protocol, index=data.split, seed=data.split, targets=_label_sets(dataset))
        return cls.pose_on(dataset, options, split)

    @classmethod
    def pose_on(
        cls, dataset: Dataset, options: MultiLabelSettings, split: NodeSplit, *, allow_overlap: bool = False
    ) -> Problem:
        labels = _label_sets(dataset)
        check_split(split, (labels >= 0).any(1), allow_overlap=allow_overlap)
        names = dataset.target_names or [f"label{k}" for k in range(labels.shape[1])]
        parts = node_parts(split, labels, dataset.sample_weights)
        presence = None
        if options.class_weight == "balanced":
            known = parts["train"].truth
            presence = (known == 0).sum(0).double() / (known == 1).sum(0).double().clamp_min(1)
        return Problem(cls(options, names, presence), dataset.graph, parts, split.name, split.hash)

    def fitted(self) -> dict[str, Any]:
        return {"names": self.names, "presence": None if self.presence is None else self.presence.tolist()}

    @classmethod
    def from_fitted(cls, options: MultiLabelSettings, fitted: Mapping[str, Any]) -> MultiLabel:
        presence = fitted["presence"]
        return cls(options, list(fitted["names"]), None if presence is None else torch.tensor(presence).double())

    def discrepancy(self, predictions: Tensor, truth: Tensor, weights: Tensor | None = None) -> Tensor:
        known = (truth >= 0).to(predictions.dtype)
        scale = None if self.presence is None else self.presence.to(predictions.device, predictions.dtype)
        each = nn.functional.binary_cross_entropy_with_logits(
            predictions, truth.clamp_min(0).to(predictions.dtype), pos_weight=scale, reduction="none"
        )
        counted = known if weights is None else known * weights[:, None]
        return (counted * each).sum() / counted.sum()

    def table(self, predicted: Predicted) -> Table:
        refuse_pairs(predicted)
        chances = torch.sigmoid(predicted.outputs.double()).cpu().numpy()
        chosen = [" ".join(name for name, p in zip(self.names, row, strict=True) if p > 0.5) for row in chances]
        table: Table = {"id": predicted.ids, "prediction": np.array(chosen, dtype=object)}
        return table | {f"p_{name}": chances[:, k] for k, name in enumerate(self.names)}

    def truth_columns(self, problem: Problem, num_nodes: int) -> Table:
        truth = np.full((num_nodes, len(self.names)), -1, dtype=np.int64)
        for part in problem.parts.values():
            truth[part.items.cpu().numpy()] = part.truth.cpu().numpy()
        text = np.array(["" if value < 0 else str(value) for value in truth.reshape(-1)], dtype=object)
        columns: Table = {f"truth_{name}": text.reshape(truth.shape)[:, k] for k, name in enumerate(self.names)}
        return columns | {"part": part_column(problem, num_nodes)}


def _label_sets(dataset: Dataset) -> Tensor:
    if dataset.label_sets is None:
        raise TaskError(f"{dataset.name} has no label columns of 0 and 1; name several with --label-column a,b,c")
    return dataset.label_sets
