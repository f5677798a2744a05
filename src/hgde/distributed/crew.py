"""The pieces of one rank at work: each has its graph, input, parts and learner, and meets the others in lockstep."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from hgde.distributed.lockstep import Lockstep
from hgde.distributed.partition import Partition
from hgde.distributed.plan import Cut, Plan
from hgde.distributed.ranks import RankError, Ranks
from hgde.distributed.scratch import Scratch
from hgde.graph import Features, PieceGraph, SparseFeatures
from hgde.tasks import PARTS, Learner, Part

T = TypeVar("T")


class Piece:
    """One piece. Its tensors lie in memory-mapped files, and are read when they are needed.

    ``learner`` is the piece's own view of the rank's learner: the same weights in the same memory, but gradients, and
    what diffusivities remember of a graph, of its own.
    """

    def __init__(self, crew: Crew, number: int, learner: Learner, dtype: torch.dtype) -> None:
        self.crew, self.number = crew, number
        self.low, self.high = crew.partition.starts[number], crew.partition.starts[number + 1]
        self.learner = _view(learner)
        self.dtype = dtype
        self._names = set(crew.partition.names(number))
        self.graph = PieceGraph(
            *(self._tensor("indptr"), self._tensor("indices"), self._optional("weights")),
            own=self.high - self.low,
            degrees=self._tensor("degrees"),
            loops=self._tensor("loops"),
        )
        self.halo = self._tensor("halo")
        self.features = self._features()
        self.parts = {name: self._part(name) for name in PARTS}
        self.plans: dict[str, Plan] = {}

    @property
    def own(self) -> int:
        return self.high - self.low

    def curvature(self) -> Tensor | None:
        """Ollivier-Ricci curvatures of the edges, where the partition has them."""
        return self._optional("curvature")

    def forbidden(self) -> Tensor:
        """Sorted keys ``own row * N + node`` of pairs that are no negatives."""
        return self._tensor("forbidden")

    def generator(self, seed: int, epoch: int) -> torch.Generator:
        """Random numbers of this piece in this epoch: they depend on nothing else, so nothing of them is stored."""
        state = np.random.SeedSequence([seed, epoch, self.number]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state >> np.uint64(1)))

    def fetch(self, rows: Tensor, plan: Plan) -> Tensor:
        """Own rows ``[own, ...]`` followed by those the plan brings from other pieces; differentiable."""
        result: Tensor = _Fetch.apply(rows, self, plan)  # type: ignore[no-untyped-call]  # torch's own
        return result

    def with_halo(self, rows: Tensor) -> Tensor:
        """Rows of the piece's own nodes followed by those of its halo: ``[own, d] -> [own + halo, d]``."""
        return self.fetch(rows, self.crew.halo)

    def plan(self, wanted: Tensor) -> Plan:
        """A plan to fetch rows by their numbers, ascending, none of them the piece's own. All pieces make one."""
        made: Plan = self.meet(self.crew.make_plan, wanted)
        return made

    def largest(self, value: float) -> float:
        """The largest number that any piece brings."""
        result: float = self.meet(self.crew.largest, value)
        return result

    def meet(self, operation: Callable[[dict[int, Any]], Iterable[tuple[int, Any]]], value: Any) -> Any:
        if self.crew.scratch is not None:
            self.crew.scratch.rest(self.number)
            if self.number == self.crew.lockstep.numbers[-1]:
                self.crew.scratch.trim()
        return self.crew.lockstep.meet(self.number, operation, value)

    def _tensor(self, name: str) -> Tensor:
        tensor = torch.from_numpy(self.crew.partition.piece_array(self.number, name))
        if self.crew.scratch is not None:
            self.crew.scratch.know(tensor, self.number)
        return tensor

    def _optional(self, name: str) -> Tensor | None:
        return self._tensor(name) if name in self._names else None

    def _features(self) -> Features:
        if "features" in self._names:
            return self._tensor("features").to(self.dtype)
        indptr, indices, values = (self._tensor(f"features_{part}") for part in ("indptr", "indices", "values"))
        shape = (self.own, int(self.crew.partition.facts["in_features"]))
        return SparseFeatures(indptr, indices, values.to(self.dtype), shape)

    def _part(self, name: str) -> Part:
        truth = self._tensor(f"{name}_truth")
        weights = self._optional(f"{name}_weights")
        return Part(self._tensor(f"{name}_items"), truth, weights).to(torch.device("cpu"), self.dtype)


