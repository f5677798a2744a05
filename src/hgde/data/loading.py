"""One call from a name to a data set: the user's folder, then the cache, then the public address."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.npz import from_arrays, read_arrays
from hgde.data.registry import DatasetSpec, find_spec


def load(
    name: str,
    root: Path | str | None = None,
    *,
    k: int = 5,
    row_normalise: bool = False,
    largest_component: bool = False,
    download: bool = True,
    **options: Any,
) -> Dataset:
    """Load a registered data set.

    Args:
        name: a key of :data:`hgde.data.DATASETS` or an alias.
        root: folder with neutral NPZ or original files; default: the folder named by ``HGDE_DATA``.
        k: neighbours (counting the node itself) of the graph built for sets that have none.
        row_normalise: divide each feature row by its sum, as is usual for the citation graphs.
        largest_component: keep the largest connected component only; stored splits are restricted to it.
        download: fetch from the public address if neither folder nor cache has it.
        options: passed to the generator of a simulated set (``seed`` and so on).

    Raises:
        DataError: for an unknown name, data that is nowhere to be found, or files that are not what they should be.
    """
    spec = find_spec(name)
    if spec.kind == "generated":
        dataset: Dataset = _resolve(spec.reader)(**options)
    elif options:
        raise DataError(f"{spec.name} takes no option {', '.join(options)}; those are for simulated data sets")
    elif spec.kind == "builtin":
        dataset = _resolve(spec.reader)(k=k)
    else:
        dataset = _from_files(spec, data_root(root), k=k, download=download)
    if largest_component:
        dataset = dataset.largest_component()
    return dataset.row_normalised() if row_normalise else dataset


def data_root(root: Path | str | None = None) -> Path | None:
    """The folder the user named: the argument, else ``HGDE_DATA``, else none."""
    named = root if root is not None else os.environ.get("HGDE_DATA")
    return Path(named).expanduser() if named else None


def _resolve(reader: str) -> Callable[..., Any]:
    module, _, function = reader.partition(":")
    resolved: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return resolved


def _from_files(spec: DatasetSpec, root: Path | None, *, k: int, download: bool) -> Dataset:
    path = (root or Path()) / f"{spec.name}.npz"
    if root is None or not path.is_file():
        raise DataError(
            f"{spec.name}: {path} is not there; name the folder that holds it with HGDE_DATA or --data-root"
        )
    return _neutral(spec, path, k)


def _neutral(spec: DatasetSpec, path: Path, k: int) -> Dataset:
    dataset = from_arrays(read_arrays(path), spec.name, path, k=k, scale=spec.scale)
    return _check(spec, _with_registered_splits(spec, dataset))


def _with_registered_splits(spec: DatasetSpec, dataset: Dataset) -> Dataset:
    """Name the stored lists after their protocol; what Planetoid leaves without a label has none."""
    stored = dataset.fixed_splits.get("fixed", ())
    if spec.stored_split == "hgcn" or not stored:
        return replace(dataset, fixed_splits={})
    if spec.stored_split != "public":
        return dataset
    public = replace(stored[0], name="public")
    labels = dataset.labels
    if labels is not None:
        labels = labels.clone()
        test_range = torch.arange(int(public.test.min()), int(public.test.max()) + 1)
        labels[test_range[~torch.isin(test_range, public.test)]] = -1
    return replace(dataset, labels=labels, fixed_splits={"public": (public,)})


def _check(spec: DatasetSpec, dataset: Dataset) -> Dataset:
    """Refuse a file that carries a registered name but holds something else."""
    expected = spec.expected
    if expected is None:
        return dataset
    found = {"nodes": dataset.num_nodes, "classes": dataset.num_classes}
    if spec.kind == "graph":
        found["edges"] = dataset.graph.undirected_edges.shape[1]
    if dataset.meta.get("features") != "identity":
        found["features"] = dataset.num_features
    wrong = [
        f"{found[key]} {key} instead of {getattr(expected, key)}"
        for key in found
        if found[key] != getattr(expected, key)
    ]
    if wrong and not (spec.name == "disease_nc" and found.get("features") == 1000):
        raise DataError.at(dataset.meta.get("source", spec.name), f"is not {spec.name}: {', '.join(wrong)}")
    return dataset
