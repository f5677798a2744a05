"""A data set in one safetensors file: tensors and a JSON header, nothing pickled, the same hash when it comes back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.data.columns import Column, Columns
from hgde.data.dataset import Dataset, RawFeatures, RowScaling
from hgde.data.errors import DataError
from hgde.data.io.tables import check_readable
from hgde.data.spec import DATASETS
from hgde.data.splits.nodes import NodeSplit
from hgde.data.store_checks import dataset_problem
from hgde.files import write_atomically
from hgde.graph.features import SparseFeatures
from hgde.graph.graph import Graph
from hgde.registry import RegistryError, untrusted

_KEY, _VERSION = "hgde", 1
_PARTS = ("train", "val", "test")


def save_dataset(path: Path | str, dataset: Dataset) -> None:
    """Write a data set; it takes its place in one step, so that a reader never sees half of it.

    >>> import tempfile
    >>> from hgde import load
    >>> from hgde.data import load_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_dataset(f"{folder}/tree.safetensors", load("tree-random", num_nodes=30))
    ...     load_dataset(f"{folder}/tree.safetensors").num_nodes
    30
    """
    from safetensors.torch import save

    tensors, header = _packed(dataset)
    content = save(
        # Copies, since the format refuses tensors that share memory, as the parts of two splits may.
        {name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()},
        metadata={_KEY: json.dumps(header, ensure_ascii=False)},
    )
    write_atomically(Path(path), content)


def load_dataset(path: Path | str) -> Dataset:
    """Read what :func:`save_dataset` wrote; its hash is checked.

    Raises:
        DataError: for a file that is something else, is damaged, or belongs to a registered set that is not known here.

    >>> import tempfile
    >>> from hgde import load
    >>> from hgde.data import save_dataset
    >>> tree = load("tree-random", num_nodes=30)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_dataset(f"{folder}/tree.safetensors", tree)
    ...     load_dataset(f"{folder}/tree.safetensors").hash == tree.hash
    True
    """
    from safetensors import SafetensorError, safe_open

    check_readable(Path(path))
    try:
        with safe_open(str(path), framework="pt") as stored:
            header = json.loads((stored.metadata() or {}).get(_KEY, "null"))
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  # it is no mapping
    except (SafetensorError, OSError, ValueError, RecursionError, MemoryError) as error:
        raise DataError.at(path, f"not a readable data set ({str(error)[:200]})") from None
    if not isinstance(header, dict) or header.get("version") != _VERSION:
        raise DataError.at(path, "holds no data set of this version of hgde")
    try:
        dataset = _unpacked(tensors, header)
        problem = dataset_problem(dataset)
        is_whole = problem is not None or dataset.hash == header.get("hash")
    except RegistryError as error:
        raise DataError.at(path, f"the data set it was made from is not known here: {error}") from None
    except (ArithmeticError, AttributeError, KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise DataError.at(path, f"the stored data set is incomplete or damaged ({reason})") from None
    if problem is not None:
        raise DataError.at(path, f"the stored data set is damaged: {problem}")
    if not is_whole:
        raise DataError.at(path, "the stored data set is damaged: its hash is not the one it was stored with")
    return dataset


def _packed(dataset: Dataset) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors: dict[str, Tensor] = {"graph.indptr": dataset.graph.indptr, "graph.indices": dataset.graph.indices}
    optional = {
        "graph.weights": dataset.graph.weights,
        "labels": dataset.labels,
        "values": dataset.values,
        "label_sets": dataset.label_sets,
        "sample_weights": dataset.sample_weights,
    }
    tensors.update({name: tensor for name, tensor in optional.items() if tensor is not None})
    features, more = _pack_features(dataset.features)
    tensors.update(features)
    for key in ("ids", "class_names", "feature_names", "target_names"):
        texts = getattr(dataset, key)
        if texts is not None:
            tensors.update(_pack_texts(key, texts))
    splits: dict[str, list[str]] = {}
    for protocol, stored in dataset.fixed_splits.items():
        splits[protocol] = [split.name for split in stored]
        for number, split in enumerate(stored):
            tensors.update({f"splits.{protocol}.{number}.{part}": getattr(split, part) for part in _PARTS})
    scaling = dataset.scaling
    header = {
        "version": _VERSION,
        "name": dataset.name,
        "hash": dataset.hash,
        "spec": None if dataset.spec is None else DATASETS.name_of(dataset.spec),
        "features": more,
        "splits": splits,
        "scaling": None if scaling is None else [scaling.count, scaling.signed],
        "meta": dict(dataset.meta),
    }
    return tensors, header


def _pack_features(features: RawFeatures) -> tuple[dict[str, Tensor], dict[str, Any]]:
    if isinstance(features, Tensor):
        return {"features": features}, {"form": "dense"}
    if isinstance(features, SparseFeatures):
        parts = {f"features.{part}": getattr(features, part) for part in ("indptr", "indices", "values")}
        return parts, {"form": "sparse", "shape": list(features.shape)}
    tensors: dict[str, Tensor] = {}
    columns = []
    for number, column in enumerate(features.values()):
        tensors[f"features.{number}"] = torch.from_numpy(column.values)
        tensors.update(_pack_texts(f"features.{number}.categories", column.categories))
        columns.append({"name": column.name, "kind": column.kind, "problem": column.problem})
    return tensors, {"form": "columns", "columns": columns, "rows": features.num_rows}


def _pack_texts(key: str, texts: Iterable[str]) -> dict[str, Tensor]:
    """Texts end to end as UTF-8, and where each ends: a million node names are two tensors, not a header."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(part) for part in encoded], dtype=np.int64)
    content = np.frombuffer(b"".join(encoded), dtype=np.uint8).copy()
    return {f"{key}.text": torch.from_numpy(content), f"{key}.ends": torch.from_numpy(ends)}