class Crew:
    """All pieces of this rank, and what they do together with those of other ranks."""

    def __init__(
        self,
        partition: Partition,
        ranks: Ranks,
        learner: Learner,
        dtype: torch.dtype,
        scratch: Scratch | None = None,
    ) -> None:
        if ranks.size > partition.num_pieces:
            raise RankError(
                f"{partition.path} has {partition.num_pieces} pieces, which is the largest number of ranks; there are "
                f"{ranks.size}. Partition the graph into more pieces (--pieces), or use fewer ranks"
            )
        self.partition, self.ranks, self.learner, self.scratch = partition, ranks, learner, scratch
        self.cut = Cut(partition.starts, ranks.size)
        #: What operations keep between their turns, by name.
        self.shared: dict[str, Any] = {}
        numbers = self.cut.pieces_of(ranks.rank)
        self.lockstep = Lockstep(numbers)
        self.pieces = {number: Piece(self, number, learner, dtype) for number in numbers}
        self.halo = Plan(ranks, self.cut, {number: piece.halo for number, piece in self.pieces.items()})

    def run(self, work: Callable[[Piece], T]) -> dict[int, T]:
        """``work(piece)`` of every piece of this rank, in lockstep with one another and with the other ranks."""
        return self.lockstep.run(lambda number: work(self.pieces[number]))

    def saving(self) -> AbstractContextManager[Any]:
        """Inside, what a gradient will need goes to disk, if there is a place for it."""
        return nullcontext() if self.scratch is None else self.scratch.saving()

    def gather(self, values: dict[int, T]) -> list[T]:
        """What the pieces of all ranks have, in the order of the pieces, on every rank."""
        mine = [values[number] for number in sorted(values)]
        return [value for some in self.ranks.gather(mine) for value in some]

    def total(self, values: dict[int, Tensor]) -> Tensor:
        """The sum over all pieces in their order, in doubles; the same bits on every rank."""
        mine = torch.stack([values[number] for number in sorted(values)])
        every = self.ranks.gather_rows(mine, self.cut.counts())
        total = torch.zeros(every.shape[1:], dtype=torch.float64)
        for line in every:
            total += line
        return total

    def make_plan(self, wanted: dict[int, Tensor]) -> Iterable[tuple[int, Plan]]:
        plan = Plan(self.ranks, self.cut, wanted)
        return [(number, plan) for number in wanted]

    def largest(self, values: dict[int, float]) -> Iterable[tuple[int, float]]:
        every = self.ranks.gather(list(values.values()))
        flat = [value for some in every for value in some]
        result = math.nan if any(map(math.isnan, flat)) else max(flat)
        return [(number, result) for number in values]

    def check_agreement(self) -> None:
        """Refuse to go on if the ranks hold different weights, which nothing but faulty hardware explains."""
        digest = hashlib.sha256()
        for value in self.learner.state_dict().values():
            digest.update(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        digests = self.ranks.gather(digest.hexdigest())
        other = next((rank for rank, value in enumerate(digests) if value != digests[0]), None)
        if other is not None:
            raise RankError(
                f"rank {other} holds other weights than rank 0 after the same steps; its machine computes differently "
                "or wrongly. Go on from the last checkpoint with --resume, without that machine"
            )


class _Fetch(torch.autograd.Function):
    """:meth:`Piece.fetch`: rows go out by the plan, gradients come back by it."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, piece: Piece, plan: Plan) -> Tensor:
        ctx.piece, ctx.plan = piece, plan
        result: Tensor = piece.meet(plan.spread, rows.detach())
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.piece.meet(ctx.plan.collect, gradient), None, None


def _view(learner: Learner) -> Learner:
    """A learner with the same weights and buffers in the same memory, and gradients of its own."""
    other = copy.deepcopy(learner)
    for mine, given in zip(other.parameters(), learner.parameters(), strict=True):
        mine.data = given.data
    for buffer, given_buffer in zip(other.buffers(), learner.buffers(), strict=True):
        buffer.data = given_buffer.data
    return other
