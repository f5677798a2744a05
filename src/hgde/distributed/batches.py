"""Training on batches of pieces: random unions of them, each a graph of its own. Not exact, and evaluated exactly."""

from __future__ import annotations

import numpy as np
import torch

from hgde import randomness
from hgde.distributed.crew import Piece
from hgde.distributed.partition import Array
from hgde.distributed.trainer import PartitionedTrainer
from hgde.graph import Features, Graph, SparseFeatures
from hgde.tasks import Part


class BatchTrainer(PartitionedTrainer):
    """Every epoch the pieces are dealt into batches at random, with a step for each; one process.

    Edges inside a batch carry messages, those that leave it do not (Chiang et al. 2019, Cluster-GCN). Validation and
    test scores are of the whole graph, by all pieces in lockstep.
    """

    batch: int = 1

    def _train_epoch(self) -> tuple[float, int]:
        random = np.random.default_rng([self.seed, self.progress.epoch])
        order = random.permutation(sorted(self.crew.pieces))
        groups = [sorted(order[k : k + self.batch].tolist()) for k in range(0, len(order), self.batch)]
        losses, projected = [], 0
        epoch = self.progress.epoch
        for number, group in enumerate(groups):
            self._group, self._step = group, number
            if not any(self.crew.pieces[k].parts["train"].size for k in group):
                continue
            loss, count = super()._train_epoch()
            self.progress.epoch = epoch  # an epoch is one pass over all pieces
            losses.append(loss)
            projected += count
        self.progress.epoch = epoch + 1
        return float(np.mean(losses)), projected

    def _backward(self) -> float:
        pieces = [self.crew.pieces[number] for number in self._group]
        graph, features, part = union(pieces)
        state = np.random.SeedSequence([self.seed, self.progress.epoch, self._step, 1]).generate_state(1, np.uint64)[0]
        generator = randomness.make_generator(int(state >> np.uint64(1)))
        self.learner.train()
        with randomness.use(generator):
            predictions = self.learner(features, graph, part.items)
            loss = self.task.discrepancy(predictions, part.truth, part.weights)
        loss.backward()
        return float(loss.detach())


def union(pieces: list[Piece]) -> tuple[Graph, Features, Part]:
    """The nodes of some pieces with the edges among them, their features and training items."""
    lows, sizes = [piece.low for piece in pieces], [piece.own for piece in pieces]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows, columns, weights = [], [], []
    for place, piece in enumerate(pieces):
        local = piece.graph.indices.numpy()
        halo = piece.halo.numpy()
        number = np.where(
            local < piece.own, local + piece.low, halo[np.maximum(local - piece.own, 0)] if len(halo) else 0
        )
        owner = np.searchsorted(lows, number, side="right") - 1
        inside = (owner >= 0) & (number - np.take(lows, owner) < np.take(sizes, owner))
        row = np.repeat(np.arange(piece.own), np.diff(piece.graph.indptr.numpy()[: piece.own + 1]))
        rows.append(row[inside] + starts[place])
        columns.append((number - np.take(lows, owner) + starts[owner])[inside])
        if piece.graph.weights is not None:
            weights.append(piece.graph.weights.numpy()[inside])
    pairs = torch.from_numpy(np.stack([np.concatenate(columns), np.concatenate(rows)]))
    own = torch.from_numpy(np.concatenate(weights)) if weights else None
    graph = Graph.from_edges(pairs, int(starts[-1]), own, undirected=False, self_loops=True, merge_duplicates=False)
    return graph, _stacked([piece.features for piece in pieces]), _joined(pieces, starts)


def _stacked(features: list[Features]) -> Features:
    if not isinstance(features[0], SparseFeatures):
        return torch.cat([some for some in features if isinstance(some, torch.Tensor)])
    some = [part for part in features if isinstance(part, SparseFeatures)]
    first, indptr = 0, [torch.zeros(1, dtype=torch.int64)]
    for part in some:
        indptr.append(part.indptr[1:] + first)
        first += int(part.indptr[-1])
    return SparseFeatures(
        torch.cat(indptr),
        torch.cat([part.indices for part in some]),
        torch.cat([part.values for part in some]),
        (sum(part.shape[0] for part in some), some[0].shape[1]),
    )


def _joined(pieces: list[Piece], starts: Array) -> Part:
    parts = [piece.parts["train"] for piece in pieces]
    items = torch.cat([part.items + int(start) for part, start in zip(parts, starts[:-1], strict=True)])
    weights = [part.weights for part in parts if part.weights is not None]
    truth = torch.cat([part.truth for part in parts])
    return Part(items, truth, torch.cat(weights) if len(weights) == len(parts) else None)
