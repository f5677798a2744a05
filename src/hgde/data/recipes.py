"""Feature recipes of the literature, as published and without their faults."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.graph.features import SparseFeatures
from hgde.graph.graph import Graph

_LARGEST_DEGREE = 5


def hgcn_features(
    dataset: Dataset,
    task: str,
    *,
    graph: Graph | None = None,
    recipe: str = "published",
    drop_columns: tuple[int, ...] = (),
) -> Dataset:
    """The data set with HGCN's input features for a task (``nodes`` or ``links``).

    Airport: columns 0-3 for nodes (column 4 is the label), all 5 for links, row-normalised, then the degree one-hot
    (0 to 4, and 5 or more) and a constant: 11 or 12 inputs. ``published`` divides a row by its signed sum, which can
    be close to zero; ``clean`` by the sum of absolute values; ``unscaled`` leaves rows as they are. Other sets: rows
    normalised the same way.

    Args:
        dataset: the data set as loaded.
        task: ``nodes`` or ``links``.
        graph: where degrees are taken: pass the training graph of a link split. Default: the data set's graph.
        recipe: ``published``, ``clean`` or ``unscaled``.
        drop_columns: columns left out, e.g. ``(10,)`` for the column of Disease-LP that gives links away. Numbers go on
            from the stored columns to the added ones: Airport's degrees are 5 to 10, its constant 11.
    """
    if task not in ("nodes", "links"):
        raise DataError(f"task must be 'nodes' or 'links', got {task!r}")
    if recipe not in ("published", "clean", "unscaled"):
        raise DataError(f"recipe must be 'published', 'clean' or 'unscaled', got {recipe!r}")
    if isinstance(dataset.features, SparseFeatures) and not drop_columns:
        return dataset.row_normalised()
    raw = dataset.features.to_dense() if isinstance(dataset.features, SparseFeatures) else dataset.features
    airport = dataset.name == "airport"
    dropped = set(drop_columns) | ({4} if airport and task == "nodes" else set())
    columns = [column for column in range(raw.shape[1]) if column not in dropped]
    features = raw[:, columns]
    if recipe != "unscaled":
        features = _normalised(features, signed=recipe == "published")
    if airport:
        degree = (graph or dataset.graph).degree.clamp_max(_LARGEST_DEGREE).to(features.device)
        one_hot = torch.nn.functional.one_hot(degree, _LARGEST_DEGREE + 1).to(features.dtype)
        added = torch.cat([one_hot, torch.ones_like(features[:, :1])], dim=1)
        kept = [place for place in range(added.shape[1]) if raw.shape[1] + place not in dropped]
        features = torch.cat([features, added[:, kept]], dim=1)
    names = None if dataset.feature_names is None else [dataset.feature_names[column] for column in columns]
    meta = {**dataset.meta, "recipe": f"hgcn-{recipe}-{task}", "dropped_columns": sorted(dropped)}
    return replace(dataset, features=features, feature_names=None if airport else names, meta=meta)


def count_columns(dataset: Dataset) -> int:
    """How many columns ``drop_columns`` can name: the stored ones and, for Airport, those that its recipe adds."""
    return dataset.num_features + (_LARGEST_DEGREE + 2 if dataset.name == "airport" else 0)


def _normalised(rows: Tensor, *, signed: bool) -> Tensor:
    total = rows.double().sum(1, keepdim=True) if signed else rows.double().abs().sum(1, keepdim=True)
    inverse = torch.where(total == 0, torch.zeros_like(total), 1 / total)
    return (rows.double() * inverse).to(rows.dtype)