def _unpack_texts(key: str, tensors: dict[str, Tensor]) -> list[str] | None:
    if f"{key}.ends" not in tensors:
        return None
    content = tensors[f"{key}.text"].numpy().tobytes()
    ends = tensors[f"{key}.ends"].tolist()
    if any(not isinstance(end, int) for end in ends) or sorted(ends) != ends or ends[-1:] not in ([], [len(content)]):
        raise ValueError(f"the texts of {key} overlap or do not cover what is stored")
    return [
        content[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends[:-1]], ends, strict=True)
    ] if ends else []  # fmt: skip


def _unpacked(tensors: dict[str, Tensor], header: dict[str, Any]) -> Dataset:
    spec = None
    if header["spec"] is not None:
        with untrusted():
            spec = DATASETS.get(header["spec"])
    splits = {
        protocol: tuple(
            _unpack_split(f"splits.{protocol}.{number}", name, tensors) for number, name in enumerate(names)
        )
        for protocol, names in header["splits"].items()
    }
    scaling = header["scaling"]
    return Dataset(
        name=header["name"],
        graph=Graph(tensors["graph.indptr"], tensors["graph.indices"], tensors.get("graph.weights")),
        features=_unpack_features(tensors, header["features"]),
        labels=tensors.get("labels"),
        ids=_unpack_texts("ids", tensors),
        class_names=_unpack_texts("class_names", tensors),
        feature_names=_unpack_texts("feature_names", tensors),
        fixed_splits=splits,
        meta=header["meta"],
        values=tensors.get("values"),
        label_sets=tensors.get("label_sets"),
        sample_weights=tensors.get("sample_weights"),
        target_names=_unpack_texts("target_names", tensors),
        spec=spec,
        scaling=None if scaling is None else RowScaling(int(scaling[0]), bool(scaling[1])),
    )


def _unpack_split(key: str, name: str, tensors: dict[str, Tensor]) -> NodeSplit:
    train, val, test = (tensors[f"{key}.{part}"] for part in _PARTS)
    return NodeSplit(train, val, test, name)


def _unpack_features(tensors: dict[str, Tensor], described: dict[str, Any]) -> RawFeatures:
    if described["form"] == "dense":
        return tensors["features"]
    if described["form"] == "sparse":
        rows, columns = described["shape"]
        indptr, indices, values = (tensors[f"features.{part}"] for part in ("indptr", "indices", "values"))
        return SparseFeatures(indptr, indices, values, (int(rows), int(columns)))
    made = []
    for number, column in enumerate(described["columns"]):
        categories = tuple(_unpack_texts(f"features.{number}.categories", tensors) or ())
        made.append(Column(column["name"], column["kind"], tensors[f"features.{number}"].numpy(), categories,
                           column["problem"]))  # fmt: skip
    return Columns(made, int(described["rows"]))
