"""What a piece adds to the training loss, and what it predicts of its items."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.distributed.crew import Crew, Piece
from hgde.distributed.flow import embed
from hgde.graph import GraphError
from hgde.tasks import Part, Task, TaskError
from hgde.tasks.metrics import PAIRS


def refuse_unsupported(task: Task) -> None:
    """Settings of a task whose loss is no sum over items."""
    for name in ("consistency", "labels", "hidden_edges", "structure"):
        if getattr(task.options, name, 0):
            raise TaskError(f"task.{name} is not supported on a partition; leave it out")


def mass_of(task: Task, part: Part) -> Tensor:
    """How much the items of a part count together: the denominator of the task's mean."""
    truth = part.truth
    known = torch.isfinite(truth) if truth.is_floating_point() else truth >= 0
    each = known.reshape(len(truth), -1).sum(1).double()
    if part.weights is not None:
        each = each * part.weights
    scale = getattr(task, "class_weights", None)
    if scale is not None:
        each = each * scale.index_select(0, truth)
    return each.sum()


@dataclass(frozen=True)
class Shares:
    """The training loss as a sum over pieces: each piece's mean, times its share of all that counts."""

    task: Task
    total: float
    num_nodes: int

    @classmethod
    def of(cls, crew: Crew, task: Task) -> Shares:
        refuse_unsupported(task)
        masses = {number: mass_of(task, piece.parts["train"]) for number, piece in crew.pieces.items()}
        return cls(task, float(crew.total(masses)), crew.partition.num_nodes)

    def loss(self, piece: Piece) -> Tensor:
        """The piece's part of the loss."""
        points = embed(piece)
        if self.task.kind == PAIRS:
            return self._pairs(piece, points)
        part = piece.parts["train"]
        if part.size == 0:
            return (0 * points).sum()  # its nodes still carry messages, and gradients, of others
        predictions = piece.learner.model.readout(points.index_select(0, part.items))
        mean = self.task.discrepancy(predictions, part.truth, part.weights)
        return mean * (float(mass_of(self.task, part)) / self.total)

    def _pairs(self, piece: Piece, points: Tensor) -> Tensor:
        """Edges against as many non-edges, fresh each epoch; nodes of other pieces are fetched."""
        edges = piece.parts["train"].items
        count = _count_of(int(self.total), piece.low, piece.high, self.num_nodes)
        pairs = torch.cat([edges, draw_negatives(piece, count)], dim=1)
        predictions = _compared(piece, points, pairs)
        truth = torch.zeros_like(predictions)
        truth[: edges.shape[1]] = 1
        if len(truth) == 0:
            return predictions.sum()
        return 2 * self.task.discrepancy(predictions, truth) * (len(truth) / (2 * self.total))


def predict(piece: Piece, name: str) -> Tensor:
    """What the piece's learner says of its items of a part, as :meth:`hgde.tasks.Learner.predict` would."""
    learner, part = piece.learner, piece.parts[name]
    points = embed(piece)
    if learner.wants_points:
        return _compared(piece, points, part.items, name)
    logits: Tensor = learner.model.readout(points.index_select(0, part.items))
    return logits / learner.temperature


def _compared(piece: Piece, points: Tensor, pairs: Tensor, keep: str | None = None) -> Tensor:
    """Predictions of pairs (own row, node of any piece); ``keep`` names pairs that will come again."""
    wanted, local = local_pairs(piece, pairs)
    if keep is None:
        plan = piece.plan(wanted)
    else:
        if keep not in piece.plans:
            piece.plans[keep] = piece.plan(wanted)
        plan = piece.plans[keep]
    return piece.learner.predict(piece.fetch(points, plan), local)


def local_pairs(piece: Piece, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes of other pieces among pairs (own row, any node), and the pairs' places once those are fetched."""
    outside = (pairs[1] < piece.low) | (pairs[1] >= piece.high)
    wanted = torch.unique(pairs[1][outside])
    other = torch.where(outside, piece.own + torch.searchsorted(wanted, pairs[1]), pairs[1] - piece.low)
    return wanted, torch.stack([pairs[0], other])


def _count_of(total: int, low: int, high: int, nodes: int) -> int:
    """A piece's share of so many negatives, by its nodes; the shares of all pieces add up."""
    return total * high // nodes - total * low // nodes


def draw_negatives(piece: Piece, count: int) -> Tensor:
    """Pairs of one of the piece's nodes with any other that are no edges, ``[2, count]``, with replacement.

    What counts as one is the split's: see :meth:`hgde.data.splits.LinkSplit.sample_training_negatives`.
    """
    from hgde import randomness

    nodes, source = piece.crew.partition.num_nodes, randomness.generator()
    forbidden, allows_loops = piece.forbidden(), piece.crew.partition.facts["protocol"] == "published"
    drawn: list[Tensor] = []
    missing = count
    for _ in range(1000):
        if missing <= 0:
            break
        size = (missing + missing // 8 + 64,)
        own = torch.randint(piece.own, size, generator=source)
        other = torch.randint(nodes, size, generator=source)
        key = own * nodes + other
        place = torch.searchsorted(forbidden, key).clamp_max(max(len(forbidden) - 1, 0))
        keep = forbidden[place] != key if len(forbidden) else torch.ones_like(key, dtype=torch.bool)
        if not allows_loops:
            keep &= own + piece.low != other
        drawn.append(torch.stack([own[keep], other[keep]])[:, :missing])
        missing -= drawn[-1].shape[1]
    if missing > 0:
        raise GraphError(f"piece {piece.number} has hardly any pair of nodes left to serve as a negative")
    return torch.cat([torch.zeros(2, 0, dtype=torch.int64), *drawn], dim=1)
