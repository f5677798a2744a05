"""A data set: a graph, features, what is to be predicted, and the splits that came with them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hgde.data.columns import Column, Columns
from hgde.data.errors import DataError
from hgde.data.splits.nodes import NodeSplit, SplitRule
from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph
from hgde.graph.measures.statistics import component_labels

if TYPE_CHECKING:
    from hgde.data.spec import DatasetSpec

RawFeatures = Tensor | SparseFeatures | Columns


@dataclass(frozen=True)
class RowScaling:
    """What ``normalise = auto`` means for features made by a recipe: the first ``count`` columns of the recipe, those
    that were not left out, divided by their sum (``signed``) or by the sum of their absolute values; the others stay.
    """

    count: int
    signed: bool


@dataclass(frozen=True, eq=False)
class Dataset:
    """Everything a task needs, on nodes ``0 .. N - 1``.

    What is to be predicted is there in each form its cells allow, and the task takes the one it needs: whole numbers
    can be classes or values, several columns of 0 and 1 can be labels or values.

    Args:
        name: the registered name, or the file's name for a user's own graph.
        graph: the graph.
        features: ``[N, F]``, dense or sparse, or raw columns with names.
        labels: classes, int64 ``[N]``, -1 where a node has none.
        ids: the user's own node names, in node order.
        class_names: names of the classes, in label order.
        feature_names: names of the feature columns of a matrix.
        fixed_splits: stored splits by protocol: ``public`` (Planetoid), ``fixed`` (stored lists).
        meta: where it came from and what was done to it, as plain values.
        values: numbers to predict, float64 ``[N, T]``, NaN where unknown.
        label_sets: several labels per node, int8 ``[N, L]``: 1, 0, or -1 where unknown.
        target_names: names of the columns of ``values`` or ``label_sets``, or of the one label column.
        spec: what is known of a registered set; ``None`` for a user's own graph, whatever its name.
        scaling: what ``normalise = auto`` means, where a recipe says so.
        sample_weights: how much each node counts in the loss, float64 ``[N]``; ``None``: all the same.

    >>> from hgde import load
    >>> tree = load("tree-random", num_nodes=50)
    >>> tree.num_nodes, tree.graph.num_nodes, len(tree.labels)
    (50, 50, 50)
    """

    name: str
    graph: Graph
    features: RawFeatures
    labels: Tensor | None = None
    ids: list[str] | None = None
    class_names: list[str] | None = None
    feature_names: list[str] | None = None
    fixed_splits: Mapping[str, tuple[NodeSplit, ...]] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    values: Tensor | None = None
    label_sets: Tensor | None = None
    target_names: list[str] | None = None
    spec: DatasetSpec | None = None
    scaling: RowScaling | None = None
    sample_weights: Tensor | None = None

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def column_names(self) -> list[str] | None:
        """Names of the feature columns, ``None`` for a matrix without."""
        return self.features.names if isinstance(self.features, Columns) else self.feature_names

    @property
    def split_rule(self) -> SplitRule:
        """What ``published`` and ``clean`` mean: a registered set's own rule, else the stored lists, else at random."""
        if self.spec is not None:
            return self.spec.split_rule
        return SplitRule("stored" if self.fixed_splits else "random")

    @cached_property
    def num_classes(self) -> int:
        if self.class_names is not None:
            return len(self.class_names)
        return 0 if self.labels is None or self.labels.numel() == 0 else int(self.labels.max()) + 1

    @cached_property
    def hash(self) -> str:
        """SHA-256 of graph, features and targets: the same for the same data on any machine."""
        digest = hashlib.sha256(b"hgde-dataset-1" + self.graph.hash.encode())
        if self.labels is not None:
            _add(digest, self.labels)
        if isinstance(self.features, Columns):
            digest.update(self.features.hash.encode())
        elif isinstance(self.features, SparseFeatures):
            for part in (self.features.indptr, self.features.indices, self.features.values):
                _add(digest, part)
        else:
            _add(digest, self.features)
        for kind, targets in (
            ("values", self.values),
            ("label sets", self.label_sets),
            ("sample weights", self.sample_weights),
        ):
            if targets is not None:
                digest.update(kind.encode())
                _add(digest, targets)
        if self.spec is None and self.class_names is not None:
            # A registered set fixes the names of its classes; in a user's table they are data.
            digest.update("\x00".join(("classes", *self.class_names)).encode())
        return digest.hexdigest()

    def target_column(self) -> Column | None:
        """The one label column as it was read, ``None`` if there is none or there are several."""
        name = self.target_names[0] if self.target_names else "label"
        if self.labels is not None:
            names = self.class_names or [str(number) for number in range(self.num_classes)]
            codes = self.labels.cpu().double()
            return Column(name, "category", torch.where(codes < 0, math.nan, codes).numpy(), tuple(names))
        if self.values is not None and self.values.shape[1] == 1:
            return Column(name, "number", self.values[:, 0].cpu().numpy())
        return None

    def inputs(self, task: str, protocol: str = "clean", graph: Graph | None = None) -> Dataset:
        """The columns that a model is given for a task, by the recipe of a registered set; a user's own as they are.

        ``graph`` is the one messages pass on, from which a recipe may take degrees: for links, the training graph.
        """
        if self.spec is None:
            return self
        return self.spec.inputs(self, task, protocol, self.graph if graph is None else graph)

    def select(self, nodes: Tensor) -> Dataset:
        """The data set on ``nodes`` (renumbered in that order) with the edges among them; stored splits follow."""
        splits = {
            protocol: tuple(split.restricted(nodes, self.num_nodes) for split in splits)
            for protocol, splits in self.fixed_splits.items()
        }

        def rows(values: Tensor | None) -> Tensor | None:
            return None if values is None else values[nodes]

        return replace(
            self,
            graph=self.graph.subgraph(nodes),
            features=self.features[nodes] if isinstance(self.features, Tensor) else self.features.select(nodes),
            labels=rows(self.labels),
            values=rows(self.values),
            label_sets=rows(self.label_sets),
            sample_weights=rows(self.sample_weights),
            ids=None if self.ids is None else [self.ids[i] for i in nodes.tolist()],
            fixed_splits=splits,
        )

    def largest_component(self) -> Dataset:
        """The largest connected component (the one with the smallest node number among equals)."""
        component = component_labels(self.graph)
        biggest = int(torch.bincount(component).argmax()) if component.numel() else 0
        nodes = (component == biggest).nonzero().flatten()
        if nodes.numel() == self.num_nodes:
            return self
        part = self.select(nodes)
        return replace(part, meta={**self.meta, "largest_component": True})

    def row_normalised(self) -> Dataset:
        """Each feature row divided by the sum of its absolute values; empty rows stay empty."""
        if isinstance(self.features, Columns):
            raise DataError("raw columns have no row sums; use the preprocessing setting normalise = rows")
        if isinstance(self.features, SparseFeatures):
            features: Features = self.features.row_normalised()
        else:
            total = self.features.abs().sum(1, keepdim=True)
            features = self.features / total.clamp_min(torch.finfo(self.features.dtype).tiny)
        return replace(self, features=features, meta={**self.meta, "row_normalised": True})

    def __repr__(self) -> str:
        kinds = {SparseFeatures: "sparse features", Columns: "columns"}
        kind = kinds.get(type(self.features), "dense features")
        return (
            f"Dataset({self.name}: {self.num_nodes} nodes, {self.graph.num_edges} directed edges, "
            f"{self.num_features} {kind}, {self.num_classes} classes)"
        )


