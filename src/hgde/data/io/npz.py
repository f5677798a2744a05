"""The neutral NPZ form: one file, plain arrays, nothing pickled.

``edge_index`` int [2, E], optionally ``edge_weight`` [E]; features as ``feat_data, feat_indices, feat_indptr,
feat_shape`` (CSR) or ``x`` [N, F]; labels ``y`` int [N], negative where unknown (values: float [N] or [N, T], NaN where
unknown; several labels per node: int [N, L] of 0 and 1, negative where unknown); splits as ``train_idx, val_idx,
test_idx`` (one) or ``train_mask, val_mask, test_mask`` [S, N] (several); optionally ``ids``, ``class_names``,
``feature_names``.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.data.dataset import Dataset, identity_features
from hgde.data.errors import DataError, unpacked_limit
from hgde.data.io.tables import check_readable
from hgde.data.splits.nodes import NodeSplit
from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph, GraphError
from hgde.graph.knn import knn_graph

Array = np.ndarray[Any, Any]

SPARSE_BELOW = 0.15
"""Share of non-zero entries below which features are kept sparse."""


FREE_COLUMNS = 1_000_000
"""Columns that sparse features may have however few entries there are; a model keeps weights for each."""


def read_arrays(path: Path) -> dict[str, Array]:
    """All arrays of an NPZ file; a file that is damaged or holds pickled objects is refused."""
    check_readable(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not hasattr(archive, "files"):
                raise DataError.at(path, "holds a single array; expected an NPZ archive with named arrays")
            limit = unpacked_limit(path.stat().st_size)
            members = archive.zip.infolist()
            if sum(member.file_size for member in members) > limit:
                raise DataError.at(path, f"unpacks to more than {limit:,} bytes; store it without compression")
            for member in members:
                _check_header(archive.zip, member)
            return {name: archive[name] for name in archive.files}
    except DataError:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise DataError.at(path, f"not a readable NPZ archive of plain arrays ({_first_line(error)})") from None
    except Exception as error:  # zlib and header parsing raise types of their own on damaged bytes
        raise DataError.at(path, f"damaged NPZ archive ({type(error).__name__}: {_first_line(error)})") from None


def _check_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse an array that says it is larger than its bytes: numpy makes room before it reads them."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    size = math.prod(shape) * dtype.itemsize
    if any(length < 0 for length in shape) or size > member.file_size:
        raise ValueError(f"{member.filename} says it holds {size:,} bytes, it has {member.file_size:,}")


def read_npz(path: Path, name: str | None = None, *, k: int = 5, undirected: bool = True) -> Dataset:
    """Read a data set in the neutral form; without edges, the ``k``-nearest-neighbour graph is built."""
    return from_arrays(read_arrays(path), name or path.stem, path, k=k, undirected=undirected)


def from_arrays(
    arrays: Mapping[str, Array],
    name: str,
    path: Path | str,
    *,
    k: int = 5,
    scale: float = 1.0,
    undirected: bool = True,
) -> Dataset:
    """Check the arrays of the neutral form and assemble the data set. Errors name ``path`` and the array."""
    features = _features(arrays, path)
    pairs = arrays.get("edge_index", np.zeros((2, 0), dtype=np.int64))
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu":
        given = f"{pairs.dtype} {list(pairs.shape)}"
        raise DataError.at(path, f"expected integers of shape [2, E], got {given}", column="edge_index")
    num_nodes = _num_nodes(arrays, features, pairs, path)
    if pairs.size and pairs.dtype.kind == "u" and pairs.max() > np.iinfo(np.int64).max:
        raise DataError.at(path, f"node number {pairs.max()} is too large", column="edge_index")
    labels, values, label_sets = _targets(arrays, num_nodes, path)
    if isinstance(features, SparseFeatures):
        features = features.with_values(features.values * scale)
    elif features is not None:
        features = features * scale
    meta: dict[str, Any] = {"source": str(path)}
    if pairs.shape[1] == 0 and features is not None and num_nodes > 1:
        graph = knn_graph(features, min(k, num_nodes))
        meta["graph"] = f"{k} nearest neighbours, counting the node itself"
    else:
        try:
            graph = Graph.from_edges(
                pairs.astype(np.int64), num_nodes, arrays.get("edge_weight"), undirected=undirected
            )
        except GraphError as error:
            raise DataError.at(path, str(error), column="edge_index") from None
    if features is None:
        features = identity_features(num_nodes)
        meta["features"] = "identity"
    return Dataset(
        name=name,
        graph=graph,
        features=features,
        labels=labels,
        ids=_strings(arrays, "ids", num_nodes, path),
        class_names=_class_names(arrays, labels, path),
        feature_names=_strings(arrays, "feature_names", int(features.shape[1]), path),
        fixed_splits=_splits(arrays, num_nodes, path),
        meta=meta,
        values=values,
        label_sets=label_sets,
    )


def choose_storage(matrix: Any) -> Features:
    """A scipy matrix as sparse or dense features, by the share of its non-zero entries."""
    size = max(matrix.shape[0] * matrix.shape[1], 1)
    if matrix.nnz / size < SPARSE_BELOW:
        return SparseFeatures.from_scipy(matrix)
    return torch.from_numpy(np.ascontiguousarray(matrix.toarray(), dtype=np.float32))


def _features(arrays: Mapping[str, Array], path: Path | str) -> Features | None:
    from scipy.sparse import csr_matrix

    parts = [f"feat_{part}" for part in ("data", "indices", "indptr", "shape")]
    present = [part for part in parts if part in arrays]
    if present and len(present) < 4:
        missing = ", ".join(part for part in parts if part not in arrays)
        raise DataError.at(path, f"features in CSR form need all of {', '.join(parts)}; missing: {missing}")
    if not present and "x" not in arrays:
        return None
    column = "feat_data" if present else "x"
    values = arrays[column]
    if values.dtype.kind not in "fiub":
        raise DataError.at(path, f"expected numbers, got {values.dtype}", column=column)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError.at(path, "holds a value that is not finite (NaN or infinity)", column=column)
    if not present:
        if values.ndim != 2:
            raise DataError.at(path, f"expected shape [N, F], got {list(values.shape)}", column="x")
        return choose_storage(csr_matrix(values.astype(np.float32))) if values.shape[1] else None
    shape = arrays["feat_shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise DataError.at(path, f"expected two sizes, got {shape.tolist()}", column="feat_shape")
    if shape[1] == 0:
        return None
    if shape[1] > max(FREE_COLUMNS, 100 * values.size):
        raise DataError.at(path, f"{shape[1]:,} columns for {values.size:,} entries", column="feat_shape")
    try:
        matrix = csr_matrix(
            (values.astype(np.float32), arrays["feat_indices"], arrays["feat_indptr"]), shape=tuple(shape.tolist())
        )
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise DataError.at(path, f"not a valid CSR matrix ({_first_line(error)})", column="feat_*") from None
    return choose_storage(matrix)


def _num_nodes(arrays: Mapping[str, Array], features: Features | None, pairs: Array, path: Path | str) -> int:
    sizes: dict[str, int] = {}
    if "feat_shape" in arrays:
        sizes["feat_shape"] = int(arrays["feat_shape"][0])
    elif features is not None:
        sizes["x"] = int(features.shape[0])
    for key in ("y", "ids"):
        if key in arrays:
            if arrays[key].ndim != 1 and not (key == "y" and arrays[key].ndim == 2):
                raise DataError.at(path, f"expected shape [N], got {list(arrays[key].shape)}", column=key)
            sizes[key] = int(arrays[key].shape[0])
    if len(set(sizes.values())) > 1:
        sizes_text = ", ".join(f"{key}: {size}" for key, size in sizes.items())
        raise DataError.at(path, f"arrays disagree on the number of nodes ({sizes_text})")
    if sizes:
        return next(iter(sizes.values()))
    if pairs.size == 0:
        raise DataError.at(path, "holds neither edges (edge_index) nor features (feat_* or x) nor labels (y)")
    return int(pairs.max()) + 1


def _targets(
    arrays: Mapping[str, Array], num_nodes: int, path: Path | str
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Classes, values and label sets: ``y`` of integers, of other numbers, or ``[N, L]`` of integers."""
    if "y" not in arrays:
        return None, None, None
    y = arrays["y"]
    if y.dtype.kind == "f":
        values = np.where(np.isfinite(y), y, np.nan).astype(np.float64).reshape(y.shape[0], -1)
        return None, torch.from_numpy(values), None
    if y.dtype.kind not in "iub":
        raise DataError.at(path, f"expected class numbers or values, got {y.dtype}", column="y")
    y = np.maximum(y.astype(np.int64), -1)
    if y.ndim == 2:
        if y.size and y.max() > 1:
            raise DataError.at(path, f"several labels per node are 0 or 1, got {y.max()}", column="y")
        return None, None, torch.from_numpy(y.astype(np.int8))
    if y.size and y.max() >= max(num_nodes, 1):
        raise DataError.at(path, f"class number {y.max()} in a graph of {num_nodes} nodes", column="y")
    return torch.from_numpy(y), None, None


