"""A table of nodes: names, targets, parts of the split, and raw feature columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hgde.data.columns import MISSING_NUMBERS, Array, Column, Columns
from hgde.data.dataset import Dataset, identity_features
from hgde.data.errors import DataError
from hgde.data.io.tables import Table, as_texts
from hgde.data.splits.nodes import NodeSplit
from hgde.graph.graph import Graph

if TYPE_CHECKING:
    from hgde.data.io.graphs import ColumnChoice

_PARTS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
_YES_OR_NO = {"0": 0, "1": 1, "false": 0, "true": 1, "no": 0, "yes": 1}


def nodes_from_table(table: Table, name: str, choice: ColumnChoice) -> Dataset:
    """Everything but the edges: ids, targets, split and features of a table of nodes."""
    key = table.find("id", choice.id)
    if key is None:
        names = ", ".join(table.columns)
        raise table.header_error(f"expected a column id, got {names}; rename one, or choose it with --id-column")
    if table.num_rows == 0:
        raise table.error("the table has no nodes")
    ids = _unique_ids(table, key)
    label_columns = _label_columns(table, choice.label)
    split_column = table.find("split", choice.split)
    targets = _targets(table, label_columns)
    splits = _split(table, split_column, label_columns) if choice.read_split else None
    used = {key, split_column, *label_columns}
    features, meta = feature_columns(table, [column for column in table.columns if column not in used])
    empty = Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), len(ids))
    return Dataset(
        name,
        empty,
        features,
        ids=ids,
        fixed_splits={"fixed": splits} if splits else {},
        meta={"source": str(table.path), **meta},
        **targets,
    )


def feature_columns(table: Table, names: list[str]) -> tuple[Any, dict[str, Any]]:
    """The raw feature columns, or one-hot node numbers where there are none."""
    if not names:
        return identity_features(table.num_rows), {"features": "identity"}

    def where(column: str) -> Any:
        return lambda row: table.place(row, column)

    columns = [Column.from_cells(name, table.columns[name], where(name)) for name in names]
    for column in columns:
        if column.kind == "number" and column.problem is not None:
            raise DataError(column.problem)  # text among numbers may still be meant as a category; infinity may not
    return Columns(columns), {}


def _label_columns(table: Table, chosen: tuple[str, ...]) -> list[str]:
    if chosen:
        return [column for label in chosen if (column := table.find("label", label)) is not None]
    usual = table.find("label", None)
    return [] if usual is None else [usual]


def _targets(table: Table, columns: list[str]) -> dict[str, Any]:
    """Targets in each form that the cells allow; see :class:`hgde.data.Dataset`."""
    if not columns:
        return {}
    texts = [as_texts(table.columns[column]) for column in columns]
    values = [_values(column) for column in texts]
    parsed = [column for column in values if column is not None]
    numbers = torch.from_numpy(np.stack(parsed, axis=1)) if len(parsed) == len(values) else None
    if len(columns) == 1:
        return {**_classes(columns[0], texts[0], numbers), "values": numbers, "target_names": columns}
    sets = [column for cells in texts if (column := _yes_or_no(cells)) is not None]
    if len(sets) == len(columns):
        label_sets = torch.from_numpy(np.stack(sets, axis=1))
        return {"label_sets": label_sets, "values": numbers, "target_names": columns}
    if numbers is None:
        wrong = next(place for place, column in enumerate(values) if column is None)
        row = _first_word(texts[wrong])
        raise table.error(
            f"several label columns hold 0 and 1, or numbers, got {str(texts[wrong][row])[:40]!r}", row, columns[wrong]
        )
    return {"values": numbers, "target_names": columns}


def _classes(name: str, texts: Array, numbers: Tensor | None) -> dict[str, Any]:
    if numbers is not None:
        # Where all others are numbers, "nan" is a missing number and not the name of a class.
        texts = np.where(np.isnan(numbers[:, 0].numpy()), "", texts)
    column = Column.from_labels(name, texts)
    if not column.categories:
        return {}
    codes = np.where(column.missing, -1, column.values).astype(np.int64)
    return {"labels": torch.from_numpy(codes), "class_names": list(column.categories)}


def _values(texts: Array) -> Array | None:
    """The cells as numbers, NaN where there is none; ``None`` if one of them is something else."""
    column = Column.from_cells("", texts)
    if column.kind != "number" or column.problem is not None:
        return None
    return column.values


def _yes_or_no(texts: Array) -> Array | None:
    cells = [str(text).lower().removesuffix(".0") for text in texts.tolist()]
    if any(cell and cell not in _YES_OR_NO for cell in cells):
        return None
    return np.array([_YES_OR_NO.get(cell, -1) for cell in cells], dtype=np.int8)


def _first_word(texts: Array) -> int:
    for row, text in enumerate(texts.tolist()):
        try:
            float(text)
        except ValueError:
            if text.lower() not in MISSING_NUMBERS:
                return row
    return 0


def _unique_ids(table: Table, key: str) -> list[str]:
    first: dict[str, int] = {}
    for row, text in enumerate(as_texts(table.columns[key]).tolist()):
        if not text:
            raise table.error("expected a node's id, got nothing", row, key)
        if text in first:
            raise table.error(
                f"node {text[:60]!r} was there already ({table.unit} {table.line_of(first[text])})", row, key
            )
        first[text] = row
    return list(first)


def _split(table: Table, column: str | None, label_columns: list[str]) -> tuple[NodeSplit, ...] | None:
    if column is None:
        return None
    labels = [as_texts(table.columns[label]) for label in label_columns]
    parts: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for row, value in enumerate(as_texts(table.columns[column]).tolist()):
        text = value.lower()
        if not text:
            continue
        if text not in _PARTS:
            raise table.error(
                f"expected train, val, test or nothing, got {value[:40]!r}; correct it, or rename the column if "
                "it does not say how to split the nodes",
                row,
                column,
            )
        if labels and not any(cells[row] for cells in labels):
            raise table.error(f"a node of the {_PARTS[text]} part has no label", row, label_columns[0])
        parts[_PARTS[text]].append(row)
    missing = [part for part, rows in parts.items() if not rows]
    if len(missing) == len(parts):
        return None  # an empty column says nothing
    if missing:
        raise table.error(f"no node is marked {' or '.join(missing)}; mark some, or leave the column out", None, column)
    train, val, test = (torch.tensor(rows, dtype=torch.int64) for rows in parts.values())
    return (NodeSplit(train, val, test, "fixed-0"),)
