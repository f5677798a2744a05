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
    another order. Rows that no other piece needs are never copied together: those that travel are the *lent* ones.

    Args:
        wanted: for each piece of this rank the numbers of the rows it asks for, ascending, none twice, none its own.
    """

    def __init__(self, ranks: Ranks, cut: Cut, wanted: Mapping[int, Tensor]) -> None:
        self.ranks, self.cut = ranks, cut
        low, high = cut.rows_of(ranks.rank)
        ids = torch.cat([*wanted.values(), torch.zeros(0, dtype=torch.int64)])
        here = (ids >= low) & (ids < high)
        remote = torch.unique(ids[~here])
        self.receive = _per_rank(remote, cut)
        self.send = _swapped(ranks, self.receive)
        asked = ranks.exchange(remote, self.receive, self.send)()
        lent = torch.unique(torch.cat([ids[here], asked]))
        #: The own rows of each piece that others need, ascending.
        self.lent = {piece: _between(lent, cut.starts[piece], cut.starts[piece + 1]) for piece in wanted}
        self.outgoing = torch.searchsorted(lent, asked)
        place = torch.where(here, torch.searchsorted(lent, ids), len(lent) + torch.searchsorted(remote, ids))
        self.sizes = {piece: len(rows) for piece, rows in wanted.items()}
        #: Where each piece finds its rows among the lent ones of the rank followed by those received.
        self.places = dict(zip(wanted, place.split(list(self.sizes.values())), strict=True))
        self._is_local = {piece: bool(some.all()) for piece, some in self._by_piece(here)}
        self._backward(ids, here, lent)

    def _by_piece(self, values: Tensor) -> Iterator[tuple[int, Tensor]]:
        return zip(self.sizes, values.split(list(self.sizes.values())), strict=True)

    def _backward(self, ids: Tensor, here: Tensor, lent: Tensor) -> None:
        rank = self.ranks.rank
        owner = torch.searchsorted(self.cut.rank_starts(), ids, right=True) - 1
        elsewhere = (~here).nonzero().squeeze(1)
        # Stable: within a destination, in the order of the pieces.
        self.returned = elsewhere[torch.argsort(owner[elsewhere], stable=True)]
        self.back_send = torch.bincount(owner[self.returned], minlength=self.ranks.size).tolist()
        self.back_receive = _swapped(self.ranks, self.back_send)
        targets = self.ranks.exchange(ids[self.returned], self.back_send, self.back_receive)()
        self.kept = here.nonzero().squeeze(1)
        own, local, before = len(lent), len(self.kept), sum(self.back_receive[:rank])
        # Contributions are stacked as [lent rows, kept here, received]; a row adds its own, then those of lower ranks,
        # this one and higher ranks, which is the order of the pieces.
        sequence = torch.cat(
            [
                torch.arange(own),
                own + local + torch.arange(before),
                own + torch.arange(local),
                own + local + torch.arange(before, len(targets)),
            ]
        )
        rows = torch.searchsorted(lent, torch.cat([lent, targets[:before], ids[self.kept], targets[before:]]))
        by_row = torch.argsort(rows, stable=True)
        indptr = torch.zeros(own + 1, dtype=torch.int64)
        indptr[1:] = torch.cumsum(torch.bincount(rows, minlength=own), 0)
        self._sum = (indptr, sequence[by_row], (own, own + local + len(targets)))
        self._pattern: dict[torch.dtype, SparseFeatures] = {}

    def spread(self, rows: dict[int, Tensor]) -> Iterator[tuple[int, Tensor]]:
        """Each piece's own rows followed by those it asked for; pieces that need nothing from afar go on first."""
        pool = self._lent_of(rows)
        wait = self.ranks.exchange(pool.index_select(0, self.outgoing), self.send, self.receive)
        for piece in sorted(rows):
            if self._is_local[piece]:
                yield piece, torch.cat([rows.pop(piece), pool.index_select(0, self.places[piece])])
        pool = torch.cat([pool, wait()])
        for piece in sorted(rows):
            yield piece, torch.cat([rows.pop(piece), pool.index_select(0, self.places[piece])])

    def collect(self, gradients: dict[int, Tensor]) -> Iterator[tuple[int, Tensor]]:
        """The gradient of each piece's own rows, from those of own and asked-for rows of every piece."""
        pieces = sorted(gradients)
        own = {piece: len(gradients[piece]) - self.sizes[piece] for piece in pieces}
        halo = torch.cat([gradients[piece][own[piece] :] for piece in pieces])
        wait = self.ranks.exchange(halo.index_select(0, self.returned), self.back_send, self.back_receive)
        stacked = torch.cat([self._lent_of(gradients), halo.index_select(0, self.kept), wait()])
        total = sparse_matmul(self._summing(stacked.dtype), stacked)
        sums = dict(zip(pieces, total.split([len(self.lent[piece]) for piece in pieces]), strict=True))
        for piece in pieces:
            mine = gradients.pop(piece)[: own[piece]].clone()
            yield piece, mine.index_copy_(0, self.lent[piece], sums[piece])

    def _lent_of(self, rows: Mapping[int, Tensor]) -> Tensor:
        return torch.cat([rows[piece].index_select(0, self.lent[piece]) for piece in sorted(rows)])

    def _summing(self, dtype: torch.dtype) -> SparseFeatures:
        if dtype not in self._pattern:
            indptr, indices, shape = self._sum
            self._pattern[dtype] = SparseFeatures(indptr, indices, torch.ones(len(indices), dtype=dtype), shape)
        return self._pattern[dtype]


def _between(ids: Tensor, low: int, high: int) -> Tensor:
    """Those of the ascending numbers that lie in ``low .. high - 1``, counted from ``low``."""
    first, last = torch.searchsorted(ids, torch.tensor([low, high])).tolist()
    return ids[first:last] - low


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
