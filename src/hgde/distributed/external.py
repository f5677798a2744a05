"""A CSR pattern built on disk from edges that come in chunks, in any order, listed any number of times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BUCKET_EDGES = 20_000_000
"""Edges that are sorted in memory at once, about a gigabyte."""


@dataclass(frozen=True)
class DiskEdges:
    """``indptr [N + 1]`` in memory, ``indices`` mapped; rows hold the nodes that a node receives from, ascending."""

    indptr: Array
    indices: Array
    leaving: Array

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    def rows(self, nodes: Array) -> tuple[Array, Array]:
        """The pattern of some rows, ``(indptr, columns)``; a run of nodes is read as one."""
        count = self.indptr[nodes + 1] - self.indptr[nodes]
        indptr = np.concatenate([[0], np.cumsum(count)])
        if len(nodes) and nodes[-1] - nodes[0] + 1 == len(nodes) and bool((np.diff(nodes) == 1).all()):
            return indptr, np.asarray(self.indices[self.indptr[nodes[0]] : self.indptr[nodes[-1] + 1]], dtype=np.int64)
        places = np.repeat(self.indptr[nodes] - indptr[:-1], count) + np.arange(indptr[-1])
        return indptr, self.indices[places].astype(np.int64)


def build(
    chunks: Iterable[tuple[Array, Array]], num_nodes: int, num_edges: int, folder: Path, *, directed: bool = False
) -> DiskEdges:
    """Bring edges ``(sources, targets)`` into rows, each edge once, loops left out, both directions unless directed.

    Cost: the edges are written and read twice; memory for one bucket of them. ``num_edges`` is an estimate that
    decides the number of buckets.
    """
    folder.mkdir(parents=True, exist_ok=True)
    buckets = max(1, -(-num_edges * (1 if directed else 2) // BUCKET_EDGES))
    size = -(-num_nodes // buckets)
    files = [(folder / f"bucket-{k}.bin").open("wb") for k in range(buckets)]
    try:
        for source, target in chunks:
            ways = [(source, target)] if directed else [(source, target), (target, source)]
            for sender, receiver in ways:
                keep = sender != receiver
                key = receiver[keep].astype(np.int64) * num_nodes + sender[keep]
                bucket = receiver[keep] // size
                order = np.argsort(bucket, kind="stable")
                ends = np.searchsorted(bucket[order], np.arange(buckets + 1))
                for k in range(buckets):
                    key[order[ends[k] : ends[k + 1]]].tofile(files[k])
    finally:
        for file in files:
            file.close()
    return _merge(folder, buckets, num_nodes)


def _merge(folder: Path, buckets: int, num_nodes: int) -> DiskEdges:
    kind = np.int32 if num_nodes < 2**31 else np.int64
    arriving, leaving = np.zeros(num_nodes, np.int64), np.zeros(num_nodes, np.int64)
    place = folder / "indices.bin"
    with place.open("wb") as out:
        for k in range(buckets):
            path = folder / f"bucket-{k}.bin"
            key = np.unique(np.fromfile(path, dtype=np.int64))
            path.unlink()
            row, column = np.divmod(key, num_nodes)
            arriving += np.bincount(row, minlength=num_nodes)
            leaving += np.bincount(column, minlength=num_nodes)
            column.astype(kind).tofile(out)
    indptr = np.concatenate([[0], np.cumsum(arriving)])
    indices = np.memmap(place, dtype=kind, mode="r") if indptr[-1] else np.zeros(0, kind)
    return DiskEdges(indptr, indices, leaving)
