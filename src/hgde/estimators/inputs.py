"""What a user may hand to an estimator, brought to one form: rows of features and a graph."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.data import Dataset, read_graph
from hgde.graph import Features, Graph, GraphError, SparseFeatures
from hgde.graph.knn import knn_graph

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Given:
    """Arguments of ``fit`` or ``predict`` with everything an object carried taken out of it."""

    rows: Any
    graph: Any = None
    labels: Any = None
    validation: Any = None


def unpack(X: Any, y: Any = None, graph: Any = None, edge_index: Any = None, validation: Any = None) -> Given:
    """Take features, graph and labels out of a data set, a PyG ``Data`` or a networkx graph; arrays pass through.

    Labels of an object's own test part are hidden, and its validation part is used as such.
    """
    if graph is not None and edge_index is not None:
        raise ValueError("give either graph or edge_index, not both")
    graph = graph if edge_index is None else _Pairs(edge_index)
    if not _holds_graph(X):
        return Given(_array(X), graph, None if y is None else _array(y), validation)
    dataset = X if isinstance(X, Dataset) else read_graph(X)
    features = dataset.features.to_scipy() if isinstance(dataset.features, SparseFeatures) else dataset.features.numpy()
    graph = dataset.graph if graph is None else graph
    if y is not None or dataset.labels is None:
        return Given(features, graph, None if y is None else _array(y), validation)
    codes = dataset.labels.numpy().copy()
    split = next((splits[0] for splits in dataset.fixed_splits.values() if splits), None)
    if split is not None and validation is None:
        seen = torch.cat([split.train, split.val]).numpy()
        codes[np.setdiff1d(np.arange(codes.size), seen)] = -1
        validation = split.val.numpy() if split.val.numel() else None
    if dataset.class_names is None:
        return Given(features, graph, codes, validation)
    names = np.array([*dataset.class_names, "-1"])
    return Given(features, graph, names[codes], validation)


def as_features(rows: Any, dtype: torch.dtype) -> Features:
    """Validated rows as a tensor, sparse ones in CSR form."""
    if hasattr(rows, "tocsr"):
        return SparseFeatures.from_scipy(rows.tocsr(), dtype)
    return torch.as_tensor(np.ascontiguousarray(rows)).to(dtype)


def as_graph(graph: Any, features: Features, neighbours: int) -> Graph:
    """The graph on the rows of ``features``; without one, that of nearest neighbours."""
    num_nodes = int(features.shape[0])
    if graph is None:
        return knn_graph(features, min(neighbours, num_nodes))
    found = _read(graph, num_nodes)
    if found.num_nodes != num_nodes:
        raise GraphError(f"the graph has {found.num_nodes} nodes, X has {num_nodes} rows; they must be the same nodes")
    return found


def fingerprint(features: Features) -> str:
    """Tells whether rows are the ones that were trained on."""
    parts = [features] if isinstance(features, Tensor) else [features.indptr, features.indices, features.values]
    digest = hashlib.sha256(str(tuple(features.shape)).encode())
    for part in parts:
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class _Pairs:
    edge_index: Any


def _read(graph: Any, num_nodes: int) -> Graph:
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, Dataset):
        return graph.graph
    if isinstance(graph, _Pairs):
        return Graph.from_edges(_integers(graph.edge_index), num_nodes)
    if hasattr(graph, "tocsr"):
        return Graph.from_scipy(graph.tocsr())
    if hasattr(graph, "edge_index"):
        return Graph.from_edges(graph.edge_index, num_nodes)
    if _holds_graph(graph):  # networkx; rows of X are in the order of its nodes
        place = {node: number for number, node in enumerate(graph.nodes)}
        pairs = np.array([(place[u], place[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2).T
        return Graph.from_edges(pairs, len(place))
    table = _array(graph)
    if getattr(table, "ndim", 0) == 2 and table.shape == (num_nodes, num_nodes):
        from scipy.sparse import csr_matrix

        return Graph.from_scipy(csr_matrix(table))
    return Graph.from_edges(_integers(table), num_nodes)


def _integers(pairs: Any) -> Array:
    found = np.asarray(_array(pairs))
    if found.dtype.kind == "f" and found.size == 0:
        found = found.astype(np.int64)
    return found.T if found.ndim == 2 and found.shape[0] != 2 and found.shape[1] == 2 else found


def _holds_graph(value: Any) -> bool:
    is_networkx = all(hasattr(value, name) for name in ("nodes", "edges", "adjacency"))
    return isinstance(value, Dataset) or is_networkx or hasattr(value, "edge_index")


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value
