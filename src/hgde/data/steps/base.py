"""What a preprocessing step is. A new step is one file that registers a subclass of :class:`Step`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph
from hgde.registry import Registry


@dataclass(frozen=True, eq=False)
class Inputs:
    """Numbers on their way to a model.

    Args:
        features: ``[N, F]``, dense or sparse.
        names: of the columns, in order.
        num_columns: how many columns of the user's these were made of; one-hot columns of one category count once.
        coded: ``[F]`` booleans: columns that are 0 or 1 by construction; ``None`` if there are none.
        graph: the graph of these nodes, for steps that look at it.

    >>> import torch
    >>> inputs = Inputs(torch.eye(2), ["a", "b"], num_columns=2)
    >>> inputs.with_features(torch.zeros(2, 2)).names
    ['a', 'b']
    """

    features: Features
    names: list[str]
    num_columns: int
    coded: Tensor | None = None
    graph: Graph | None = None

    def with_features(self, features: Features) -> Inputs:
        """The same columns with other values."""
        return replace(self, features=features)


class Step:
    """A transformation of a matrix, fitted on the training graph.

    A step without anything to learn only implements :meth:`transform`. What is learned is kept by :meth:`state`, as
    plain values and tensors, and comes back through :meth:`from_state`.

    >>> import torch
    >>> from hgde.data.steps import Inputs
    >>> class Halved(Step):
    ...     def transform(self, inputs):
    ...         return inputs.with_features(0.5 * inputs.features)
    >>> inputs = Inputs(torch.ones(1, 2), ["a", "b"], num_columns=2)
    >>> Halved.fit(inputs).transform(inputs).features
    tensor([[0.5000, 0.5000]])
    """

    @classmethod
    def fit(cls, inputs: Inputs) -> Step:
        """The step, fitted on these inputs."""
        return cls()

    def transform(self, inputs: Inputs) -> Inputs:
        """New inputs; the given ones are not changed."""
        raise NotImplementedError

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {}, {}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Step:
        return cls()


STEPS: Registry[type[Step]] = Registry(
    "preprocessing step",
    "steps",
    home=("hgde.data.steps",),
    accepts=lambda value: isinstance(value, type) and issubclass(value, Step),
)


def dense(features: Features) -> Tensor:
    return features.to_dense() if isinstance(features, SparseFeatures) else features


def tiny(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).tiny
