"""What the compiled passes need to know about a graph or a sparse matrix, worked out once for its tensors."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from hgde.kernels.cpu.sizes import strip_rows

MAX_BLOCKS = 64
MOST = 2**31 - 1
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Transposed:
    """A pattern by columns: CSR ``start, rows``, the entries' places by row, and blocks of columns."""

    start: Tensor
    rows: Tensor
    order: Tensor
    blocks: Tensor


@dataclass(frozen=True, eq=False)
class Mutual:
    """A pattern in which every entry ``(i, j)`` has its reverse ``(j, i)``: the row of each entry, and the place of its
    reverse. Both are empty where some entry has none."""

    rows: Tensor
    reverse: Tensor

    def __bool__(self) -> bool:
        return self.rows.numel() > 0


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
        self._mutual: Mutual | None = None
        self._most: dict[int, int] = {}

    def is_of(self, indptr: Tensor, indices: Tensor) -> bool:
        """Whether the pattern is this one."""
        sizes = (indptr.numel(), indices.numel()) == (self.indptr.numel(), self.indices.numel())
        return sizes and torch.equal(self.indptr, indptr) and torch.equal(self.indices, indices)

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

    def mutual(self) -> Mutual:
        """The reverse of each edge, worked out at its first use."""
        if self._mutual is None:
            indptr, indices = self._wide
            start, rows, order = self._by_column(len(indptr) - 1)
            given = np.array_equal(start, indptr) and np.array_equal(rows, indices)
            receivers = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) if given else rows[:0]
            self._mutual = Mutual(_narrow(receivers), _narrow(order[: len(receivers)]))
        return self._mutual

    def most_in_strip(self, width: int) -> int:
        """The most edges that a strip of rows has, where strips are those of this width."""
        rows = strip_rows(width)
        if rows not in self._most:
            indptr, blocks = self._wide[0], self.blocks.numpy()
            cuts = [np.append(np.arange(low, high, rows), high) for low, high in pairwise(blocks)]
            self._most[rows] = max((int(np.diff(indptr[cut]).max(initial=0)) for cut in cuts), default=0)
        return self._most[rows]


def _narrow(array: Array) -> Tensor:
    return torch.from_numpy(array.astype(np.int32))


_layouts: WeakIdKeyDictionary = WeakIdKeyDictionary()
#: The last ones. A compiled program makes the tensors of the same graph anew at every call.
_recent: deque[Layout] = deque(maxlen=2)
_narrowed: WeakIdKeyDictionary = WeakIdKeyDictionary()
_reversed: WeakIdKeyDictionary = WeakIdKeyDictionary()


def layout_of(indptr: Tensor, indices: Tensor) -> Layout:
    """The layout of a CSR pattern, remembered as long as its ``indices`` live."""
    found: tuple[int, Layout] | None = _layouts.get(indices)
    if found is None or found[0] != indices._version:
        equal = (layout for layout in tuple(_recent) if layout.is_of(indptr, indices))
        layout = next(equal, None)
        if layout is None:
            layout = Layout(indptr.detach(), indices.detach())
            _recent.append(layout)
        found = _layouts[indices] = (indices._version, layout)
    return found[1]


def narrowed(index: Tensor) -> Tensor:
    """A tensor of whole numbers with 32 bits, remembered as long as it lives."""
    found: tuple[int, Tensor] | None = _narrowed.get(index)
    if found is None or found[0] != index._version:
        found = _narrowed[index] = (index._version, index.detach().to(torch.int32).contiguous())
    return found[1]


def reversed_values(values: Tensor, pattern: Mutual) -> Tensor:
    """For each edge the value of its reverse, remembered as long as the values live."""
    found: tuple[int, Mutual, Tensor] | None = _reversed.get(values)
    if found is None or found[0] != values._version or found[1] is not pattern:
        known = values.detach().numpy()
        there = known[pattern.reverse.numpy()]
        # Often the same; two arrays would take the place of one in the cache.
        same = np.array_equal(there, known)
        found = (values._version, pattern, torch.from_numpy(known if same else there))
        _reversed[values] = found
    return found[2]


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
