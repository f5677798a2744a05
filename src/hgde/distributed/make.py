"""From data at hand to a partition: number the nodes anew, cut, write."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hgde.distributed.cutting import assign, default_pieces
from hgde.distributed.losses import refuse_unsupported
from hgde.distributed.partition import Array, Partition, Writer
from hgde.graph import Features, Graph, SparseFeatures
from hgde.pipeline.fitted import node_ids
from hgde.pipeline.prepare import Prepared, versions
from hgde.pipeline.settings import Settings
from hgde.tasks import Part, Problem
from hgde.tasks.metrics import PAIRS
from hgde.training import checkpoint

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Numbering:
    """``order[new] = old``, ``new[old] = new``, and where each piece starts."""

    order: Array
    new: Array
    starts: Array

    @classmethod
    def of(cls, piece: Array, pieces: int) -> Numbering:
        order = np.argsort(piece, kind="stable")
        new = np.empty_like(order)
        new[order] = np.arange(len(order))
        starts = np.concatenate([[0], np.cumsum(np.bincount(piece, minlength=pieces))])
        return cls(order, new, starts)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Number, first and last row of every piece."""
        return ((k, int(self.starts[k]), int(self.starts[k + 1])) for k in range(len(self.starts) - 1))


def local_pattern(indptr: Array, columns: Array, low: int, high: int) -> tuple[Array, Array, Array, Array]:
    """The rows ``low .. high - 1`` of a CSR pattern as a piece: ``(indptr, indices, halo, order)``.

    ``indptr`` covers the halo's rows too, which are empty: the pattern is square, as the kernels want it. ``order``
    says where each edge was.
    """
    inside = (columns >= low) & (columns < high)
    halo = np.unique(columns[~inside])
    count = high - low
    local = np.where(inside, columns - low, count + np.searchsorted(halo, columns))
    rows = np.repeat(np.arange(count), np.diff(indptr))
    order = np.lexsort((local, rows))
    padded = np.concatenate([indptr - indptr[0], np.full(len(halo), len(columns))]).astype(np.int64)
    return padded, local[order].astype(np.int64), halo.astype(np.int64), order


def make_partition(
    path: str | Path,
    prepared: Prepared,
    settings: Settings,
    pieces: int | None = None,
    method: str = "metis",
    ricci: float | None = None,
    seed: int = 0,
) -> Partition:
    """Cut a prepared data set and write it.

    Args:
        pieces: how many (default: twelve or more, by the number of edges); no run can have more ranks.
        method: ``metis``, ``contiguous`` or ``random``.
        ricci: also store the Ollivier-Ricci curvature of every edge with this ``alpha``; it needs neighbours of
            neighbours, so a piece cannot work it out by itself.

    >>> import tempfile
    >>> from hgde import make_settings
    >>> from hgde.pipeline import prepare
    >>> settings = make_settings({"data": {"name": "tree-random", "options": ["num_nodes=40"]}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_partition(f"{folder}/parts", prepare(settings), settings, pieces=2, method="contiguous").starts[-1]
    40
    """
    refuse_unsupported(prepared.problem.task)
    writer = Writer(path)
    problem, graph = prepared.problem, prepared.problem.graph
    indptr, indices = graph.indptr.numpy(), graph.indices.numpy()
    count = default_pieces(graph.num_nodes, graph.num_edges) if pieces is None else pieces
    numbering = Numbering.of(assign(indptr, indices, count, method, seed), count)
    edges = _edges(graph, numbering, ricci)
    for number, low, high in numbering:
        writer.piece(number, edges.piece(low, high))
        writer.piece(number, _features(problem.inputs, numbering.order[low:high]))
        writer.piece(number, _parts(problem, numbering, low, high))
    ids = node_ids(prepared.dataset)[numbering.order]
    writer.array("ids", ids.astype(str) if ids.dtype == object else ids)
    _write_inputs(writer, prepared, settings)
    facts = {
        "data": prepared.dataset.name,
        "data_hash": prepared.dataset.hash,
        "split": problem.split_name,
        "split_hash": problem.split_hash,
        "parts": {name: part.size for name, part in problem.parts.items()},
        "task": settings.task.name,
        "settings": {name: value for name, value in settings.to_dict().items() if name in FIXED},
        "given": {name: value for name, value in settings.given.items() if name in FIXED},
        "dtype": settings.run.dtype,
        "in_features": int(problem.inputs.shape[1]),
        "feature_bytes": _feature_bytes(problem.inputs),
        "edges": graph.num_edges,
        "starts": numbering.starts.tolist(),
        "edges_of": edges.counts(numbering),
        "method": method,
        "ricci": ricci,
        "protocol": getattr(problem.extra, "protocol", None),
        "versions": versions(),
    }
    return writer.finish(facts)


FIXED = ("data", "preprocessing", "task")
"""Sections of the settings that a partition decides; a run on it takes them from there."""


