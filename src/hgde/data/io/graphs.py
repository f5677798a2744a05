"""The user's own graph: tables of edges and nodes, NPZ, GraphML, or an object that holds a graph already."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hgde.data.dataset import Dataset, identity_features
from hgde.data.errors import DataError
from hgde.data.io.nodes import nodes_from_table
from hgde.data.io.npz import read_npz
from hgde.data.io.tables import Array, Table, as_texts, read_table, table_from_frame, table_stem, table_suffix
from hgde.graph.graph import Graph, GraphError


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns mean what, where the usual names do not say so."""

    id: str | None = None
    label: tuple[str, ...] = ()
    split: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    read_split: bool = True


def read_graph(
    edges: Any,
    nodes: Any = None,
    *,
    undirected: bool = True,
    id_column: str | None = None,
    label_column: str | tuple[str, ...] | None = None,
    split_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    delimiter: str | None = None,
    neighbours: int = 5,
    read_split: bool = True,
    name: str | None = None,
) -> Dataset:
    """Read a graph of one's own.

    Args:
        edges: a CSV, TSV or Parquet file with columns ``source,target`` and optionally ``weight`` (others are not
            used); an NPZ file in the neutral form or a GraphML file, which hold nodes as well; or a networkx graph, a
            scipy matrix, a PyG ``Data``, a pandas DataFrame, or node numbers of shape ``[2, E]``. Text may be packed
            (``.gz``, ``.zst``).
        nodes: a CSV, TSV or Parquet file (or DataFrame) with columns ``id``, optionally ``label`` (empty: unlabelled)
            and ``split`` (train, val, test or empty), and features: every other column. Without it, nodes are those the
            edges name, and features are one-hot node numbers.
        undirected: also let messages travel against an edge.
        id_column: name of the column of node names, if it is not ``id``, ``node`` or ``node_id``.
        label_column: of the labels, if it is not ``label``, ``class`` or ``y``; several as ``"a,b,c"`` or a tuple.
        split_column: of the parts, if it is not ``split`` or ``part``.
        source_column: of edge sources, if it is not ``source``, ``src``, ``from`` or ``u``.
        target_column: of edge targets, if it is not ``target``, ``dst``, ``to`` or ``v``.
        weight_column: of edge weights, positive numbers, if it is not ``weight``.
        delimiter: what separates cells in text tables, if not what the file's ending says.
        neighbours: of the graph built for an NPZ file without edges.
        read_split: look into the column of parts; if not, it is left aside whatever it holds, and is no feature.
        name: name of the data set; default: the file's.

    Node names are kept as strings in ``ids``, in the order of ``nodes``. Self-loops are dropped and repeated edges
    merged, their weights as :meth:`hgde.graph.Graph.from_edges` says. What the labels are, classes or values, is left
    to the task: both forms are there if the cells allow both. Nothing depends on the name of a file.

    Raises:
        DataError: naming the file, the line and the column, for anything that cannot be used.

    >>> import networkx
    >>> read_graph(networkx.path_graph(4)).num_nodes
    4
    """
    from hgde.data.io.objects import is_graph_object, read_object

    labels = _names(label_column)
    choice = ColumnChoice(id_column, labels, split_column, source_column, target_column, weight_column, read_split)
    if not isinstance(edges, str | Path):
        table = _node_table(nodes, delimiter)
        if is_graph_object(edges):
            return read_object(edges, table, undirected=undirected, name=name or "graph", choice=choice)
        if not hasattr(edges, "columns"):
            raise DataError(f"cannot read a graph from {type(edges).__name__}; see read_graph for what is accepted")
        pairs = table_from_frame(edges, Path("edges"))
        return _from_tables(pairs, table, undirected=undirected, name=name or "graph", choice=choice)
    path = Path(edges).expanduser()
    suffix = table_suffix(path)
    if suffix in (".npz", ".graphml", ".xml") and nodes is not None:
        raise DataError.at(path, f"a {suffix} file holds its nodes itself; leave out the table of nodes")
    if suffix == ".npz":
        _refuse(choice, ("id", "label", "split", "source", "target", "weight"), path)
        dataset = read_npz(path, name, k=neighbours, undirected=undirected)
    elif suffix in (".graphml", ".xml"):
        from hgde.data.io.objects import read_graphml

        _refuse(choice, ("id", "source", "target"), path)
        dataset = read_graphml(path, undirected=undirected, name=name or table_stem(path), choice=choice)
    else:
        pairs = read_table(path, headerless=("source", "target"), delimiter=delimiter)
        table = _node_table(nodes, delimiter)
        dataset = _from_tables(pairs, table, undirected=undirected, name=name or table_stem(path), choice=choice)
    return replace(dataset, meta={**dataset.meta, "source": str(path)})


