"""What the sets of HGCN share: its repository, and the reader of its two Disease trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.io.npz import from_arrays, read_arrays
from hgde.data.splits.nodes import SplitRule

ADDRESS = "HazyResearch/hgcn/a526385744da25fc880f3da346e17d0fe33817f8"
DISEASE_SPLIT = SplitRule("hgcn", (0.30, 0.10, 0.60))


def read_disease(files: Mapping[str, Path], name: str) -> Dataset:
    """Edges, labels and, where the file is there, features. Nodes are numbered as the edge list first names them."""
    edges, labels = files[f"{name}.edges.csv"], files[f"{name}.labels.npy"]
    number_of: dict[str, int] = {}
    pairs = []
    for line, text in enumerate(edges.read_text(encoding="utf-8").splitlines(), start=1):
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
