"""Disease and Airport from HGCN's original files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.npz import from_arrays, read_arrays
from hgde.data.pickles import Record, load_pickle

_POPULATION_COLUMN = 4
_POPULATION_BINS = (7 / 7, 8 / 7, 9 / 7)


def read_disease(files: Mapping[str, Path], name: str) -> Dataset:
    """Edges, labels and, where the file is there, features. Nodes are numbered as the edge list first names them."""
    edges, labels = files[f"{name}.edges.csv"], files[f"{name}.labels.npy"]
    number_of: dict[str, int] = {}
    pairs = []
    for line, text in enumerate(edges.read_text().splitlines(), start=1):
        ends = text.split(",")
        if len(ends) != 2:
            raise DataError.at(edges, f"expected two nodes, got {text[:40]!r}", line=line)
        pairs.append([number_of.setdefault(end, len(number_of)) for end in ends])
    try:
        y = np.load(labels, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError.at(labels, f"not a readable array file ({error})") from None
    arrays: dict[str, Any] = {"edge_index": np.asarray(pairs, dtype=np.int64).T, "y": y.astype(np.int64)}
    feature_file = files.get(f"{name}.feats.npz", edges.with_name(f"{name}.feats.npz"))
    if feature_file.is_file():
        arrays["x"] = _scipy_file(feature_file)
    return from_arrays(arrays, name, edges)


def read_airport(files: Mapping[str, Path], name: str) -> Dataset:
    """A pickled networkx graph with a ``feat`` vector per node; labels are column 4 cut into four classes."""
    path = files["airport.p"]
    record = load_pickle(path)
    state = record.state if isinstance(record, Record) else {}
    nodes = state.get("_node", state.get("node"))
    neighbours = state.get("_adj", state.get("adj"))
    if not isinstance(nodes, dict) or not isinstance(neighbours, dict):
        raise DataError.at(path, "expected a pickled networkx graph")
    number_of = {node: number for number, node in enumerate(nodes)}
    try:
        x = np.stack([np.asarray(nodes[node]["feat"], dtype=np.float64) for node in nodes])
        pairs = [(number_of[u], number_of[v]) for u, ends in neighbours.items() for v in ends]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError.at(path, f"expected a feature vector 'feat' for every node ({error!r})") from None
    bins = np.digitize(x[:, _POPULATION_COLUMN], _POPULATION_BINS)
    arrays = {
        "edge_index": np.asarray(pairs, dtype=np.int64).T,
        "x": x.astype(np.float32),
        "y": bins - bins.min(),
    }
    return from_arrays(arrays, name, path)


def _scipy_file(path: Path) -> np.ndarray[Any, Any]:
    """A matrix written by ``scipy.sparse.save_npz``, read without pickle."""
    from scipy.sparse import coo_matrix, csc_matrix, csr_matrix

    stored = read_arrays(path)
    kind = stored.get("format", np.asarray(b"")).item()
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    try:
        shape = tuple(stored["shape"].tolist())
        if kind == "coo":
            matrix = coo_matrix((stored["data"], (stored["row"], stored["col"])), shape=shape)
        else:
            make = {"csr": csr_matrix, "csc": csc_matrix}[kind]
            matrix = make((stored["data"], stored["indices"], stored["indptr"]), shape=shape)
    except (KeyError, ValueError) as error:
        raise DataError.at(path, f"not a sparse matrix saved by scipy ({error!r})") from None
    dense: np.ndarray[Any, Any] = matrix.toarray().astype(np.float32)
    return dense
