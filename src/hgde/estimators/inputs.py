"""What a user may hand to an estimator, brought to one form: rows of features and a graph."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.data import Dataset, read_graph
from hgde.data.columns import Columns
from hgde.data.io.objects import is_networkx
from hgde.data.preprocessing import PreprocessingSettings, Preprocessor
from hgde.graph import Features, Graph, GraphError, SparseFeatures
from hgde.graph.knn import knn_graph
from hgde.tasks.metrics import CLASSES, LABELS, VALUES

Array = np.ndarray[Any, Any]


class Nodes:
    """Rows and their graph as one ``X``, of which a part can be chosen without tearing the graph apart.

    scikit-learn's tools take rows away to score on them; on a graph, what is to be hidden are their *labels*. Of
    ``Nodes``, they choose: ``fit`` learns from the labels of the chosen nodes on the whole graph, ``predict`` and
    ``score`` answer for the chosen ones.

    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from hgde import HGDEClassifier, Nodes
    >>> ring = np.array([np.arange(12), (np.arange(12) + 1) % 12])
    >>> nodes, y = Nodes(np.eye(12), edge_index=ring), np.arange(12) // 6
    >>> cross_val_score(HGDEClassifier(epochs=2, preset="none"), nodes, y, cv=3).shape
    (3,)
    """

    def __init__(self, rows: Any, graph: Any = None, *, edge_index: Any = None, chosen: Any = None) -> None:
        if graph is not None and edge_index is not None:
            raise ValueError("give either graph or edge_index, not both")
        self.rows = rows
        self.graph = graph if edge_index is None else _Pairs(edge_index)
        count = int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)
        self.chosen: Array = np.arange(count) if chosen is None else np.asarray(chosen, dtype=np.int64)
        self.num_nodes = count

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.chosen), *getattr(self.rows, "shape", (0, 0))[1:])

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, wanted: Any) -> Nodes:
        """Some of the chosen nodes, by number or mask; the graph stays whole."""
        rows = wanted[0] if isinstance(wanted, tuple) else wanted
        return Nodes(self.rows, self.graph, chosen=self.chosen[rows])

    def spread(self, y: Any, kind: str) -> Array:
        """Targets of the chosen nodes as targets of all; the others have none."""
        targets = np.asarray(y)
        if len(targets) != len(self.chosen):
            raise ValueError(f"there are {len(targets)} targets for {len(self.chosen)} chosen nodes")
        if kind == VALUES:
            targets = targets.astype(np.float64)
            unknown: Any = np.nan
        else:
            if targets.dtype.kind in "bO":  # None and True are no numbers beside -1
                targets = targets.astype(object)
            unknown = "-1" if targets.dtype.kind == "U" else None if targets.dtype == object else -1
        width = targets.dtype if targets.dtype.kind != "U" else np.result_type(targets.dtype, np.dtype("<U2"))
        everywhere = np.full((self.num_nodes, *targets.shape[1:]), unknown, dtype=width)
        everywhere[self.chosen] = targets
        return everywhere

    def __repr__(self) -> str:
        return f"Nodes({len(self.chosen)} chosen of {self.num_nodes})"


@dataclass(frozen=True, eq=False)
class Given:
    """Arguments of ``fit`` or ``predict`` with everything an object carried taken out of it."""

    rows: Any
    graph: Any = None
    targets: Any = None
    validation: Any = None
    names: list[str] | None = None
    """What a DataFrame's index calls the rows; ``None`` where they are only numbered."""


def unpack(
    X: Any,
    y: Any = None,
    graph: Any = None,
    edge_index: Any = None,
    validation: Any = None,
    kind: str = CLASSES,
) -> Given:
    """Take features, graph and targets out of a data set, a PyG ``Data`` or a networkx graph; arrays pass through.

    Targets of an object's own test part are hidden, and its validation part is used as such. ``kind`` says which of a
    data set's targets are meant (:mod:`hgde.tasks.metrics`). With chosen :class:`Nodes`, ``y`` is that of the chosen
    ones, and all others are without target.
    """
    if graph is not None and edge_index is not None:
        raise ValueError("give either graph or edge_index, not both")
    if isinstance(X, Nodes):
        if graph is not None or edge_index is not None:
            raise ValueError("these Nodes bring their graph; leave out graph and edge_index")
        targets = None if y is None else X.spread(_array(y), kind)
        return unpack(X.rows, targets, X.graph, None, validation, kind)
    graph = graph if edge_index is None else _Pairs(edge_index)
    if not _holds_graph(X):
        return Given(_array(X), graph, None if y is None else _array(y), validation, _row_names(X))
    dataset = X if isinstance(X, Dataset) else read_graph(X)
    features: Any = dataset.features
    if not isinstance(features, Columns):
        features = features.to_scipy() if isinstance(features, SparseFeatures) else features.cpu().numpy()
    graph = dataset.graph if graph is None else graph
    if y is not None:
        return Given(features, graph, _array(y), validation)
    own = {CLASSES: dataset.labels, VALUES: dataset.values, LABELS: dataset.label_sets}[kind]
    if own is None:
        return Given(features, graph, None, validation)
    targets = own.cpu().numpy().copy()
    split = next((splits[0] for splits in dataset.fixed_splits.values() if splits), None)
    if split is not None and validation is None:
        seen = torch.cat([split.train, split.val]).numpy()
        targets[np.setdiff1d(np.arange(len(targets)), seen)] = np.nan if kind == VALUES else -1
        validation = split.val.numpy() if split.val.numel() else None
    if kind == CLASSES and dataset.class_names is not None:
        targets = np.array([*dataset.class_names, "-1"])[targets]
    return Given(features, graph, targets, validation)


