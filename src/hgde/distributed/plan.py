"""Which rows go where: pieces ask for rows of others by their number and get them; gradients take the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hgde.distributed.ranks import Ranks
from hgde.graph import SparseFeatures
from hgde.kernels import sparse_matmul


@dataclass(frozen=True)
class Cut:
    """Nodes ``0 .. N - 1`` in contiguous pieces, pieces in contiguous runs: ``starts [pieces + 1]``, one run per rank.

    >>> cut = Cut((0, 10, 20, 25), ranks=2)
    >>> cut.pieces_of(0), cut.pieces_of(1), cut.rows_of(1)
    (range(0, 1), range(1, 3), (10, 25))
    """

    starts: tuple[int, ...]
    ranks: int

    @property
    def num_pieces(self) -> int:
        return len(self.starts) - 1

    def pieces_of(self, rank: int) -> range:
        return range(self.num_pieces * rank // self.ranks, self.num_pieces * (rank + 1) // self.ranks)

    def rows_of(self, rank: int) -> tuple[int, int]:
        pieces = self.pieces_of(rank)
        return self.starts[pieces.start], self.starts[pieces.stop]

    def rank_starts(self) -> Tensor:
        return torch.tensor([self.rows_of(rank)[0] for rank in range(self.ranks)] + [self.starts[-1]])

    def counts(self) -> list[int]:
        """How many pieces each rank has."""
        return [len(self.pieces_of(rank)) for rank in range(self.ranks)]


class Plan:
    """Rows that the pieces of this rank need from others, and who needs rows of ours.

    Forward, a row that several pieces of a rank need is sent to it once. Backward, every piece that used a row sends
    its gradient to the row's owner, and the owner adds them in the order of the pieces: the same sum, to the bit, on
    any number of ranks. Gradients of different pieces must not be added before they are sent, for that would be
    another order.

    Args:
        wanted: for each piece of this rank the numbers of the rows it asks for, ascending, none twice, none its own.
    """

    def __init__(self, ranks: Ranks, cut: Cut, wanted: Mapping[int, Tensor]) -> None:
        self.ranks, self.cut = ranks, cut
        self.low, self.high = cut.rows_of(ranks.rank)
        self._forward(wanted)
        self._backward(wanted)

    def _forward(self, wanted: Mapping[int, Tensor]) -> None:
        own, every = self.high - self.low, torch.cat([*wanted.values(), torch.zeros(0, dtype=torch.int64)])
        remote = torch.unique(every[(every < self.low) | (every >= self.high)])
        self.receive = _per_rank(remote, self.cut)
        self.send = _swapped(self.ranks, self.receive)
        asked = self.ranks.exchange(remote, self.receive, self.send)()
        self.outgoing = asked - self.low
        #: Where each piece finds its rows among those of the rank followed by those received.
        self.places = {
            piece: torch.where(self._is_here(ids), ids - self.low, own + torch.searchsorted(remote, ids))
            for piece, ids in wanted.items()
        }
        self.remote = len(remote)
        self._is_local = {piece: bool(self._is_here(ids).all()) for piece, ids in wanted.items()}

    def _is_here(self, ids: Tensor) -> Tensor:
        return (ids >= self.low) & (ids < self.high)

    def _backward(self, wanted: Mapping[int, Tensor]) -> None:
        rank_starts = self.cut.rank_starts()
        pieces = list(wanted)
        ids = torch.cat([*wanted.values(), torch.zeros(0, dtype=torch.int64)])
        owner = torch.searchsorted(rank_starts, ids, right=True) - 1
        elsewhere = (owner != self.ranks.rank).nonzero().squeeze(1)
        # Stable: within a destination, in the order of the pieces.
        order = elsewhere[torch.argsort(owner[elsewhere], stable=True)]
        self.returned = order
        counts = torch.bincount(owner[order], minlength=self.ranks.size)
        self.back_send = counts.tolist()
        self.back_receive = _swapped(self.ranks, self.back_send)
        targets = self.ranks.exchange(ids[order], self.back_send, self.back_receive)()
        here = (owner == self.ranks.rank).nonzero().squeeze(1)
        own, local = self.high - self.low, len(here)
        self.kept = here
        before = sum(self.back_receive[: self.ranks.rank])
        # Contributions are stacked as [own rows, kept here, received]; a row adds its own, then those of lower ranks,
        # this one and higher ranks, which is the order of the pieces.
        sequence = torch.cat(
            [
                torch.arange(own),
                own + local + torch.arange(before),
                own + torch.arange(local),
                own + local + torch.arange(before, len(targets)),
            ]
        )
        rows = torch.cat(
            [
                torch.arange(own),
                targets[:before] - self.low,
                ids[here] - self.low,
                targets[before:] - self.low,
            ]
        )
        by_row = torch.argsort(rows, stable=True)
        indptr = torch.zeros(own + 1, dtype=torch.int64)
        indptr[1:] = torch.cumsum(torch.bincount(rows, minlength=own), 0)
        self._sum = (indptr, sequence[by_row], (own, own + local + len(targets)))
        self._pattern: dict[torch.dtype, SparseFeatures] = {}
        self.sizes = {piece: len(wanted[piece]) for piece in pieces}

    def spread(self, rows: dict[int, Tensor]) -> Iterator[tuple[int, Tensor]]:
        """Each piece's own rows followed by those it asked for; pieces that need nothing from afar go on first."""
        pieces = sorted(rows)
        pool = torch.cat([rows[piece] for piece in pieces])
        wait = self.ranks.exchange(pool.index_select(0, self.outgoing), self.send, self.receive)
        for piece in pieces:
            if self._is_local[piece]:
                yield piece, torch.cat([rows[piece], pool.index_select(0, self.places[piece])])
        if all(self._is_local.values()):
            wait()
            return
        pool = torch.cat([pool, wait()])
        for piece in pieces:
            if not self._is_local[piece]:
                yield piece, torch.cat([rows[piece], pool.index_select(0, self.places[piece])])

    def collect(self, gradients: dict[int, Tensor]) -> Iterator[tuple[int, Tensor]]:
        """The gradient of each piece's own rows, from those of own and asked-for rows of every piece."""
        pieces = sorted(gradients)
        asked = {piece: len(gradients[piece]) - self.sizes[piece] for piece in pieces}
        halo = torch.cat([gradients[piece][asked[piece] :] for piece in pieces])
        wait = self.ranks.exchange(halo.index_select(0, self.returned), self.back_send, self.back_receive)
        own = [gradients[piece][: asked[piece]] for piece in pieces]
        stacked = torch.cat([*own, halo.index_select(0, self.kept), wait()])
        total = sparse_matmul(self._summing(stacked.dtype), stacked)
        first = 0
        for piece in pieces:
            yield piece, total[first : first + asked[piece]]
            first += asked[piece]

    def _summing(self, dtype: torch.dtype) -> SparseFeatures:
        if dtype not in self._pattern:
            indptr, indices, shape = self._sum
            self._pattern[dtype] = SparseFeatures(indptr, indices, torch.ones(len(indices), dtype=dtype), shape)
        return self._pattern[dtype]


def _per_rank(ids: Tensor, cut: Cut) -> list[int]:
    """How many of the ascending numbers belong to each rank."""
    places = torch.searchsorted(ids, cut.rank_starts())
    counts: list[int] = places.diff().tolist()
    return counts


def _swapped(ranks: Ranks, counts: Sequence[int]) -> list[int]:
    """What every rank has for this one, from what this one has for every rank."""
    ones = [1] * ranks.size
    received: list[int] = ranks.exchange(torch.tensor(counts), ones, ones)().tolist()
    return received


def piece_of(ids: Tensor, starts: Sequence[int]) -> Tensor:
    """The piece that each node belongs to."""
    return torch.searchsorted(torch.from_numpy(np.asarray(starts[1:], dtype=np.int64)), ids, right=True)
