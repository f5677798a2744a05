"""Amazon Photo and Coauthor CS from the files of the GNN pitfalls benchmark."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.io.npz import from_arrays, read_arrays
from hgde.data.io.pickles import csr_from, load_pickle
from hgde.data.sets._texts import LINKS
from hgde.data.spec import DatasetSpec, Expected, github_files
from hgde.data.splits.nodes import SplitRule

_ADDRESS = "EdisonLeeeee/GraphData/f8022c26b917346f2a461ffec0ec5ae24b36de68"


def shchur(
    *, name: str, title: str, expected: Expected, alias: str, files: tuple[tuple[str, int, str], ...]
) -> DatasetSpec:
    """What the graphs of that benchmark share."""
    return DatasetSpec(
        name=name,
        title=title,
        kind="graph",
        tasks=("nodes", "links"),
        protocols=f"nodes: 20 training and 30 validation nodes per class, or 60/20/20 %, at random. {LINKS}",
        licence="not stated",
        citation="Shchur et al.: Pitfalls of Graph Neural Network Evaluation, 2018",
        read=read,
        files=github_files(_ADDRESS, files),
        expected=expected,
        split_rule=SplitRule("shchur"),
        aliases=(alias,),
    )


def read(files: Mapping[str, Path], name: str) -> Dataset:
    """Adjacency and attributes in CSR form and a label per node, under any of the names the copies use."""
    path = files[f"{name}.npz"]
    stored = _arrays(path)
    adjacency = _matrix(stored, ("adj", "adj_matrix"), path).tocoo()
    attributes = _matrix(stored, ("attr", "attr_matrix", "node_attr"), path).tocsr()
    labels = next((stored[key] for key in ("labels", "label", "node_label") if key in stored), None)
    if labels is None:
        raise DataError.at(path, f"holds no labels; it holds {', '.join(stored)}")
    arrays: dict[str, Any] = {
        "edge_index": np.stack([adjacency.row, adjacency.col]).astype(np.int64),
        "feat_data": attributes.data,
        "feat_indices": attributes.indices,
        "feat_indptr": attributes.indptr,
        "feat_shape": np.asarray(attributes.shape),
        "y": np.asarray(labels).astype(np.int64),
    }
    return from_arrays(arrays, name, path)


def _arrays(path: Path) -> dict[str, Any]:
    """Plain arrays as they are; pickled members through the restricted unpickler."""
    try:
        return dict(read_arrays(path))
    except DataError:
        if not zipfile.is_zipfile(path):
            raise
    stored: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            content = archive.read(member)
            stored[member.removesuffix(".npy")] = _member(content, path)
    return stored


def _member(content: bytes, path: Path) -> Any:
    stream, numpy_format = io.BytesIO(content), cast(Any, np.lib.format)
    try:
        version = numpy_format.read_magic(stream)
        read_header = numpy_format.read_array_header_1_0 if version == (1, 0) else numpy_format.read_array_header_2_0
        _, _, dtype = read_header(stream)
        if dtype.hasobject:
            return load_pickle(stream.read(), path)
        stream.seek(0)
        return numpy_format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError.at(path, f"a damaged member ({error})") from None


def _matrix(stored: Mapping[str, Any], names: tuple[str, ...], path: Path) -> Any:
    from scipy.sparse import csr_matrix

    for name in names:
        for separator in ("_", "."):
            parts = [f"{name}{separator}{part}" for part in ("data", "indices", "indptr", "shape")]
            if all(part in stored for part in parts):
                data, indices, indptr, shape = (stored[part] for part in parts)
                return csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()))
        if name in stored:
            record = stored[name]
            return csr_from(record[0] if isinstance(record, list) else record, path)
    raise DataError.at(path, f"holds no matrix called {' or '.join(names)}; it holds {', '.join(stored)}")
