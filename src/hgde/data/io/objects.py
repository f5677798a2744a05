"""Graphs that are objects already: networkx, scipy, PyG, plain arrays; and GraphML, which networkx reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hgde.data.dataset import Dataset, identity_features
from hgde.data.errors import DataError
from hgde.data.io.graphs import ColumnChoice
from hgde.data.io.nodes import nodes_from_table
from hgde.data.io.npz import from_arrays
from hgde.data.io.tables import Table, read_bytes
from hgde.graph.graph import Graph, GraphError

_VECTORS = ("x", "feat", "features")


def is_graph_object(value: Any) -> bool:
    """Whether :func:`read_object` knows what to do with it."""
    return is_networkx(value) or _is_scipy(value) or hasattr(value, "edge_index") or _is_pairs(value)


def is_networkx(value: Any) -> bool:
    return all(hasattr(value, attribute) for attribute in ("nodes", "edges", "is_directed", "adjacency"))


def read_object(value: Any, nodes: Table | None, *, undirected: bool, name: str, choice: ColumnChoice) -> Dataset:
    """A data set from a graph object.

    A table of nodes belongs to a networkx graph by the nodes' names, whatever their order; the nodes of other objects
    are numbers, and the table lists them in that order. The values of a scipy matrix are weights, unless all are one.
    """
    for part in ("source", "target"):
        if getattr(choice, part):
            raise DataError(f"{part}_column names a column of a table of edges, and {type(value).__name__} is none")
    if is_networkx(value):
        return _from_networkx(value, nodes, undirected=undirected, name=name, choice=choice)
    if hasattr(value, "edge_index"):
        return _from_pyg(value, nodes, undirected=undirected, name=name, choice=choice)
    try:
        if _is_scipy(value):
            matrix = value.tocsr()
            graph = Graph.from_scipy(matrix, undirected=undirected, weighted=bool((matrix.data != 1).any()))
        else:
            pairs = value if isinstance(value, torch.Tensor) else np.asarray(value)
            graph = Graph.from_edges(pairs, None if nodes is None else nodes.num_rows, undirected=undirected)
    except GraphError as error:
        raise DataError(str(error)) from None
    dataset = Dataset(name, graph, identity_features(graph.num_nodes), meta={"features": "identity"})
    return dataset if nodes is None else _with_nodes(graph, nodes, name, choice)


def graph_of_networkx(
    graph: Any, nodes: list[Any], *, undirected: bool = True, weight: str | None = None, where: str = "graph"
) -> Graph:
    """The edges of a networkx graph on ``nodes``, its own in some order, each a number from 0 by its place.

    The edge attribute ``weight`` (or the one named) is the weight if every edge has it, in parallel edges added.
    """
    number = {node: place for place, node in enumerate(nodes)}
    listed = list(graph.edges(data=True))
    pairs = np.array([(number[u], number[v]) for u, v, _ in listed], dtype=np.int64).reshape(-1, 2).T
    key = weight or "weight"
    having = sum(key in attributes for _, _, attributes in listed)
    weights = None
    if listed and having == len(listed):
        weights = _numbers([attributes[key] for _, _, attributes in listed], key, where)
    elif having or (weight is not None and listed):
        raise DataError(
            f"{where}: {having} of {len(listed)} edges have the attribute {key!r}; give it to all, or to none"
        )
    try:
        return Graph.from_edges(pairs, len(nodes), weights, undirected=undirected or not graph.is_directed())
    except GraphError as error:
        raise DataError(f"{where}: {error}") from None


def _numbers(values: list[Any], key: str, where: str) -> Any:
    try:
        return np.array([float(value) for value in values])
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: the edge attribute {key!r} must be a number ({error})") from None


def read_graphml(path: Path, *, undirected: bool, name: str, choice: ColumnChoice) -> Dataset:
    """A GraphML file: node attributes ``label``, ``split`` and features, edge attribute ``weight``."""
    import xml.etree.ElementTree as ElementTree

    text = _plain_xml(path)
    try:
        import networkx
    except ImportError:
        raise DataError.at(path, "reading GraphML needs networkx: pip install 'hgde[files]'") from None
    try:
        graph = networkx.parse_graphml(text)
    except ElementTree.ParseError as error:  # what passed once passes again
        raise DataError.at(path, f"not well-formed XML ({error})") from None
    except Exception as error:  # networkx raises KeyError, ValueError and its own types on files that are not GraphML
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise DataError.at(path, f"not a readable GraphML file ({reason})") from None
    if graph.number_of_nodes() == 0:
        raise DataError.at(path, "the graph has no nodes")
    return _from_networkx(graph, None, undirected=undirected, name=name, choice=choice, path=path)


_DEEPEST = 64


def _plain_xml(path: Path) -> str:
    """The text of an XML file that is well-formed, not nested deeper than any graph, and declares no document type:
    there entities could be declared, of which a few lines unfold to gigabytes, or which name other files."""
    from xml.parsers import expat

    raw = read_bytes(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError.at(path, "not UTF-8 text", line=raw[: error.start].count(b"\n") + 1) from None
    parser, depth = expat.ParserCreate("utf-8"), 0

    def refuse(*_: Any) -> None:
        raise DataError.at(
            path, "declares a document type (DOCTYPE), which graphs have no need of; remove it",
            line=parser.CurrentLineNumber,
        )  # fmt: skip

    def opened(*_: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise DataError.at(path, f"elements nested deeper than {_DEEPEST}", line=parser.CurrentLineNumber)

    def closed(*_: Any) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise DataError.at(
            path, f"not well-formed XML ({problem})", line=error.lineno, column=error.offset + 1
        ) from None
    return text


def _from_networkx(
    graph: Any, nodes: Table | None, *, undirected: bool, name: str, choice: ColumnChoice, path: Path | None = None
) -> Dataset:
    where = path or Path(name)
    own = list(graph.nodes)
    texts = [str(node) for node in own]
    if len(set(texts)) < len(texts):
        repeated = next(text for text, count in Counter(texts).items() if count > 1)
        raise DataError(f"{where}: two nodes are called {repeated!r} when written as text; rename one")
    if nodes is None:
        columns = _attribute_columns(graph, own, where)
        table = Table(where, columns, lambda row: row + 1, unit="node")
        ordered = own
        dataset = nodes_from_table(table, name, replace(choice, id="id"))
    else:
        dataset = nodes_from_table(nodes, name, choice)
        ordered = _in_order(dict(zip(texts, own, strict=True)), dataset.ids or [], nodes)
    built = graph_of_networkx(graph, ordered, undirected=undirected, weight=choice.weight, where=str(where))
    return replace(dataset, graph=built)


def _in_order(by_name: dict[str, Any], ids: list[str], table: Table) -> list[Any]:
    """The graph's nodes in the order of the table, matched by name."""
    if len(ids) != len(by_name):
        raise table.error(f"lists {len(ids)} nodes, the graph has {len(by_name)}")
    for row, name in enumerate(ids):
        if name not in by_name:
            raise table.error(f"node {name[:60]!r} is not in the graph", row)
    return [by_name[name] for name in ids]


