"""What the compiled passes need to know about a graph or a sparse matrix, worked out once for its tensors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

MAX_BLOCKS = 64
MOST = 2**31 - 1
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Around:
    """All neighbours of each node: CSR ``start, neighbours``, the edge's place in either direction, blocks of nodes.

    ``arriving, leaving [P]`` are places among the graph's edges, -1 where there is none; equal numbers of parallel
    edges are paired.
    """

    start: Tensor
    neighbours: Tensor
    arriving: Tensor
    leaving: Tensor
    blocks: Tensor


@dataclass(frozen=True, eq=False)
class Transposed:
    """A pattern by columns: CSR ``start, rows``, the entries' places by row, and blocks of columns."""

    start: Tensor
    rows: Tensor
    order: Tensor
    blocks: Tensor


class Layout:
    """Narrow indices of a CSR pattern and the blocks its rows are worked in: a part of the edges each, whatever the
    number of threads."""

    def __init__(self, indptr: Tensor, indices: Tensor) -> None:
        if indices.numel() >= MOST or indptr.numel() >= MOST:
            raise ValueError(
                f"the compiled kernels number edges with 32 bits, got {indices.numel()} edges; use backend='reference'"
            )
        self._wide = indptr.numpy(), indices.numpy()
        self.indptr, self.indices = indptr.to(torch.int32), indices.to(torch.int32)
        self.blocks = row_blocks(self._wide[0])
        self._transposed: Transposed | None = None

    @property
    def num_blocks(self) -> int:
        return self.blocks.numel() - 1

    def _by_column(self, columns: int) -> tuple[Array, Array, Array]:
        """The same entries grouped by column: ``(indptr, rows, order)``, sorted by row within a column."""
        indptr, indices = self._wide
        order = np.argsort(indices, kind="stable")
        start = np.zeros(columns + 1, np.int64)
        start[1:] = np.cumsum(np.bincount(indices, minlength=columns)[:columns])
        return start, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[order], order

    def transposed(self, columns: int) -> Transposed:
        """The pattern by columns, worked out at its first use."""
        if self._transposed is None:
            start, rows, order = self._by_column(columns)
            self._transposed = Transposed(_narrow(start), _narrow(rows), _narrow(order), row_blocks(start))
        return self._transposed

    @cached_property
    def around(self) -> Around:
        """The neighbours of every node, of a square pattern; the first use costs a sort of the edges."""
        indptr, indices = self._wide
        start, targets, order = self._by_column(len(indptr) - 1)
        edges = np.arange(len(indices))
        if np.array_equal(start, indptr) and np.array_equal(targets, indices):
            return Around(self.indptr, self.indices, _narrow(edges), _narrow(order), self.blocks)
        nodes = max(len(indptr) - 1, 1)
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        owner = np.repeat(np.arange(len(indptr) - 1), np.diff(start))
        in_key, out_key = rows * nodes + indices, owner * nodes + targets
        in_name, out_name = np.stack([in_key, _copies(in_key)], 1), np.stack([out_key, _copies(out_key)], 1)
        names, place = np.unique(np.concatenate([in_name, out_name]), axis=0, return_inverse=True)
        place = place.reshape(-1)
        arriving, leaving = np.full(len(names), -1), np.full(len(names), -1)
        arriving[place[: len(in_name)]] = edges
        leaving[place[len(in_name) :]] = order
        node, neighbour = names[:, 0] // nodes, names[:, 0] % nodes
        begin = np.zeros(len(indptr), np.int64)
        begin[1:] = np.cumsum(np.bincount(node, minlength=len(indptr) - 1))
        return Around(_narrow(begin), _narrow(neighbour), _narrow(arriving), _narrow(leaving), row_blocks(begin))


def _narrow(array: Array) -> Tensor:
    return torch.from_numpy(array.astype(np.int32))


_layouts: WeakIdKeyDictionary = WeakIdKeyDictionary()
_narrowed: WeakIdKeyDictionary = WeakIdKeyDictionary()


def layout_of(indptr: Tensor, indices: Tensor) -> Layout:
    """The layout of a CSR pattern, remembered as long as its ``indices`` live."""
    found: tuple[int, Layout] | None = _layouts.get(indices)
    if found is None or found[0] != indices._version:
        found = _layouts[indices] = (indices._version, Layout(indptr.detach(), indices.detach()))
    return found[1]


def narrowed(index: Tensor) -> Tensor:
    """A tensor of whole numbers with 32 bits, remembered as long as it lives."""
    found: tuple[int, Tensor] | None = _narrowed.get(index)
    if found is None or found[0] != index._version:
        found = _narrowed[index] = (index._version, index.detach().to(torch.int32).contiguous())
    return found[1]


def row_blocks(indptr: Array) -> Tensor:
    """Boundaries of at most :data:`MAX_BLOCKS` runs of rows with about equal work (edges, and a few for the row)."""
    rows = len(indptr) - 1
    count = max(1, min(MAX_BLOCKS, rows // 128))
    work = indptr.astype(np.int64) + 4 * np.arange(rows + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], count + 1))
    cuts[0], cuts[-1] = 0, rows
    return _narrow(np.maximum.accumulate(cuts))


@lru_cache(maxsize=32)
def even_blocks(rows: int) -> Tensor:
    """Blocks of rows that all take the same work."""
    return row_blocks(np.zeros(rows + 1, np.int64))


def _copies(key: Array) -> Array:
    """For sorted keys, how many equal ones come before each."""
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.zeros(0, np.int64)
    return np.arange(len(key)) - np.repeat(start, np.diff(np.append(start, len(key))))
