"""The user's own graph: tables of edges and nodes, NPZ, GraphML, or an object that holds a graph already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.data.dataset import Dataset, identity_features
from hgde.data.errors import DataError
from hgde.data.npz import choose_storage, read_npz
from hgde.data.tables import Array, Table, read_table, table_from_frame
from hgde.graph.graph import Graph, GraphError
from hgde.graph.split import NodeSplit

_SOURCE = ("source", "src", "from", "u")
_TARGET = ("target", "dst", "to", "v")
_ID = ("id", "node", "node_id")
_LABEL = ("label", "class", "y")
_SPLIT = ("split", "part")
_PARTS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


def read_graph(edges: Any, nodes: Any = None, *, undirected: bool = True, name: str | None = None) -> Dataset:
    """Read a graph of one's own.

    Args:
        edges: a CSV, TSV or Parquet file with columns ``source,target`` (others are not used); an NPZ file in the
            neutral form or a GraphML file, which hold nodes as well; or a networkx graph, a scipy matrix, a PyG
            ``Data``, a pandas DataFrame, or node numbers of shape ``[2, E]``.
        nodes: a CSV, TSV or Parquet file (or DataFrame) with columns ``id``, optionally ``label`` (empty: unlabelled)
            and ``split`` (train, val, test or empty), and features: every other column, numeric. Without it, nodes
            are those the edges name, and features are one-hot node numbers.
        undirected: also let messages travel against an edge.
        name: name of the data set; default: the file's.

    Node names are kept as strings in ``ids``, in the order of ``nodes``. Self-loops are dropped and repeated edges
    merged.

    Raises:
        DataError: naming the file, the line and the column, for anything that cannot be used.
    """
    from hgde.data.objects import is_graph_object, read_object

    if not isinstance(edges, str | Path):
        if is_graph_object(edges):
            return read_object(edges, _node_table(nodes), undirected=undirected, name=name or "graph")
        table = table_from_frame(edges, Path("edges")) if hasattr(edges, "columns") else None
        if table is None:
            raise DataError(f"cannot read a graph from {type(edges).__name__}; see read_graph for what is accepted")
        return _from_tables(table, _node_table(nodes), undirected=undirected, name=name or "graph")
    path = Path(edges).expanduser()
    suffix = path.suffix.lower()
    if suffix in (".npz", ".graphml", ".xml") and nodes is not None:
        raise DataError.at(path, f"a {suffix} file holds its nodes itself; leave out the table of nodes")
    if suffix == ".npz":
        dataset = read_npz(path, name)
    elif suffix in (".graphml", ".xml"):
        from hgde.data.objects import read_graphml

        dataset = read_graphml(path, undirected=undirected, name=name or path.stem)
    else:
        table = read_table(path, headerless=("source", "target"))
        dataset = _from_tables(table, _node_table(nodes), undirected=undirected, name=name or path.stem)
    return replace(dataset, meta={**dataset.meta, "source": str(path)})


def _node_table(nodes: Any) -> Table | None:
    if nodes is None or isinstance(nodes, Table):
        return nodes
    if isinstance(nodes, str | Path):
        return read_table(Path(nodes).expanduser())
    if hasattr(nodes, "columns"):
        return table_from_frame(nodes, Path("nodes"))
    raise DataError(f"expected a file or a table of nodes, got {type(nodes).__name__}")


def _from_tables(edges: Table, nodes: Table | None, *, undirected: bool, name: str) -> Dataset:
    source, target = _column(edges, _SOURCE), _column(edges, _TARGET)
    if source is None or target is None:
        found = ", ".join(edges.columns)
        raise edges.header_error(f"expected columns source,target, got {found}")
    if nodes is None:
        numbers, ids = _number_by_edges(edges, source, target)
        unjoined = Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), len(ids))
        dataset = Dataset(name, unjoined, identity_features(len(ids)), ids=ids, meta={"features": "identity"})
    else:
        dataset = nodes_from_table(nodes, name)
        numbers = _number_by_ids(edges, source, target, dataset.ids or [], nodes.path)
    try:
        graph = Graph.from_edges(numbers, len(dataset.ids or []), undirected=undirected)
    except GraphError as error:
        raise edges.error(str(error)) from None
    unused = [column for column in edges.columns if column not in (source, target)]
    meta = {**dataset.meta, "unused_columns": unused} if unused else dataset.meta
    return replace(dataset, graph=graph, meta=meta)


def nodes_from_table(table: Table, name: str) -> Dataset:
    """Everything but the edges: ids, labels, split and features of a table of nodes."""
    key = _column(table, _ID)
    if key is None:
        raise table.header_error(f"expected a column id, got {', '.join(table.columns)}")
    if table.num_rows == 0:
        raise table.error("the table has no nodes")
    ids = _unique_ids(table, key)
    label_column, split_column = _column(table, _LABEL), _column(table, _SPLIT)
    labels, class_names = _labels(table, label_column)
    splits = _split(table, split_column, labels, label_column)
    used = {key, label_column, split_column}
    feature_names = [column for column in table.columns if column not in used]
    meta: dict[str, Any] = {"source": str(table.path)}
    if feature_names:
        features = _features(table, feature_names)
    else:
        features, meta["features"] = identity_features(len(ids)), "identity"
    empty = Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), len(ids))
    return Dataset(
        name,
        empty,
        features,
        labels,
        ids,
        class_names,
        feature_names or None,
        {"fixed": splits} if splits else {},
        meta,
    )


def _column(table: Table, names: tuple[str, ...]) -> str | None:
    return next((column for column in table.columns if column.lower() in names), None)


def _number_by_edges(edges: Table, source: str, target: str) -> tuple[Array, list[str]]:
    """Nodes are what the edges name: in numerical order if all are integers, else in order of appearance."""
    import pandas as pd

    ends = _ends(edges, source, target)
    if ends.size == 0:
        raise edges.error("the table has no edges, and without a table of nodes that is an empty graph")
    codes, names = pd.factorize(ends, sort=ends.dtype.kind == "i")
    return codes.reshape(-1, 2).T.astype(np.int64), [str(value) for value in names.tolist()]


def _number_by_ids(edges: Table, source: str, target: str, ids: list[str], nodes_path: Path) -> Array:
    import pandas as pd

    ends = _ends(edges, source, target)
    codes, names = pd.factorize(ends)
    place = pd.Index(np.array(ids, dtype=object)).get_indexer(np.array([str(n) for n in names.tolist()], dtype=object))
    numbers: Array = place[codes].reshape(-1, 2).T.astype(np.int64) if ends.size else np.zeros((2, 0), dtype=np.int64)
    unknown = np.flatnonzero((numbers < 0).any(0))
    if unknown.size:
        row = int(unknown[0])
        column = source if numbers[0, row] < 0 else target
        node = edges.columns[column][row]
        raise edges.error(f"node {str(node)[:60]!r} is not in {nodes_path}", row, column)
    return numbers


def _ends(edges: Table, source: str, target: str) -> Array:
    """Both ends of every edge in reading order, ``[2 E]``."""
    for column in (source, target):
        values = edges.columns[column]
        if values.dtype.kind == "O":
            empty = np.flatnonzero(values == "")
            if empty.size:
                raise edges.error("expected a node, got nothing", int(empty[0]), column)
    first, second = edges.columns[source], edges.columns[target]
    if first.dtype != second.dtype:
        first, second = (np.array([str(v) for v in values.tolist()], dtype=object) for values in (first, second))
    return np.stack([first, second], axis=1).reshape(-1)


def _unique_ids(table: Table, key: str) -> list[str]:
    first: dict[str, int] = {}
    for row, value in enumerate(table.columns[key].tolist()):
        text = str(value)
        if not text:
            raise table.error("expected a node's id, got nothing", row, key)
        if text in first:
            raise table.error(
                f"node {text[:60]!r} was there already ({table.unit} {table.line_of(first[text])})", row, key
            )
        first[text] = row
    return list(first)


def _labels(table: Table, column: str | None) -> tuple[Tensor | None, list[str] | None]:
    if column is None:
        return None, None
    values = [str(value) for value in table.columns[column].tolist()]
    names = sorted({value for value in values if value}, key=_numeric_first)
    if not names:
        return None, None
    number = {name: place for place, name in enumerate(names)}
    return torch.tensor([number.get(value, -1) for value in values], dtype=torch.int64), names


def _numeric_first(text: str) -> tuple[int, float, str]:
    return (0, float(text), text) if text.lstrip("-").isdecimal() else (1, 0.0, text)


def _split(
    table: Table, column: str | None, labels: Tensor | None, label_column: str | None
) -> tuple[NodeSplit, ...] | None:
    if column is None:
        return None
    parts: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for row, value in enumerate(table.columns[column].tolist()):
        text = str(value).lower()
        if not text:
            continue
        if text not in _PARTS:
            raise table.error(f"expected train, val, test or nothing, got {str(value)[:40]!r}", row, column)
        if labels is not None and int(labels[row]) < 0:
            raise table.error(f"a node of the {_PARTS[text]} part has no label", row, label_column)
        parts[_PARTS[text]].append(row)
    missing = [part for part, rows in parts.items() if not rows]
    if missing:
        raise table.error(f"no node is marked {' or '.join(missing)}; mark some, or leave the column out", None, column)
    train, val, test = (torch.tensor(rows, dtype=torch.int64) for rows in parts.values())
    return (NodeSplit(train, val, test, "fixed-0"),)


def _features(table: Table, names: list[str]) -> Any:
    import pandas as pd
    from scipy.sparse import csr_matrix

    matrix = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        values = table.columns[name]
        numbers = values if values.dtype.kind == "i" else pd.to_numeric(pd.Series(values), errors="coerce").to_numpy()
        with np.errstate(over="ignore"):
            matrix[:, place] = numbers.astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(matrix[:, place]))
        if wrong.size:
            row = int(wrong[0])
            found = f"{str(values[row])[:40]!r}" if str(values[row]) else "nothing"
            raise table.error(f"expected a finite number, got {found}", row, name)
    return choose_storage(csr_matrix(matrix))
