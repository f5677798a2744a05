"""The usual scalings: none, rows, unit, columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hgde.data.steps.base import STEPS, Inputs, Step, dense, tiny
from hgde.graph.features import SparseFeatures


@STEPS.register("none")
class AsTheyAre(Step):
    """Features as they are.

    >>> import torch
    >>> from hgde.data.steps import Inputs
    >>> inputs = Inputs(torch.tensor([[3.0, 4.0]]), ["a", "b"], num_columns=2)
    >>> AsTheyAre().transform(inputs).features.tolist()
    [[3.0, 4.0]]
    """

    def transform(self, inputs: Inputs) -> Inputs:
        return inputs


@STEPS.register("rows")
class RowSums(Step):
    """Each row divided by the sum of its absolute values; empty rows stay empty.

    >>> import torch
    >>> from hgde.data.steps import Inputs
    >>> inputs = Inputs(torch.tensor([[1.0, -3.0]]), ["a", "b"], num_columns=2)
    >>> RowSums().transform(inputs).features.tolist()
    [[0.25, -0.75]]
    """

    order = 1

    def transform(self, inputs: Inputs) -> Inputs:
        features = inputs.features
        if isinstance(features, SparseFeatures):
            return inputs.with_features(features.row_normalised(self.order))
        total = features.norm(p=self.order, dim=1, keepdim=True)
        return inputs.with_features(features / total.clamp_min(tiny(features.dtype)))


@STEPS.register("unit")
class RowLengths(RowSums):
    """Each row divided by its length; empty rows stay empty.

    >>> import torch
    >>> from hgde.data.steps import Inputs
    >>> inputs = Inputs(torch.tensor([[3.0, 4.0]]), ["a", "b"], num_columns=2)
    >>> RowLengths().transform(inputs).features
    tensor([[0.6000, 0.8000]])
    """

    order = 2


@STEPS.register("columns")
class Standardise(Step):
    """``(x - mean) / (deviation sqrt(F))`` of each column, ``F`` the number of the user's columns.

    Divided by the root of their number as well, rows have length one on average: a start well inside the ball. Columns
    that are 0 or 1 by construction are not centred, only divided by that root. Mean and deviation are those of the
    nodes trained on, so that a new graph meets the same scale.

    >>> import torch
    >>> from hgde.data.steps import Inputs
    >>> inputs = Inputs(torch.tensor([[1.0], [3.0]]), ["height"], num_columns=1)
    >>> Standardise.fit(inputs).transform(inputs).features.tolist()
    [[-1.0], [1.0]]
    """

    def __init__(self, mean: Tensor, scale: Tensor) -> None:
        self.mean, self.scale = mean, scale

    @classmethod
    def fit(cls, inputs: Inputs) -> Standardise:
        matrix = dense(inputs.features)
        mean, deviation = matrix.mean(0), matrix.std(0, correction=0)
        varies = deviation > 0
        if matrix.dtype == torch.float64:
            # A constant far from zero has a deviation of rounding errors; dividing by it would make noise of them.
            varies &= deviation > 1e-12 * mean.abs()
            mean = torch.where(varies, mean, matrix[0]) if matrix.shape[0] else mean
        deviation = torch.where(varies, deviation, torch.ones_like(deviation))
        if inputs.coded is not None:
            mean = torch.where(inputs.coded, torch.zeros_like(mean), mean)
            deviation = torch.where(inputs.coded, torch.ones_like(deviation), deviation)
        return cls(mean, deviation * max(inputs.num_columns, 1) ** 0.5)

    def transform(self, inputs: Inputs) -> Inputs:
        return inputs.with_features((dense(inputs.features) - self.mean) / self.scale)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {}, {"mean": self.mean, "scale": self.scale}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Standardise:
        mean, scale = tensors["mean"], tensors["scale"]
        if mean.shape != scale.shape or mean.dim() != 1 or not bool((scale > 0).all()):
            raise ValueError("the step 'columns' needs a mean and a scale above zero for each column")
        return cls(mean, scale)