def _names(label_column: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if label_column is None:
        return ()
    parts = label_column.split(",") if isinstance(label_column, str) else label_column
    return tuple(part.strip() for part in parts if part.strip())


def _refuse(choice: ColumnChoice, parts: tuple[str, ...], path: Path) -> None:
    for part in parts:
        if getattr(choice, part):
            raise DataError.at(path, f"{part}_column has no effect on a {table_suffix(path)} file; leave it out")


def _node_table(nodes: Any, delimiter: str | None) -> Table | None:
    if nodes is None or isinstance(nodes, Table):
        return nodes
    if isinstance(nodes, str | Path):
        return read_table(Path(nodes).expanduser(), delimiter=delimiter)
    if hasattr(nodes, "columns"):
        return table_from_frame(nodes, Path("nodes"))
    raise DataError(f"expected a file or a table of nodes, got {type(nodes).__name__}")


def _from_tables(edges: Table, nodes: Table | None, *, undirected: bool, name: str, choice: ColumnChoice) -> Dataset:
    source = edges.find("source", choice.source)
    target = edges.find("target", choice.target)
    if source is None or target is None:
        names, advice = ", ".join(edges.columns), "rename them, or use --source-column and --target-column"
        raise edges.header_error(f"expected columns source,target, got {names}; {advice}")
    weight = edges.find("weight", choice.weight)
    weights = None if weight is None else edge_weights(edges, weight)
    if nodes is None:
        _refuse_without_nodes(choice)
        numbers, ids = _number_by_edges(edges, source, target)
        unjoined = Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), len(ids))
        dataset = Dataset(name, unjoined, identity_features(len(ids)), ids=ids, meta={"features": "identity"})
    else:
        dataset = nodes_from_table(nodes, name, choice)
        numbers = _number_by_ids(edges, source, target, dataset.ids or [], nodes.path)
    try:
        graph = Graph.from_edges(numbers, len(dataset.ids or []), weights, undirected=undirected)
    except GraphError as error:
        raise edges.error(str(error)) from None
    unused = [column for column in edges.columns if column not in (source, target, weight)]
    meta = {**dataset.meta, "unused_columns": unused} if unused else dataset.meta
    return replace(dataset, graph=graph, meta=meta)


def _refuse_without_nodes(choice: ColumnChoice) -> None:
    for part in ("id", "label", "split"):
        if getattr(choice, part):
            raise DataError(f"{part}_column names a column of the table of nodes, and none is given")


def edge_weights(edges: Table, column: str) -> Array:
    """The weights of all edges, ``[E]``: positive finite numbers."""
    import pandas as pd

    cells = edges.columns[column]
    values = np.array(pd.to_numeric(pd.Series(cells), errors="coerce"), dtype=np.float64)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if wrong.size:
        row = int(wrong[0])
        given = repr(str(cells[row])[:40]) if str(cells[row]) else "nothing"
        raise edges.error(
            f"a weight is a positive number, got {given}; correct it, or rename the column if it is none", row, column
        )
    return values


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
        advice = "add a row for it, or remove the edge"
        raise edges.error(f"node {str(node)[:60]!r} is not in {nodes_path}; {advice}", row, column)
    return numbers


def _ends(edges: Table, source: str, target: str) -> Array:
    """Both ends of every edge in reading order, ``[2 E]``: integers if both columns are, else texts."""
    first, second = edges.columns[source], edges.columns[target]
    if not first.dtype.kind == second.dtype.kind == "i":
        first, second = as_texts(first), as_texts(second)
        for column, values in ((source, first), (target, second)):
            empty = np.flatnonzero(values == "")
            if empty.size:
                raise edges.error("expected a node, got nothing", int(empty[0]), column)
    return np.stack([first, second], axis=1).reshape(-1)