@dataclass(frozen=True)
class _Edges:
    """Edges in the new numbering, with what belongs to each and to its ends."""

    indptr: Array
    indices: Array
    weights: Array | None
    curvature: Array | None
    degrees: Array
    loops: Array

    def piece(self, low: int, high: int) -> dict[str, Array | None]:
        first, last = self.indptr[low], self.indptr[high]
        indptr, indices, halo, order = local_pattern(self.indptr[low : high + 1], self.indices[first:last], low, high)
        rows = np.concatenate([np.arange(low, high), halo])
        return {
            "indptr": indptr,
            "indices": indices,
            "halo": halo,
            "weights": None if self.weights is None else self.weights[first:last][order],
            "curvature": None if self.curvature is None else self.curvature[first:last][order],
            "degrees": self.degrees[:, rows],
            "loops": self.loops[rows],
        }

    def counts(self, numbering: Numbering) -> list[int]:
        return [int(self.indptr[high] - self.indptr[low]) for _, low, high in numbering]


def _edges(graph: Graph, numbering: Numbering, ricci: float | None) -> _Edges:
    from hgde.diffusion.degrees import degrees, missing_loops

    rows, columns = numbering.new[graph.rows.numpy()], numbering.new[graph.indices.numpy()]
    order = np.lexsort((columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=graph.num_nodes))])
    curvature = None
    if ricci is not None:
        from hgde.graph.measures.ricci import ollivier_ricci

        curvature = ollivier_ricci(graph, alpha=ricci, cache=True).numpy()[order]
    sums = np.stack([part.numpy() for part in degrees(graph)])[:, numbering.order]
    return _Edges(
        indptr,
        columns[order],
        None if graph.weights is None else graph.weights.numpy()[order],
        curvature,
        sums,
        ~missing_loops(graph).numpy()[numbering.order],
    )


def _features(features: Features, rows: Array) -> dict[str, Array | None]:
    if isinstance(features, SparseFeatures):
        some = features.select(torch.from_numpy(rows))
        return {
            "features_indptr": some.indptr.numpy(),
            "features_indices": some.indices.numpy(),
            "features_values": some.values.numpy(),
        }
    return {"features": features[torch.from_numpy(rows)].numpy()}


def _feature_bytes(features: Features) -> int:
    if isinstance(features, SparseFeatures):
        return 24 * features.values.numel() + 8 * features.shape[0]
    return features.numel() * features.element_size()


def _parts(problem: Problem, numbering: Numbering, low: int, high: int) -> dict[str, Array | None]:
    arrays: dict[str, Array | None] = {}
    for name, part in problem.parts.items():
        cut = _pairs if problem.task.kind == PAIRS else _nodes
        items, chosen = cut(part, numbering.new, low, high)
        arrays[f"{name}_items"] = items
        arrays[f"{name}_truth"] = part.truth.numpy()[chosen]
        arrays[f"{name}_weights"] = None if part.weights is None else part.weights.numpy()[chosen]
    if problem.task.kind == PAIRS:
        arrays |= _forbidden(problem.extra.forbidden.numpy(), numbering, low, high)
    return arrays


def _nodes(part: Part, new: Array, low: int, high: int) -> tuple[Array, Array]:
    """A piece's items by its own row numbers, and their places in the part."""
    at = new[part.items.numpy()]
    chosen = np.flatnonzero((at >= low) & (at < high))
    chosen = chosen[np.argsort(at[chosen], kind="stable")]
    return at[chosen] - low, chosen


def _pairs(part: Part, new: Array, low: int, high: int) -> tuple[Array, Array]:
    """A piece's pairs as (own row, number of the other node). A pair belongs to its lower end if the ends' sum is even,
    else to its higher one, so that the first pieces do not get all of them."""
    ends = np.sort(new[part.items.numpy()], axis=0)
    even = (ends[0] + ends[1]) % 2 == 0
    own, other = np.where(even, ends[0], ends[1]), np.where(even, ends[1], ends[0])
    chosen = np.flatnonzero((own >= low) & (own < high))
    return np.stack([own[chosen] - low, other[chosen]]), chosen


def _forbidden(keys: Array, numbering: Numbering, low: int, high: int) -> dict[str, Array | None]:
    """Pairs that are no negatives, as a CSR pattern over the piece's own rows."""
    nodes = max(len(numbering.order), 1)
    ends = numbering.new[np.stack([keys // nodes, keys % nodes])]
    own, other = np.concatenate([ends[0], ends[1]]), np.concatenate([ends[1], ends[0]])
    inside = (own >= low) & (own < high)
    pairs = np.unique((own[inside] - low) * nodes + other[inside])
    return {"forbidden": pairs}


def _write_inputs(writer: Writer, prepared: Prepared, settings: Settings) -> None:
    described, tensors = prepared.preprocessor.state()
    meta: dict[str, Any] = {"task": {"name": settings.task.name, "fitted": prepared.problem.task.fitted()}}
    checkpoint.save(writer.path / "inputs.safetensors", tensors, meta | {"preprocessing": described})
    writer.known("inputs.safetensors")
