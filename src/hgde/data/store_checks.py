"""What is asked of a data set that comes from a file: shapes, types, ranges, finite numbers.

A hash guards against accidents only: whoever wrote the file wrote it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from hgde.data.columns import Column, Columns
from hgde.data.dataset import Dataset
from hgde.graph.checks import graph_problem, sparse_problem
from hgde.graph.features import SparseFeatures

_LONGEST_NAME = 255
_KINDS = ("number", "boolean", "category")


def dataset_problem(dataset: Dataset) -> str | None:
    """What cannot be used, in words; ``None`` if nothing."""
    problem = graph_problem(dataset.graph)
    if problem is not None:
        return f"the graph cannot be used, {problem}"
    return next((f"the {name} cannot be used, {words}" for name, words in _problems(dataset)), None)


def _problems(dataset: Dataset) -> Iterator[tuple[str, str]]:
    count = dataset.num_nodes
    if not isinstance(dataset.name, str) or len(dataset.name) > _LONGEST_NAME or "\n" in dataset.name:
        yield "name", f"a text of at most {_LONGEST_NAME} characters is expected"
    if not isinstance(dataset.meta, dict):
        yield "meta", "a description is expected"
    features = _feature_problem(dataset)
    if features is not None:
        yield "features", features
    if int(dataset.features.shape[0]) != count:
        yield "features", f"{dataset.features.shape[0]} rows for {count} nodes"
    rows = {name: getattr(dataset, name) for name in ("labels", "values", "label_sets", "sample_weights", "ids")}
    for name, value in rows.items():
        if value is not None and len(value) != count:
            yield name, f"{len(value)} rows for {count} nodes"
    yield from _target_problems(dataset)
    if dataset.ids is not None and len(set(dataset.ids)) < len(dataset.ids):
        yield "ids", "a name occurs twice"
    if dataset.feature_names is not None and len(dataset.feature_names) != dataset.num_features:
        yield "feature_names", f"{len(dataset.feature_names)} names for {dataset.num_features} columns"
    for protocol, splits in dataset.fixed_splits.items():
        for split in splits:
            if any(not _is_numbers(part, count) for part in (split.train, split.val, split.test)):
                yield f"splits.{protocol}", f"a part names nodes beyond the {count} there are"


def _feature_problem(dataset: Dataset) -> str | None:
    features = dataset.features
    if isinstance(features, SparseFeatures):
        return sparse_problem(features)
    if isinstance(features, Columns):
        return next((words for column in features.values() if (words := _column_problem(column)) is not None), None)
    if features.dim() != 2 or not features.is_floating_point():
        return f"a matrix of numbers is expected, there is {features.dtype} of shape {list(features.shape)}"
    return None if bool(torch.isfinite(features).all()) else "a value is infinite or not a number"


def _column_problem(column: Column) -> str | None:
    values = column.values
    if not isinstance(column.name, str) or not isinstance(column.problem, str | None) or column.kind not in _KINDS:
        return f"column {column.name!r:.60} has no proper name or kind"
    if values.dtype != np.float64 or values.ndim != 1:
        return f"column {column.name!r} is no column of numbers"
    if len(column.problem or "") > 1000:
        return f"column {column.name!r:.60} has too much to say of its problem"
    present = values[~np.isnan(values)]
    if np.isinf(present).any():
        return f"column {column.name!r} holds an infinite value"
    if column.kind == "category" and present.size:
        is_place = (present >= 0) & (present < len(column.categories)) & (present == np.floor(present))
        if not is_place.all():
            return f"column {column.name!r} names a category beyond the {len(column.categories)} there are"
    return None


def _target_problems(dataset: Dataset) -> Iterator[tuple[str, str]]:
    classes = dataset.num_nodes if dataset.class_names is None else len(dataset.class_names)
    checks: dict[str, tuple[Callable[[Tensor], bool], str]] = {
        "labels": (
            lambda t: t.dtype == torch.int64 and t.dim() == 1 and _within(t, -1, classes),
            "class numbers are expected, each below the number of classes, or -1",
        ),
        "values": (
            lambda t: t.is_floating_point() and t.dim() == 2 and not bool(torch.isinf(t).any()),
            "finite numbers are expected, or NaN where one is not known",
        ),
        "label_sets": (
            lambda t: not t.is_floating_point() and t.dim() == 2 and _within(t, -1, 2),
            "0 or 1 is expected, or -1 where it is not known",
        ),
        "sample_weights": (
            lambda t: t.is_floating_point() and t.dim() == 1 and bool((torch.isfinite(t) & (t >= 0)).all()),
            "finite numbers from 0 on are expected",
        ),
    }  # fmt: skip
    for name, (is_right, words) in checks.items():
        value = getattr(dataset, name)
        if value is not None and not is_right(value):
            yield name, words


def _is_numbers(nodes: Tensor, count: int) -> bool:
    return nodes.dtype == torch.int64 and nodes.dim() == 1 and _within(nodes, 0, count)


def _within(values: Tensor, low: int, below: int) -> bool:
    return not values.numel() or low <= int(values.min()) <= int(values.max()) < below
