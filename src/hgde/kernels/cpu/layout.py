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

from hgde.kernels.cpu.attached import Attached
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
class Rows:
    """Some rows of a pattern, the blocks they are worked in, and by columns the entries that are in them."""

    rows: Tensor
    blocks: Tensor
    columns: Transposed


class Layout:
    """Narrow indices of a CSR pattern and the blocks its rows are worked in: a part of the edges each, whatever the
    number of threads."""

    def __init__(self, indptr: Tensor, indices: Tensor) -> None:
        if indices.numel() >= MOST or indptr.numel() >= MOST:
            raise ValueError(
                f"the compiled kernels number edges with 32 bits, got {indices.numel()} edges; use backend='reference'"
            )
        self._wide = indptr.numpy(), indices.numpy()
        self.indptr, self.indices = (narrow(array) for array in self._wide)
        self.blocks = row_blocks(self._wide[0])
        self.num_blocks, self.num_entries = self.blocks.numel() - 1, self.indices.numel()
        self._transposed: Transposed | None = None
        self._owners: Tensor | None = None
        self._reverse: Tensor | None = None
        self._most: dict[tuple[int, tuple[int, ...]], int] = {}
        self._stages: dict[tuple[int, ...], Tensor] = {}
        self._rows: Attached[Rows] = Attached()

    def is_of(self, indptr: Tensor, indices: Tensor) -> bool:
        """Whether the pattern is this one."""
        sizes = (indptr.numel(), indices.numel()) == (self.indptr.numel(), self.indices.numel())
        return sizes and torch.equal(self.indptr, indptr) and torch.equal(self.indices, indices)

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
            self._transposed = Transposed(narrow(start), narrow(rows), narrow(order), row_blocks(start))
        return self._transposed

    def chosen(self, rows: Tensor | None, columns: int) -> Rows:
        """Some rows, or all, remembered as long as the tensor that names them lives."""
        key = self.indices if rows is None else rows
        found = self._rows.get(key)
        return self._rows.put(key, self._chosen(rows, columns)) if found is None else found

    def _chosen(self, rows: Tensor | None, columns: int) -> Rows:
        by, indptr = self.transposed(columns), self._wide[0]
        if rows is None:
            return Rows(narrow(np.arange(len(indptr) - 1)), self.blocks, by)
        wanted = rows.numpy()
        place = np.full(len(indptr) - 1, -1)
        place[wanted] = np.arange(len(wanted))
        start, there = by.start.numpy(), place[by.rows.numpy()]
        kept = there >= 0
        start = np.concatenate([[0], np.cumsum(kept)])[start]
        within = Transposed(narrow(start), narrow(there[kept]), by.order[torch.from_numpy(kept)], row_blocks(start))
        lengths = np.concatenate([[0], np.cumsum(np.diff(indptr)[wanted])])
        return Rows(narrow(wanted), row_blocks(lengths), within)

    @property
    def owners(self) -> Tensor:
        """The row of each entry, worked out at its first use."""
        if self._owners is None:
            indptr = self._wide[0]
            self._owners = narrow(np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr)))
        return self._owners

    @property
    def reverse(self) -> Tensor | None:
        """The place of each entry's reverse, worked out at its first use; none where some entry has none."""
        if self._reverse is None:
            indptr, indices = self._wide
            start, rows, order = self._by_column(len(indptr) - 1)
            is_mutual = np.array_equal(start, indptr) and np.array_equal(rows, indices)
            self._reverse = narrow(order if is_mutual else order[:0])
        return self._reverse if self._reverse.numel() == self.num_entries else None

    def stages(self, counts: tuple[int, ...]) -> Tensor:
        """For each of some counts the blocks in which that many rows, the first, are worked, as many as there are of
        all rows: ``[len(counts), num_blocks + 1]``. Without counts, the blocks of all rows."""
        if not counts:
            return self.blocks
        if counts not in self._stages:
            indptr, ends = self._wide[0], self.num_blocks + 1
            cuts = [row_blocks(indptr[: count + 1]).numpy() for count in counts]
            lines = [np.pad(cut, (0, ends - len(cut)), mode="edge") for cut in cuts]
            self._stages[counts] = torch.from_numpy(np.stack(lines))
        return self._stages[counts]

    def most_in_strip(self, width: int, counts: tuple[int, ...] = ()) -> int:
        """The most edges that a strip of rows has, where strips are those of this width and of these stages."""
        rows = strip_rows(width)
        if (rows, counts) not in self._most:
            indptr, most = self._wide[0], 0
            for blocks in self.stages(counts).numpy().reshape(-1, self.num_blocks + 1):
                cuts = [np.append(np.arange(low, high, rows), high) for low, high in pairwise(blocks)]
                most = max((most, *(int(np.diff(indptr[cut]).max(initial=0)) for cut in cuts)))
            self._most[rows, counts] = most
        return self._most[rows, counts]


