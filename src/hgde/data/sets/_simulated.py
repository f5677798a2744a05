"""What simulated data sets share.

A seed means the same data on every version: numpy has frozen the stream of its RandomState.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hgde.data.dataset import Dataset
from hgde.data.sets._texts import LINKS, MADE_HERE
from hgde.data.spec import DatasetSpec
from hgde.graph.graph import Graph

Array = np.ndarray[Any, Any]


def simulated(name: str, title: str, read: Callable[..., Dataset], notes: str = "") -> DatasetSpec:
    """The specification of a set that is made on the spot."""
    return DatasetSpec(
        name=name,
        title=title,
        kind="generated",
        tasks=("nodes", "links"),
        protocols=f"nodes: stratified 60/20/20 %; accuracy. {LINKS}",
        licence=MADE_HERE,
        citation="this package",
        read=read,
        notes=notes,
    )


def noisy_features(random: np.random.RandomState, labels: Array, num_features: int, signal: float) -> Array:
    """Standard normal noise around the mean of a node's class, ``[N, F]``.

    The means are random directions of length ``signal``: below about 2 one node's features say little of its class,
    those of a neighbourhood say much.
    """
    centres = random.standard_normal((int(labels.max()) + 1, num_features))
    centres *= signal / np.linalg.norm(centres, axis=1, keepdims=True)
    return np.asarray(centres[labels] + random.standard_normal((labels.size, num_features)))


def assembled(name: str, pairs: Array, labels: Array, features: Array, **options: Any) -> Dataset:
    """The data set of edges ``[2, E]``, labels and features; the options it was made with are kept."""
    return Dataset(
        name=name,
        graph=Graph.from_edges(pairs, labels.size),
        features=torch.from_numpy(features.astype(np.float32)),
        labels=torch.from_numpy(labels.astype(np.int64)),
        meta=options,
    )


def tree_pairs(parent: Array) -> Array:
    """The edges of a tree whose node ``i`` hangs below ``parent[i]``; node 0 is the root."""
    return np.stack([parent[1:], np.arange(1, parent.size)])


def inherited(random: np.random.RandomState, parent: Array, num_classes: int, change: float) -> Array:
    """Labels that run down a tree, each child's drawn anew with probability ``change``; parents come first."""
    labels = random.randint(0, num_classes, parent.size)
    changes = random.random_sample(parent.size) < change
    for child in range(1, parent.size):
        if not changes[child]:
            labels[child] = labels[parent[child]]
    return labels


def enough(num_nodes: int, least: int) -> None:
    if num_nodes < least:
        raise ValueError(f"num_nodes must be at least {least}, got {num_nodes}")
