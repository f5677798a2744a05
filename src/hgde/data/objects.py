"""Graphs that are objects already: networkx, scipy, PyG, plain arrays; and GraphML, which networkx reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from hgde.data.dataset import Dataset, identity_features
from hgde.data.errors import DataError
from hgde.data.files import nodes_from_table
from hgde.data.npz import from_arrays
from hgde.data.tables import Table, read_bytes
from hgde.graph.graph import Graph, GraphError

_VECTORS = ("x", "feat", "features")


def is_graph_object(value: Any) -> bool:
    """Whether :func:`read_object` knows what to do with it."""
    return _is_networkx(value) or _is_scipy(value) or hasattr(value, "edge_index") or _is_pairs(value)


def read_object(value: Any, nodes: Table | None, *, undirected: bool, name: str) -> Dataset:
    """A data set from a graph object. A table of nodes, if given, lists them in the object's order."""
    if _is_networkx(value):
        dataset = _from_networkx(value, undirected=undirected, name=name)
    elif hasattr(value, "edge_index"):
        return _from_pyg(value, nodes, name)
    else:
        try:
            if _is_scipy(value):
                graph = Graph.from_scipy(value.tocsr(), undirected=undirected)
            else:
                pairs = value if isinstance(value, torch.Tensor) else np.asarray(value)
                graph = Graph.from_edges(pairs, None if nodes is None else nodes.num_rows, undirected=undirected)
        except GraphError as error:
            raise DataError(str(error)) from None
        dataset = Dataset(name, graph, identity_features(graph.num_nodes), meta={"features": "identity"})
    return dataset if nodes is None else _with_nodes(dataset.graph, nodes, name, dataset.ids)


def read_graphml(path: Path, *, undirected: bool, name: str) -> Dataset:
    """A GraphML file: node attributes ``label``, ``split`` and numeric features."""
    import xml.etree.ElementTree as ElementTree

    raw = read_bytes(path)
    try:
        import networkx
    except ImportError:
        raise DataError.at(path, "reading GraphML needs networkx: pip install 'hgde[files]'") from None
    try:
        ElementTree.fromstring(raw)
        graph = networkx.parse_graphml(raw.decode("utf-8-sig"))
    except ElementTree.ParseError as error:
        line, column = error.position
        problem = str(error).split(":", 1)[0]
        raise DataError.at(path, f"not well-formed XML ({problem})", line=line, column=column + 1) from None
    except Exception as error:  # networkx raises KeyError, ValueError and its own types on files that are not GraphML
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise DataError.at(path, f"not a readable GraphML file ({reason})") from None
    if graph.number_of_nodes() == 0:
        raise DataError.at(path, "the graph has no nodes")
    return _from_networkx(graph, undirected=undirected, name=name, path=path)


def _from_networkx(graph: Any, *, undirected: bool, name: str, path: Path | None = None) -> Dataset:
    where = path or Path(name)
    nodes = list(graph.nodes)
    number = {node: place for place, node in enumerate(nodes)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2).T
    both_ways = undirected or not graph.is_directed()
    built = Graph.from_edges(pairs, len(nodes), undirected=both_ways)
    columns = _attribute_columns(graph, nodes, where)
    table = Table(where, columns, lambda row: row + 1, unit="node")
    return _with_nodes(built, table, name, None)


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


def _from_pyg(data: Any, nodes: Table | None, name: str) -> Dataset:
    arrays: dict[str, Any] = {"edge_index": _array(data.edge_index)}
    for key in ("x", "y", "train_mask", "val_mask", "test_mask"):
        value = getattr(data, key, None)
        if value is not None:
            arrays[key] = _array(value)
    for part in ("train_mask", "val_mask", "test_mask"):
        if part in arrays and arrays[part].ndim == 2:
            # PyG puts nodes first, the neutral form splits first.
            arrays[part] = arrays[part].T
    if "x" not in arrays and "y" not in arrays:
        arrays["y"] = np.full(int(data.num_nodes), -1, dtype=np.int64)
    dataset = from_arrays(arrays, name, "Data")
    return dataset if nodes is None else _with_nodes(dataset.graph, nodes, name, None)


def _with_nodes(graph: Graph, nodes: Table, name: str, ids: list[str] | None) -> Dataset:
    from dataclasses import replace

    dataset = nodes_from_table(nodes, name)
    if dataset.num_nodes != graph.num_nodes:
        raise nodes.error(f"lists {dataset.num_nodes} nodes, the graph has {graph.num_nodes}")
    if ids is not None and ids != dataset.ids:
        raise nodes.error("lists other nodes than the graph, or in another order")
    return replace(dataset, graph=graph)


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def _is_networkx(value: Any) -> bool:
    return all(hasattr(value, attribute) for attribute in ("nodes", "edges", "is_directed", "adjacency"))


def _is_scipy(value: Any) -> bool:
    return hasattr(value, "tocsr") and hasattr(value, "shape")


def _is_pairs(value: Any) -> bool:
    return isinstance(value, torch.Tensor | np.ndarray | list) and not hasattr(value, "columns")
