"""Partitions of graphs larger than memory: edges and nodes are read in chunks and go to disk at once.

What is held is a few numbers per node. Features are numbers, scaled as the settings say by what the first million nodes
show; names are texts of any kind.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hgde.data import DataError, Dataset
from hgde.data.preprocessing import Preprocessor
from hgde.data.settings import DataSettings
from hgde.distributed.cutting import assign, default_pieces
from hgde.distributed.external import DiskEdges, build
from hgde.distributed.make import FIXED, Numbering, local_pattern
from hgde.distributed.partition import Array, Partition, Writer
from hgde.distributed.reading import ChunkedTable, Names
from hgde.graph import Graph
from hgde.pipeline.prepare import number_type, versions
from hgde.pipeline.settings import Settings
from hgde.tasks import PARTS, TaskError
from hgde.tasks.metrics import CLASSES
from hgde.training import checkpoint

SAMPLE = 1_000_000
METIS_EDGES = 200_000_000
"""Up to so many directed edges METIS is given the whole pattern, some 20 bytes for each; beyond, the order is kept."""


@dataclass(frozen=True)
class NodeTable:
    """What is known of the nodes, in their order: ``features [N, F]`` and ``ids`` may be mapped files.

    ``truth [N]`` is the class, -1 where unknown; ``part [N]`` the place in :data:`hgde.tasks.PARTS`, -1 for none.
    """

    ids: Array
    features: Array
    names: list[str]
    truth: Array
    part: Array
    classes: list[str]


def stream_partition(
    path: str | Path, settings: Settings, pieces: int | None = None, method: str = "metis", chunk: int = 2_000_000
) -> Partition:
    """Cut the graph that ``settings.data`` names by its tables of edges and nodes, reading both in chunks."""
    data = settings.data
    if data.edges is None or data.nodes is None:
        raise DataError("reading in chunks (--stream) needs --edges and --nodes, tables in CSV, TSV or Parquet")
    if settings.task.entry.kind != CLASSES:
        raise TaskError(f"graphs read in chunks can be cut for task nodes, not {settings.task.name}")
    work = Path(path) / "work"
    work.mkdir(parents=True, exist_ok=True)
    try:
        names, nodes = _read_nodes(ChunkedTable(data.nodes, chunk), data, work)
        table = ChunkedTable(data.edges, chunk)
        estimate = table.path.stat().st_size // (4 if table.is_parquet else 8)
        edges = build(_edges(table, data, names), names.count, estimate, work / "edges", directed=data.directed)
        return write_streamed(path, Path(data.edges).name, edges, nodes, settings, pieces, method)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _edges(table: ChunkedTable, data: DataSettings, names: Names) -> Iterator[tuple[Array, Array]]:
    source = table.find("source", data.source_column, 0)
    target = table.find("target", data.target_column, 1)
    if source is None or target is None:
        raise DataError(f"{table.path} needs two columns (source,target), it has {len(table.columns)}")
    if table.find("weight", data.weight_column) is not None:
        raise DataError(f"{table.path} has weights of edges, which are not read in chunks; leave that column out")
    first = 0
    for columns in table.chunks((source, target), text=(source, target)):
        ends = [names.numbers(columns[name]) for name in (source, target)]
        unknown = np.flatnonzero((ends[0] < 0) | (ends[1] < 0))
        if len(unknown):
            row = int(unknown[0])
            which = source if ends[0][row] < 0 else target
            raise DataError(
                f"{table.path}, row {first + row + 2}: no node is called {str(columns[which][row])[:60]!r}; the table "
                "of nodes must name them all"
            )
        first += len(ends[0])
        yield ends[0], ends[1]


def _read_nodes(table: ChunkedTable, data: DataSettings, work: Path) -> tuple[Names, NodeTable]:
    """Names, features, labels and parts of the nodes, chunk by chunk."""
    ident = table.find("id", data.id_column, 0)
    label = table.find("label", data.label_column)
    split = table.find("split", data.split_column)
    assert ident is not None
    if label is None:
        raise DataError(f"{table.path} has no column of labels (label); name one with --label-column")
    texts = [name for name in (ident, label, split) if name is not None]
    numbers = [name for name in table.columns if name not in texts]
    if not numbers:
        raise DataError(f"{table.path} has no column of numbers besides {', '.join(texts)}; nodes need features")
    names, ids, classes = Names(), list[Array](), dict[str, int]()
    truth, part = list[Array](), list[Array]()
    with (work / "features.bin").open("wb") as out:
        for columns in table.chunks([*texts, *numbers], text=texts):
            _, new = names.add(columns[ident])
            if len(new) != len(columns[ident]):
                raise DataError(f"{table.path}: a node is listed twice, around row {names.count + 2}")
            ids.append(new.astype(str))
            _matrix(table, columns, numbers).tofile(out)
            truth.append(_coded(columns[label], classes))
            part.append(_parts(columns[split]) if split is not None else np.full(len(new), -2, np.int8))
    order = sorted(classes)
    place = {classes[name]: number for number, name in enumerate(order)}
    renumber = np.array([place[k] for k in range(len(order))] + [-1], dtype=np.int64)
    known = renumber[np.concatenate(truth)]
    parts = np.concatenate(part)
    if split is None:
        parts = _random_parts(known, data.split)
    features = np.memmap(work / "features.bin", dtype=np.float32, mode="r", shape=(names.count, len(numbers)))
    return names, NodeTable(np.concatenate(ids), features, numbers, known, parts, order)


def _matrix(table: ChunkedTable, columns: dict[str, Array], numbers: list[str]) -> Array:
    try:
        matrix: Array = np.stack([np.asarray(columns[name], dtype=np.float32) for name in numbers], axis=1)
    except (TypeError, ValueError):
        wrong = next(name for name in numbers if columns[name].dtype.kind not in "fiub")
        raise DataError(f"{table.path}: column {wrong!r} must hold numbers to be read in chunks") from None
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise DataError(
            f"{table.path}: column {numbers[column]!r} has a gap or no finite number (row {row} of a chunk)"
        )
    return matrix


def _coded(labels: Array, classes: dict[str, int]) -> Array:
    """Codes of labels in the order of their first appearance, -1 where there is none."""
    import pandas as pd

    codes, unique = pd.factorize(labels)
    own = [-1 if name == "" else classes.setdefault(str(name), len(classes)) for name in unique]
    return np.array([*own, -1], dtype=np.int64)[codes]


def _parts(column: Array) -> Array:
    part = np.full(len(column), -1, np.int8)
    for place, name in enumerate(PARTS):
        part[column == name] = place
    return part


def _random_parts(truth: Array, seed: int) -> Array:
    """60/20/20 % of the labelled nodes, at random."""
    drawn = np.random.default_rng(seed).random(len(truth))
    part = np.searchsorted([0.6, 0.8], drawn, side="right").astype(np.int8)
    part[truth < 0] = -1
    return part


def write_streamed(
    path: str | Path, name: str, edges: DiskEdges, nodes: NodeTable, settings: Settings,
    pieces: int | None = None, method: str = "metis",
) -> Partition:  # fmt: skip
    """Cut a graph that lies on disk; memory for a piece at a time, and a few numbers for every node."""
    writer = Writer(path)
    count = default_pieces(edges.num_nodes, int(edges.indptr[-1])) if pieces is None else pieces
    if method == "metis" and edges.indptr[-1] > METIS_EDGES:
        raise DataError(f"{edges.indptr[-1]:,} edges are too many for METIS; choose --method contiguous or random")
    whole = np.asarray(edges.indices) if method == "metis" else np.zeros(0, np.int64)
    numbering = Numbering.of(assign(edges.indptr, whole, count, method), count)
    task = settings.task.entry(settings.task.options, nodes.classes)
    preprocessor = Preprocessor.fit(_dataset(name, nodes, slice(0, SAMPLE)), settings.preprocessing)
    digest = hashlib.sha256()
    halves, features = [], 0
    for number, low, high in numbering:
        rows = numbering.order[low:high]
        indptr, columns = edges.rows(rows)
        indptr, indices, halo, _ = local_pattern(indptr, numbering.new[columns], low, high)
        around = np.concatenate([rows, numbering.order[halo]])
        arriving = edges.indptr[around + 1] - edges.indptr[around]
        degrees = np.stack([arriving, edges.leaving[around]]).astype(np.float64)
        made = preprocessor.transform(_dataset(name, nodes, rows)).to(number_type(settings))
        assert isinstance(made, torch.Tensor)
        features += made.numel() * made.element_size()
        arrays: dict[str, Array | None] = {"indptr": indptr, "indices": indices, "halo": halo, "degrees": degrees}
        arrays |= {"loops": np.zeros(len(around), dtype=bool), "features": made.numpy()}
        for place, part in enumerate(PARTS):
            items = np.flatnonzero((nodes.part[rows] == place) & (nodes.truth[rows] >= 0))
            arrays |= {f"{part}_items": items, f"{part}_truth": nodes.truth[rows][items]}
            digest.update(items.tobytes())
        writer.piece(number, arrays)
        halves.append(len(columns))
    writer.array("ids", nodes.ids[numbering.order])
    sizes = {part: int(((nodes.part == place) & (nodes.truth >= 0)).sum()) for place, part in enumerate(PARTS)}
    if sizes["train"] == 0 or sizes["val"] == 0:
        raise TaskError("training and validation part must not be empty; label more nodes, or give a column split")
    described, tensors = preprocessor.state()
    meta: dict[str, Any] = {"task": {"name": settings.task.name, "fitted": task.fitted()}, "preprocessing": described}
    checkpoint.save(writer.path / "inputs.safetensors", tensors, meta)
    writer.known("inputs.safetensors")
    files = hashlib.sha256("".join(writer.files.values()).encode()).hexdigest()
    return writer.finish(
        {
            "data": name,
            "data_hash": files,
            "split": "column split or 60/20/20 at random",
            "split_hash": digest.hexdigest(),
            "parts": sizes,
            "task": settings.task.name,
            "settings": {key: value for key, value in settings.to_dict().items() if key in FIXED},
            "given": {key: value for key, value in settings.given.items() if key in FIXED},
            "dtype": settings.run.dtype,
            "in_features": preprocessor.num_outputs,
            "feature_bytes": features,
            "edges": int(edges.indptr[-1]),
            "starts": numbering.starts.tolist(),
            "edges_of": halves,
            "method": method,
            "ricci": None,
            "protocol": None,
            "versions": versions(),
        }
    )


def _dataset(name: str, nodes: NodeTable, rows: Array | slice) -> Dataset:
    """Some nodes as a data set without edges, which the preprocessing takes."""
    features = torch.from_numpy(np.array(nodes.features[rows]))
    empty = Graph(torch.zeros(len(features) + 1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    return Dataset(name, empty, features, feature_names=list(nodes.names))
