"""Diffusion between all pairs of nodes when no rank holds all of them: points and keys of one piece at a time go round.

Per row, sums over the nodes of a piece are taken by themselves and added in the order of the pieces; so are, on the way
back, the gradients that a piece receives from all others. The pairs are those of one process, by the same kernels, and
as there sums are in doubles. Cost ``N^2 (d + H e)`` over all ranks; held are the rank's own rows and one piece of
others'.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from hgde.distributed.crew import Crew, Piece
from hgde.kernels.ops.pairs import gather_pairs, pair_gradients


def tangent_sum_everywhere(piece: Piece, z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> Tensor:
    """``v_i = sum_j g_ij log_{z_i}(z_j)`` over all nodes ``j`` of all pieces, see ``kernels.tangent_sum_global``.

    Shapes: ``z [own, d]``, ``q, k [own, H, e]`` of the piece; result ``[own, d]``.
    """
    result: Tensor = _Everywhere.apply(z, q, k, c, piece)  # type: ignore[no-untyped-call]  # torch's own
    return result


class Round:
    """The turn of one piece: its rows go to all pieces, and gradients come back to it from all."""

    def __init__(self, crew: Crew, number: int) -> None:
        self.crew, self.number = crew, number
        ranks, cut = crew.ranks, crew.cut
        self.size = cut.starts[number + 1] - cut.starts[number]
        self.owner = next(rank for rank in range(ranks.size) if number in cut.pieces_of(rank))
        self.is_here = self.owner == ranks.rank

    def out(self, values: dict[int, Tensor]) -> Iterable[tuple[int, Tensor]]:
        ranks = self.crew.ranks
        rows = next(iter(values.values()))[:0]
        send = [self.size if self.is_here else 0] * ranks.size
        if self.is_here:
            rows = values[self.number].repeat(ranks.size, 1)
        receive = [self.size if rank == self.owner else 0 for rank in range(ranks.size)]
        received = ranks.exchange(rows, send, receive)()
        return [(number, received) for number in values]

    def back(self, values: dict[int, Tensor]) -> Iterable[tuple[int, Tensor | None]]:
        ranks, cut = self.crew.ranks, self.crew.cut
        mine = torch.cat([values[number] for number in sorted(values)])
        send = [len(mine) if rank == self.owner else 0 for rank in range(ranks.size)]
        receive = [self.size * count if self.is_here else 0 for count in cut.counts()]
        received = ranks.exchange(mine, send, receive)()
        total: Tensor | None = None
        if self.is_here:
            total = torch.zeros(self.size, mine.shape[1], dtype=mine.dtype)
            for lines in received.split(self.size):
                total += lines
        return [(number, total if number == self.number else None) for number in values]


def _rounds(crew: Crew) -> list[Round]:
    """The turns of all pieces, the same objects for every piece of a rank."""
    if "rounds" not in crew.shared:
        crew.shared["rounds"] = [Round(crew, number) for number in range(crew.cut.num_pieces)]
    rounds: list[Round] = crew.shared["rounds"]
    return rounds


class _Everywhere(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, q: Tensor, k: Tensor, c: Tensor, piece: Piece) -> Tensor:
        turns = _rounds(piece.crew)
        packed = torch.cat([z, k.flatten(1)], dim=1)
        shares = (gather_pairs(z, q, *_unpacked(piece.meet(turn.out, packed), k), c) for turn in turns)
        v, kept, mass = reduce(add, shares).divided(z.dtype)
        ctx.save_for_backward(z, q, k, c, v, kept, mass)
        ctx.piece = piece
        return v

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        z, q, k, c, v, kept, mass = ctx.saved_tensors
        packed = torch.cat([z, k.flatten(1)], dim=1)
        for_z, for_q, for_c = (torch.zeros_like(t, dtype=torch.float64) for t in (z, q, c))
        mine = torch.zeros_like(packed, dtype=torch.float64)
        for turn in _rounds(ctx.piece.crew):
            y, keys = _unpacked(ctx.piece.meet(turn.out, packed), k)
            own, queries, others, for_keys, bent = pair_gradients(gradient, z, q, y, keys, c, v, kept, mass)
            for_z += own
            for_q += queries
            for_c += bent
            returned = ctx.piece.meet(turn.back, torch.cat([others, for_keys.flatten(1)], dim=1))
            if returned is not None:
                mine = returned
        others, for_k = _unpacked(mine, k)
        return (for_z + others).to(z.dtype), for_q.to(q.dtype), for_k.to(k.dtype), for_c.to(c.dtype), None


def _unpacked(rows: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """Points and keys ``[n, H, e]``, as many heads as ``like`` has, from rows that hold both."""
    heads = like.shape[1:]
    points, keys = rows.split([rows.shape[1] - heads.numel(), heads.numel()], dim=1)
    return points.contiguous(), keys.unflatten(1, heads)
