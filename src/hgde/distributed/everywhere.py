"""Diffusion between all pairs of nodes when no rank holds all of them: points and keys of one piece at a time go round.

Per row, sums over the nodes of a piece are taken by themselves and added in the order of the pieces; so are, on the way
back, the gradients that a piece receives from all others. Sums are in doubles. Cost ``N^2 (d + H e)`` over all ranks;
held are the rank's own rows, one piece of others', and a bounded number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from hgde.distributed.crew import Crew, Piece
from hgde.kernels import reference

PAIRS = 1_000_000
"""Pairs of nodes worked on at once."""


def tangent_sum_everywhere(piece: Piece, z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> Tensor:
    """``v_i = sum_j g_ij log_{z_i}(z_j)`` over all nodes ``j`` of all pieces, see ``kernels.tangent_sum_global``.

    Shapes: ``z [own, d]``, ``q, k [own, H, e]`` of the piece; result ``[own, d]``.
    """
    result: Tensor = _Everywhere.apply(z, q, k, c, piece)  # type: ignore[no-untyped-call]  # torch's own
    return result


def partial_sums(z: Tensor, q: Tensor, others: Tensor, keys: Tensor, c: Tensor) -> Tensor:
    """What the nodes ``others`` add for each row and head before it is normalised, ``[H, n, d + 3]``.

    The affinities' weighted sum of ``others``, of ones and of ``c|z_i - z_j|^2``, and their own sum.
    """
    affinity = torch.einsum("ihe,jhe->hij", q, keys).sigmoid()
    spread = c * torch.cdist(z, others, compute_mode="donot_use_mm_for_euclid_dist").square()
    rows = reference.conformal(z, c)
    product = rows * reference.conformal(others, c).T
    denominator = product + spread
    factor = rows * reference.artanh_ratio(spread / denominator, product / denominator) / denominator
    weight = affinity * factor
    sums = [weight @ others, weight.sum(-1, keepdim=True), (weight * spread).sum(-1, keepdim=True)]
    return torch.cat([*sums, affinity.sum(-1, keepdim=True)], dim=-1)


def finished(sums: Tensor, z: Tensor, c: Tensor) -> Tensor:
    """The tangent vectors ``[n, d]`` from the sums over all nodes."""
    share = sums[..., -1:].reciprocal() / len(sums)
    pull, ones, pushed = sums[..., :-3] * share, sums[..., -3:-2] * share, sums[..., -2:-1] * share
    return reference.conformal(z, c) * (pull.sum(0) - ones.sum(0) * z) - pushed.sum(0) * z


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
        width, heads = z.shape[1], q.shape[1:]
        own, query, key, curvature = (t.detach().double() for t in (z, q, k, c))
        packed = torch.cat([own, key.flatten(1)], dim=1)
        sums = torch.zeros(heads[0], len(z), width + 3, dtype=torch.float64)
        for turn in _rounds(piece.crew):
            rows = piece.meet(turn.out, packed)
            others, keys = rows[:, :width], rows[:, width:].unflatten(1, heads)
            for part in _tiles(len(z), len(others)):
                sums[:, part] += partial_sums(own[part], query[part], others, keys, curvature)
        ctx.save_for_backward(z, q, k, c, sums)
        ctx.piece = piece
        return finished(sums, own, curvature).to(z.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        z, q, k, c, sums = ctx.saved_tensors
        width, heads, piece = z.shape[1], q.shape[1:], ctx.piece
        own, query, key, curvature = (t.detach().double() for t in (z, q, k, c))
        packed = torch.cat([own, key.flatten(1)], dim=1)
        with torch.enable_grad():
            given = [t.requires_grad_() for t in (sums.detach(), own.detach(), curvature.detach())]
            result = finished(*given)
        for_sums, for_z, for_c = torch.autograd.grad(result, given, gradient.double())
        for_q, mine = torch.zeros_like(query), torch.zeros_like(packed)
        for turn in _rounds(piece.crew):
            rows = piece.meet(turn.out, packed)
            for_rows = torch.zeros_like(rows)
            for part in _tiles(len(z), len(rows)):
                with torch.enable_grad():
                    leaves = [t.detach().requires_grad_() for t in (own[part], query[part], rows, curvature)]
                    others, keys = leaves[2][:, :width], leaves[2][:, width:].unflatten(1, heads)
                    some = partial_sums(leaves[0], leaves[1], others, keys, leaves[3])
                one, two, three, four = torch.autograd.grad(some, leaves, for_sums[:, part])
                for_z[part] += one
                for_q[part] += two
                for_rows += three
                for_c = for_c + four
            returned = piece.meet(turn.back, for_rows)
            if returned is not None:
                mine = returned
        for_z = for_z + mine[:, :width]
        for_k = mine[:, width:].unflatten(1, heads)
        return for_z.to(z.dtype), for_q.to(q.dtype), for_k.to(k.dtype), for_c.to(c.dtype), None


def _tiles(rows: int, columns: int) -> list[slice]:
    size = max(1, PAIRS // max(columns, 1))
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]