def _class_names(arrays: Mapping[str, Array], labels: Tensor | None, path: Path | str) -> list[str] | None:
    if "class_names" not in arrays:
        return None
    names = [str(name) for name in arrays["class_names"].tolist()]
    largest = -1 if labels is None or labels.numel() == 0 else int(labels.max())
    if largest >= len(names):
        raise DataError.at(path, f"{len(names)} names, but a label is {largest}", column="class_names")
    return names


def _strings(arrays: Mapping[str, Array], key: str, size: int, path: Path | str) -> list[str] | None:
    if key not in arrays:
        return None
    if arrays[key].shape != (size,):
        raise DataError.at(path, f"expected {size} names, got shape {list(arrays[key].shape)}", column=key)
    return [str(value) for value in arrays[key].tolist()]


def _splits(arrays: Mapping[str, Array], num_nodes: int, path: Path | str) -> dict[str, tuple[NodeSplit, ...]]:
    """Stored lists are ``fixed`` splits; a registered data set may rename them."""
    splits: list[NodeSplit] = []
    if all(f"{part}_idx" in arrays for part in ("train", "val", "test")):
        lists = [arrays[f"{part}_idx"] for part in ("train", "val", "test")]
        for part, nodes in zip(("train", "val", "test"), lists, strict=True):
            wrong = nodes.ndim != 1 or nodes.dtype.kind not in "iu"
            if wrong or (nodes.size and not (nodes.min() >= 0 and nodes.max() < num_nodes)):
                raise DataError.at(path, f"expected node numbers 0 to {num_nodes - 1}", column=f"{part}_idx")
        train, val, test = (torch.from_numpy(nodes.astype(np.int64)) for nodes in lists)
        splits.append(NodeSplit(train, val, test, "fixed-0"))
    if all(f"{part}_mask" in arrays for part in ("train", "val", "test")):
        masks = [np.atleast_2d(arrays[f"{part}_mask"]) for part in ("train", "val", "test")]
        for part, mask in zip(("train", "val", "test"), masks, strict=True):
            if mask.shape != (masks[0].shape[0], num_nodes) or mask.dtype != bool:
                given = f"{mask.dtype} {list(mask.shape)}"
                raise DataError.at(path, f"expected bool [S, {num_nodes}], got {given}", column=f"{part}_mask")
        for rows in zip(*masks, strict=True):
            train, val, test = (torch.from_numpy(np.flatnonzero(row)) for row in rows)
            splits.append(NodeSplit(train, val, test, f"fixed-{len(splits)}"))
    return {"fixed": tuple(splits)} if splits else {}


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