def narrow(array: Array) -> Tensor:
    """Whole numbers with 32 bits."""
    return torch.from_numpy(array.astype(np.int32))


_layouts: Attached[Layout] = Attached()
#: The last ones. A compiled program makes the tensors of the same graph anew at every call.
_recent: deque[Layout] = deque(maxlen=2)
_narrowed: Attached[Tensor] = Attached()
_reversed: Attached[tuple[Tensor, Tensor]] = Attached()


def layout_of(indptr: Tensor, indices: Tensor) -> Layout:
    """The layout of a CSR pattern, remembered as long as its ``indices`` live."""
    layout = _layouts.get(indices)
    if layout is not None:
        return layout
    layout = next((recent for recent in tuple(_recent) if recent.is_of(indptr, indices)), None)
    if layout is None:
        layout = Layout(indptr.detach(), indices.detach())
        _recent.append(layout)
    return _layouts.put(indices, layout)


def laid_out(indptr: Array, indices: Array, reverse: Tensor) -> tuple[Tensor, Tensor]:
    """A pattern in which every entry has its reverse, rows in any order, with 32 bits; :func:`layout_of` knows it."""
    made = Layout(torch.from_numpy(indptr), torch.from_numpy(indices))
    made._reverse = reverse
    made._transposed = Transposed(made.indptr, made.indices, reverse, made.blocks)
    handle = made.indices.detach()  # another object than the layout's own, which would keep itself alive
    _layouts.put(handle, made)
    return made.indptr, handle


def narrowed(index: Tensor) -> Tensor:
    """A tensor of whole numbers with 32 bits, remembered as long as it lives."""
    found = _narrowed.get(index)
    return _narrowed.put(index, index.detach().to(torch.int32).contiguous()) if found is None else found


def reversed_values(values: Tensor, reverse: Tensor) -> Tensor:
    """For each edge the value of its ``reverse``, remembered as long as the values live."""
    found = _reversed.get(values)
    if found is None or found[0] is not reverse:
        known = values.detach()
        there = known[reverse]
        # Often they are the same; two arrays would take twice the place in the cache.
        found = _reversed.put(values, (reverse, known if torch.equal(there, known) else there))
    return found[1]


def row_blocks(indptr: Array) -> Tensor:
    """Boundaries of at most :data:`MAX_BLOCKS` runs of rows with about equal work (edges, and a few for the row)."""
    rows = len(indptr) - 1
    count = max(1, min(MAX_BLOCKS, rows // 128))
    work = indptr.astype(np.int64) + 4 * np.arange(rows + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], count + 1))
    cuts[0], cuts[-1] = 0, rows
    return narrow(np.maximum.accumulate(cuts))


@lru_cache(maxsize=32)
def even_blocks(rows: int) -> Tensor:
    """Blocks of rows that all take the same work."""
    return row_blocks(np.zeros(rows + 1, np.int64))
