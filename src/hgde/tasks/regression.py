"""Values of nodes: squared error on values scaled by the training nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.data import Dataset
from hgde.data.settings import DataSettings
from hgde.data.splits import NodeSplit, node_split
from hgde.sections import Section, setting
from hgde.tasks.base import TASKS, Predicted, Problem, Table, Task, TaskError
from hgde.tasks.metrics import VALUES
from hgde.tasks.parts import check_protocol, check_split, node_parts, part_column, refuse_pairs


@dataclass(frozen=True)
class RegressionSettings(Section):
    metric: str = setting("auto", "Score to choose the epoch by and to report first (`hgde list metrics`; auto: r2).")
    robust: bool = setting(False, "Errors beyond one standard deviation count linearly, not squared (Huber's loss).")


@TASKS.register("regression")
class NodeRegression(Task):
    """Numbers at nodes, some of which are known.

    >>> import torch
    >>> from hgde import Dataset, Graph
    >>> from hgde.data import DataSettings
    >>> path = Graph.from_edges([(k, k + 1) for k in range(9)])
    >>> heights = Dataset("heights", path, torch.eye(10), values=torch.arange(10.0).double()[:, None])
    >>> NodeRegression.pose(heights, NodeRegression.Settings(), DataSettings()).task.metric.name
    'r2'
    """

    Settings = RegressionSettings
    kind = VALUES
    default_metric = "r2"
    reported = ("r2", "rmse", "mae")

    options: RegressionSettings

    def __init__(self, options: RegressionSettings, names: list[str], mean: Tensor, scale: Tensor) -> None:
        super().__init__(options)
        self.names, self.mean, self.scale = names, mean, scale

    @property
    def outputs(self) -> int:
        return len(self.names)

    @classmethod
    def pose(cls, dataset: Dataset, options: RegressionSettings, data: DataSettings) -> Problem:
        check_protocol(dataset, data)
        split = node_split(dataset, data.protocol, index=data.split, seed=data.split, targets=_values(dataset))
        return cls.pose_on(dataset, options, split)

    @classmethod
    def pose_on(
        cls, dataset: Dataset, options: RegressionSettings, split: NodeSplit, *, allow_overlap: bool = False
    ) -> Problem:
        values = _values(dataset)
        check_split(split, torch.isfinite(values).any(1), allow_overlap=allow_overlap)
        known = values[split.train].double()
        mean, scale = known.nanmean(0), _deviation(known)
        names = dataset.target_names or [f"value{k}" for k in range(values.shape[1])]
        parts = node_parts(split, (values.double() - mean) / scale, dataset.sample_weights)
        return Problem(cls(options, names, mean, scale), dataset.graph, parts, split.name, split.hash)

    def fitted(self) -> dict[str, Any]:
        return {"names": self.names, "mean": self.mean.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_fitted(cls, options: RegressionSettings, fitted: Mapping[str, Any]) -> NodeRegression:
        mean, scale = (torch.tensor(fitted[key], dtype=torch.float64) for key in ("mean", "scale"))
        names = list(fitted["names"])
        if mean.shape != scale.shape or mean.shape != (len(names),) or not bool((scale > 0).all()):
            raise ValueError("the task needs a mean and a scale above zero for each value that is predicted")
        return cls(options, names, mean, scale)

    def discrepancy(self, predictions: Tensor, truth: Tensor, weights: Tensor | None = None) -> Tensor:
        known = torch.isfinite(truth)
        gap = torch.where(known, predictions - torch.where(known, truth, 0.0), 0.0)
        each = (
            torch.nn.functional.huber_loss(gap, torch.zeros_like(gap), reduction="none")
            if self.options.robust
            else gap * gap
        )
        counted = known.to(each.dtype) if weights is None else known * weights[:, None]
        return (counted * each).sum() / counted.sum()

    def natural(self, predictions: Tensor) -> Tensor:
        return predictions.double() * self.scale.to(predictions.device) + self.mean.to(predictions.device)

    def natural_truth(self, truth: Tensor) -> Tensor:
        return self.natural(truth)

    def table(self, predicted: Predicted) -> Table:
        refuse_pairs(predicted)
        values = self.natural(predicted.outputs).cpu().numpy()
        names = ["prediction"] if len(self.names) == 1 else [f"prediction_{name}" for name in self.names]
        return {"id": predicted.ids} | {name: values[:, k] for k, name in enumerate(names)}

    def truth_columns(self, problem: Problem, num_nodes: int) -> Table:
        truth = np.full((num_nodes, len(self.names)), np.nan)
        for part in problem.parts.values():
            truth[part.items.cpu().numpy()] = self.natural(part.truth).cpu().numpy()
        names = ["truth"] if len(self.names) == 1 else [f"truth_{name}" for name in self.names]
        columns: Table = {name: truth[:, k] for k, name in enumerate(names)}
        return columns | {"part": part_column(problem, num_nodes)}


def _values(dataset: Dataset) -> Tensor:
    if dataset.values is None:
        raise TaskError(f"{dataset.name} has no numbers to learn; give a numeric column of labels")
    return dataset.values


def _deviation(values: Tensor) -> Tensor:
    """Standard deviation of each column over what is known of it; 1 where it does not vary."""
    spread = torch.stack([column[torch.isfinite(column)].std(correction=0) for column in values.T])
    return torch.where(spread > 0, spread, torch.ones_like(spread))
