"""A data set: a graph, features, labels, and the splits that came with them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph
from hgde.graph.split import NodeSplit
from hgde.graph.statistics import component_labels


@dataclass(frozen=True, eq=False)
class Dataset:
    """Everything a task needs, on nodes ``0 .. N - 1``.

    Args:
        name: the registered name, or the file's name for a user's own graph.
        graph: the graph.
        features: ``[N, F]``, dense or sparse.
        labels: int64 ``[N]``, -1 where a node has none.
        ids: the user's own node names, in node order.
        class_names: names of the classes, in label order.
        feature_names: names of the feature columns.
        fixed_splits: stored splits by protocol: ``public`` (Planetoid), ``fixed`` (stored lists).
        meta: where it came from and what was done to it, as plain values.
    """

    name: str
    graph: Graph
    features: Features
    labels: Tensor | None = None
    ids: list[str] | None = None
    class_names: list[str] | None = None
    feature_names: list[str] | None = None
    fixed_splits: Mapping[str, tuple[NodeSplit, ...]] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @cached_property
    def num_classes(self) -> int:
        if self.class_names is not None:
            return len(self.class_names)
        return 0 if self.labels is None or self.labels.numel() == 0 else int(self.labels.max()) + 1

    @cached_property
    def hash(self) -> str:
        """SHA-256 of graph, features and labels: the same for the same data on any machine."""
        digest = hashlib.sha256(b"hgde-dataset-1" + self.graph.hash.encode())
        parts: list[Tensor | None] = [self.labels]
        if isinstance(self.features, SparseFeatures):
            parts += [self.features.indptr, self.features.indices, self.features.values]
        else:
            parts += [self.features]
        for part in parts:
            if part is not None:
                values = np.ascontiguousarray(part.cpu().numpy())
                digest.update(f"{values.dtype.str}{values.shape}".encode())
                digest.update(values.tobytes())
        return digest.hexdigest()

    def select(self, nodes: Tensor) -> Dataset:
        """The data set on ``nodes`` (renumbered in that order) with the edges among them; stored splits follow."""
        splits = {
            protocol: tuple(split.restricted(nodes, self.num_nodes) for split in splits)
            for protocol, splits in self.fixed_splits.items()
        }
        if isinstance(self.features, SparseFeatures):
            features: Features = self.features.select(nodes)
        else:
            features = self.features[nodes]
        return replace(
            self,
            graph=self.graph.subgraph(nodes),
            features=features,
            labels=None if self.labels is None else self.labels[nodes],
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
        if isinstance(self.features, SparseFeatures):
            features: Features = self.features.row_normalised()
        else:
            total = self.features.abs().sum(1, keepdim=True)
            features = self.features / total.clamp_min(torch.finfo(self.features.dtype).tiny)
        return replace(self, features=features, meta={**self.meta, "row_normalised": True})

    def __repr__(self) -> str:
        kind = "sparse" if isinstance(self.features, SparseFeatures) else "dense"
        return (
            f"Dataset({self.name}: {self.num_nodes} nodes, {self.graph.num_edges} directed edges, "
            f"{self.num_features} {kind} features, {self.num_classes} classes)"
        )


def identity_features(num_nodes: int) -> SparseFeatures:
    """One-hot node numbers, for nodes that have no features of their own (HGCN's ``use-feats 0``)."""
    numbers = torch.arange(num_nodes + 1)
    return SparseFeatures(numbers, numbers[:-1].clone(), torch.ones(num_nodes), (num_nodes, num_nodes))
