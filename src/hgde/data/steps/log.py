"""Logarithms of columns that span many powers of ten: counts, incomes, distances."""

from __future__ import annotations

import torch

from hgde.data.steps.base import STEPS, Inputs, Step
from hgde.graph.features import SparseFeatures


@STEPS.register("log")
class SignedLog(Step):
    """``sign(x) log(1 + |x|)`` of every entry; zeros stay zero, so sparse features stay sparse.

    >>> import torch
    >>> from hgde.data.steps import Inputs
    >>> inputs = Inputs(torch.tensor([[0.0, -1.0, 1.0]]), ["a", "b", "c"], num_columns=3)
    >>> SignedLog().transform(inputs).features
    tensor([[ 0.0000, -0.6931,  0.6931]])
    """

    def transform(self, inputs: Inputs) -> Inputs:
        features = inputs.features
        if isinstance(features, SparseFeatures):
            values = features.values
            return inputs.with_features(features.with_values(torch.sign(values) * torch.log1p(values.abs())))
        return inputs.with_features(torch.sign(features) * torch.log1p(features.abs()))