def chosen(X: Any, values: Tensor) -> Tensor:
    """What was worked out for every node, of those that were asked for."""
    return values[torch.from_numpy(X.chosen).to(values.device)] if isinstance(X, Nodes) else values


def is_frame(X: Any) -> bool:
    """Whether it is a DataFrame, whose columns have names and kinds."""
    return hasattr(X, "columns") and hasattr(X, "iloc")


def _row_names(X: Any) -> list[str] | None:
    """The index of a DataFrame, unless it merely counts."""
    if not is_frame(X) or X.index.equals(type(X.index)(range(len(X)))):
        return None
    return [str(name) for name in X.index]


def as_features(rows: Any) -> Features:
    """Validated rows as a tensor, sparse ones in CSR form."""
    if hasattr(rows, "tocsr"):
        return SparseFeatures.from_scipy(rows.tocsr(), torch.float64)
    return torch.as_tensor(np.ascontiguousarray(rows)).double()


def as_graph(graph: Any, rows: Features | Columns, neighbours: int, names: list[str] | None = None) -> Graph:
    """The graph on the rows; without one, that of nearest neighbours. ``names`` are what the rows are called."""
    num_nodes = int(rows.shape[0])
    if graph is None:
        features = (
            Preprocessor.fit(Dataset("X", Graph.from_edges([], num_nodes), rows), PreprocessingSettings()).transform(
                Dataset("X", Graph.from_edges([], num_nodes), rows)
            )
            if isinstance(rows, Columns)
            else rows
        )
        return knn_graph(features, min(neighbours, num_nodes))
    made = _read(graph, num_nodes, names)
    if made.num_nodes != num_nodes:
        raise GraphError(f"the graph has {made.num_nodes} nodes, X has {num_nodes} rows; they must be the same nodes")
    return made


def fingerprint(features: Features | Columns) -> str:
    """Tells whether rows are the ones that were trained on."""
    if isinstance(features, Columns):
        return features.hash
    parts = [features] if isinstance(features, Tensor) else [features.indptr, features.indices, features.values]
    digest = hashlib.sha256(str(tuple(features.shape)).encode())
    for part in parts:
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class _Pairs:
    edge_index: Any


def _read(graph: Any, num_nodes: int, names: list[str] | None) -> Graph:
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, Dataset):
        return graph.graph
    if isinstance(graph, _Pairs):
        return Graph.from_edges(_integers(graph.edge_index), num_nodes)
    if hasattr(graph, "tocsr"):
        return _from_matrix(graph.tocsr())
    if hasattr(graph, "edge_index"):
        return Graph.from_edges(graph.edge_index, num_nodes, getattr(graph, "edge_weight", None))
    if _holds_graph(graph):
        return _read_networkx(graph, names)
    table = _array(graph)
    if getattr(table, "ndim", 0) == 2 and table.shape == (num_nodes, num_nodes):
        from scipy.sparse import csr_matrix

        return _from_matrix(csr_matrix(table))
    return Graph.from_edges(_integers(table), num_nodes)


def _from_matrix(matrix: Any) -> Graph:
    """Values are weights, unless all are one; the same as :func:`hgde.data.read_graph` makes of a matrix."""
    return Graph.from_scipy(matrix, weighted=bool((matrix.data != 1).any()))


def _read_networkx(graph: Any, names: list[str] | None) -> Graph:
    """Nodes are matched to rows by name where rows have names, else taken in order."""
    nodes = list(graph.nodes)
    place = {node: number for number, node in enumerate(nodes)}
    if names is not None:
        row = {name: number for number, name in enumerate(names)}
        missing = [str(node) for node in nodes if str(node) not in row]
        if missing:
            raise GraphError(f"node {missing[0]!r} of the graph is not in the index of X ({len(missing)} are not)")
        place = {node: row[str(node)] for node in nodes}
    weights = [data.get("weight", 1.0) for _, _, data in graph.edges(data=True)]
    pairs = np.array([(place[u], place[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2).T
    is_weighted = any(weight != 1.0 for weight in weights)
    return Graph.from_edges(
        pairs, len(names or nodes), undirected=True, weights=torch.tensor(weights).double() if is_weighted else None
    )


def _integers(pairs: Any) -> Array:
    ends = np.asarray(_array(pairs))
    if ends.dtype.kind == "f" and ends.size == 0:
        ends = ends.astype(np.int64)
    return ends.T if ends.ndim == 2 and ends.shape[0] != 2 and ends.shape[1] == 2 else ends


def _holds_graph(value: Any) -> bool:
    return isinstance(value, Dataset) or is_networkx(value) or hasattr(value, "edge_index")


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value