def _attribute_columns(graph: Any, nodes: list[Any], path: Path) -> dict[str, Any]:
    """Node attributes as the columns of a table; a vector attribute becomes one column per entry."""
    columns: dict[str, Any] = {"id": np.array([str(node) for node in nodes], dtype=object)}
    keys = {key: None for node in nodes for key in graph.nodes[node] if str(key).lower() != "id"}
    for key in keys:
        values = [graph.nodes[node].get(key, "") for node in nodes]
        if str(key).lower() in _VECTORS and not np.isscalar(values[0]):
            lengths = {len(value) for value in values}
            if len(lengths) != 1:
                raise DataError.at(path, f"vectors of different lengths: {sorted(lengths)[:5]}", column=str(key))
            for place in range(lengths.pop()):
                columns[f"{key}{place}"] = np.array([str(value[place]) for value in values], dtype=object)
        else:
            texts = ["" if value is None else str(value).strip() for value in values]
            columns[str(key)] = np.array(texts, dtype=object)
    return columns


def _from_pyg(data: Any, nodes: Table | None, *, undirected: bool, name: str, choice: ColumnChoice) -> Dataset:
    arrays: dict[str, Any] = {"edge_index": _array(data.edge_index)}
    for key in ("x", "y", "edge_weight", "train_mask", "val_mask", "test_mask"):
        value = getattr(data, key, None)
        if value is not None:
            arrays[key] = _array(value)
    for part in ("train_mask", "val_mask", "test_mask"):
        if part in arrays and arrays[part].ndim == 2:
            # PyG puts nodes first, the neutral form splits first.
            arrays[part] = arrays[part].T
    if "x" not in arrays and "y" not in arrays:
        arrays["y"] = np.full(int(data.num_nodes), -1, dtype=np.int64)
    dataset = from_arrays(arrays, name, "Data", undirected=undirected)
    return dataset if nodes is None else _with_nodes(dataset.graph, nodes, name, choice)


def _with_nodes(graph: Graph, nodes: Table, name: str, choice: ColumnChoice) -> Dataset:
    dataset = nodes_from_table(nodes, name, choice)
    if dataset.num_nodes != graph.num_nodes:
        raise nodes.error(f"lists {dataset.num_nodes} nodes, the graph has {graph.num_nodes}")
    return replace(dataset, graph=graph)


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def _is_scipy(value: Any) -> bool:
    return hasattr(value, "tocsr") and hasattr(value, "shape")


def _is_pairs(value: Any) -> bool:
    return isinstance(value, torch.Tensor | np.ndarray | list) and not hasattr(value, "columns")
