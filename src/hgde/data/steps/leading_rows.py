"""Row sums over some columns only: what a data set's recipe asks for that adds columns of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hgde.data.steps.base import STEPS, Inputs, Step, dense


@STEPS.register("leading_rows")
class LeadingRows(Step):
    """The first ``count`` columns of each row divided by their sum, ``signed`` or of absolute values.

    A signed sum can be close to zero and then blows its row up; it is there to compare with what was published so.

    >>> import torch
    >>> from hgde.data.steps import Inputs
    >>> inputs = Inputs(torch.tensor([[1.0, 3.0, 7.0]]), ["a", "b", "degree"], num_columns=3)
    >>> LeadingRows(count=2).transform(inputs).features.tolist()
    [[0.25, 0.75, 7.0]]
    """

    def __init__(self, count: int = 0, signed: bool = False) -> None:
        self.count, self.signed = count, signed

    @classmethod
    def fit(cls, inputs: Inputs) -> LeadingRows:
        return cls(int(inputs.features.shape[1]))

    def transform(self, inputs: Inputs) -> Inputs:
        matrix = dense(inputs.features)
        rows = matrix[:, : self.count].double()
        total = rows.sum(1, keepdim=True) if self.signed else rows.abs().sum(1, keepdim=True)
        inverse = torch.where(total == 0, torch.zeros_like(total), 1 / total)
        scaled = (rows * inverse).to(matrix.dtype)
        return inputs.with_features(torch.cat([scaled, matrix[:, self.count :]], dim=1))

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"count": self.count, "signed": self.signed}, {}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> LeadingRows:
        return cls(int(values["count"]), bool(values["signed"]))