def looks_continuous(values: Tensor | np.ndarray[Any, Any]) -> bool:
    """Whether numbers look like measurements rather than names of classes: fractions, or too many different ones.

    More than ten distinct values of which some have a fraction, or whole numbers with less than ten nodes each on
    average where there are more than thirty.

    >>> import torch
    >>> looks_continuous(torch.linspace(0, 1, 50)), looks_continuous(torch.tensor([0, 1, 2] * 20))
    (True, False)
    """
    numbers = np.asarray(values, dtype=np.float64).reshape(-1)
    numbers = numbers[np.isfinite(numbers)]
    distinct = np.unique(numbers)
    if bool((distinct != np.floor(distinct)).any()):
        return distinct.size > 10
    return distinct.size > 30 and numbers.size < 10 * distinct.size


def identity_features(num_nodes: int) -> SparseFeatures:
    """One-hot node numbers, for nodes that have no features of their own (HGCN's ``use-feats 0``).

    >>> identity_features(3).to_dense().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    numbers = torch.arange(num_nodes + 1)
    return SparseFeatures(numbers, numbers[:-1].clone(), torch.ones(num_nodes), (num_nodes, num_nodes))


def _add(digest: Any, part: Tensor) -> None:
    values = np.ascontiguousarray(part.cpu().numpy())
    digest.update(f"{values.dtype.str}{values.shape}".encode())
    digest.update(values.tobytes())
