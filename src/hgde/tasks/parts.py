"""What the tasks on nodes share: parts of a split, and what makes one unusable."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from hgde.data import Dataset
from hgde.data.settings import DataSettings
from hgde.data.splits import NodeSplit
from hgde.sections import SettingsError
from hgde.tasks.base import PARTS, Array, Part, Predicted, Problem, TaskError

_WORDS = {"train": "training", "val": "validation", "test": "test"}


def check_protocol(dataset: Dataset, data: DataSettings) -> None:
    """Refuse ``published`` where nothing was: a graph of the user's own whose nodes are split at random."""
    if data.protocol == "published" and dataset.spec is None and not dataset.fixed_splits:
        raise SettingsError(
            f"data.protocol = published has no effect: {dataset.name} is a graph of your own without a stored split, "
            "and its nodes are split at random; leave it out, or add a column split"
        )


def node_parts(split: NodeSplit, truth: Tensor, sample_weights: Tensor | None) -> dict[str, Part]:
    """The three parts of a split. Only the training part carries weights: scores count every node once."""
    parts = {}
    for name in PARTS:
        nodes = getattr(split, name)
        weights = sample_weights[nodes] if sample_weights is not None and name == "train" else None
        parts[name] = Part(nodes, truth[nodes], weights)
    return parts


def check_split(split: NodeSplit, has_truth: Tensor, *, allow_overlap: bool) -> None:
    """Refuse nodes that are not there or have no truth, empty parts and, unless allowed, parts that share nodes."""
    num_nodes = len(has_truth)
    for name in PARTS:
        nodes = getattr(split, name)
        if nodes.numel() and (int(nodes.min()) < 0 or int(nodes.max()) >= num_nodes):
            raise TaskError(f"the {_WORDS[name]} part names node {int(nodes.max())}, but there are {num_nodes} nodes")
        missing = nodes[~has_truth[nodes]]
        if missing.numel():
            raise TaskError(
                f"node {int(missing[0])} of the {_WORDS[name]} part has no label ({missing.numel()} have none)"
            )
    if split.train.numel() == 0 or split.val.numel() == 0:
        raise TaskError("training and validation part must not be empty; label more nodes")
    if allow_overlap:
        return
    for one, other in (("train", "val"), ("train", "test"), ("val", "test")):
        shared = int(torch.isin(getattr(split, one), getattr(split, other)).sum())
        if shared:
            raise TaskError(
                f"{_WORDS[one]} and {_WORDS[other]} part share {shared} nodes; a node may be in one part only"
            )


def part_column(problem: Problem, num_nodes: int) -> Array:
    """``train``, ``val``, ``test`` or nothing for every node; a node of several parts belongs to the first."""
    column = np.full(num_nodes, "", dtype=object)
    for name in reversed(PARTS):
        column[problem.parts[name].items.cpu().numpy()] = name
    return column


def refuse_pairs(predicted: Predicted) -> None:
    if predicted.pairs is not None:
        raise TaskError("pairs are for a run on links; this one predicts each node")
