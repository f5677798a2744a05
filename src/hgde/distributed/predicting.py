"""A trained model on a partition: predictions and points, piece by piece into one table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.distributed.crew import Crew, Piece
from hgde.distributed.flow import embed, prepare
from hgde.distributed.losses import local_pairs
from hgde.distributed.partition import Array, Partition, PartitionError
from hgde.distributed.ranks import Ranks
from hgde.distributed.scratch import Scratch
from hgde.distributed.tables import StreamedTable
from hgde.pipeline.fitted import Fitted
from hgde.pipeline.prepare import number_type, versions
from hgde.tasks import PARTS, Predicted, Problem, Table
from hgde.tasks.metrics import PAIRS


class Predictor:
    """A model and a partition. Every rank makes one; rank 0 writes. With ``scratch`` pieces are kept on disk.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from hgde import make_settings
    >>> from hgde.distributed import join, make_partition, start_run
    >>> from hgde.pipeline import load, prepare
    >>> settings = make_settings({"data": {"name": "tree-random", "options": ["num_nodes=40"]}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = make_partition(f"{folder}/parts", prepare(settings), settings, pieces=2, method="contiguous")
    ...     run = Path(folder) / "run"
    ...     _ = start_run(parts, {"training": {"epochs": 1}, "preset": "none"}, join(), run).train()
    ...     Predictor(load(run), parts, join()).write_predictions(Path(folder) / "predictions.csv")
    40
    """

    def __init__(self, fitted: Fitted, partition: Partition, ranks: Ranks, scratch: Scratch | None = None) -> None:
        if fitted.shape.in_features != int(partition.facts["in_features"]):
            raise PartitionError(
                f"the model has {fitted.shape.in_features} inputs, {partition.path} gives "
                f"{partition.facts['in_features']}; cut the graph with the columns and preprocessing it was trained on"
            )
        self.fitted, self.partition, self.ranks = fitted, partition, ranks
        self.crew = Crew(partition, ranks, fitted.learner.eval(), number_type(fitted.settings), scratch)
        prepare(self.crew, learns=False)

    @torch.no_grad()
    def write_predictions(self, path: Path) -> int:
        """Each node's prediction, or each held-out pair's, with its truth and part; the number of rows."""
        task, learner = self.fitted.task, self.fitted.learner

        def nodes(piece: Piece) -> Callable[[], Table]:
            points = embed(piece)

            def table() -> Table:
                outputs = learner.model.readout(points) / learner.temperature
                problem = Problem(task, piece.graph, piece.parts, "", "")
                predicted = Predicted(learner, outputs, self._ids(piece))
                return task.table(predicted) | task.truth_columns(problem, piece.own)

            return table

        def pairs(piece: Piece) -> Callable[[], Table]:
            parts = [piece.parts[name] for name in PARTS[1:]]
            items = torch.cat([part.items for part in parts], dim=1)
            every, local, ids = self._compared(piece, items)

            def table() -> Table:
                made = task.table(Predicted(learner, every, ids, local))
                made["truth"] = torch.cat([part.truth for part in parts]).numpy()
                made["part"] = np.repeat(np.array(PARTS[1:], dtype=object), [part.size for part in parts])
                return made

            return table

        return self._write(path, pairs if task.kind == PAIRS else nodes, {})

    @torch.no_grad()
    def write_pairs(self, path: Path, pairs: Tensor) -> int:
        """The chance of each pair ``[2, m]`` of node numbers of the partition."""
        task, learner = self.fitted.task, self.fitted.learner

        def work(piece: Piece) -> Callable[[], Table]:
            mine = (pairs[0] >= piece.low) & (pairs[0] < piece.high)
            items = torch.stack([pairs[0, mine] - piece.low, pairs[1, mine]])
            every, local, ids = self._compared(piece, items)
            return lambda: task.table(Predicted(learner, every, ids, local))

        return self._write(path, work, {})

    @torch.no_grad()
    def write_points(self, path: Path) -> int:
        """The embedding: a row of coordinates for each node."""
        model = self.fitted.learner.model

        def work(piece: Piece) -> Callable[[], Table]:
            points = embed(piece)
            return lambda: {"id": self._ids(piece)} | {f"z{k}": points[:, k].numpy() for k in range(points.shape[1])}

        return self._write(path, work, {"space": type(model.manifold).__name__, "curvatures": model.curvatures()})

    def numbers_of(self, names: Array) -> Array:
        """The partition's numbers of nodes by their names; unknown ones are refused."""
        ids = self.partition.array("ids").astype(str)
        order = np.argsort(ids, kind="stable")
        place = np.searchsorted(ids[order], names.astype(str)).clip(max=len(ids) - 1)
        found = order[place]
        wrong = np.flatnonzero(ids[found] != names.astype(str))
        if len(wrong):
            raise PartitionError(f"no node of {self.partition.path} is called {str(names[wrong[0]])[:60]!r}")
        return found

    def _compared(self, piece: Piece, items: Tensor) -> tuple[Tensor, Tensor, Array]:
        """Points of a piece and of the other ends of its pairs, the pairs by their places there, the points' names."""
        wanted, local = local_pairs(piece, items)
        every = piece.fetch(embed(piece), piece.plan(wanted))
        names = self.partition.array("ids")
        return every, local, np.concatenate([names[piece.low : piece.high], names[wanted.numpy()]])

    def _ids(self, piece: Piece) -> Array:
        names: Array = np.asarray(self.partition.array("ids")[piece.low : piece.high])
        return names

    def _write(self, path: Path, work: Callable[[Piece], Callable[[], Table]], more: dict[str, Any]) -> int:
        made = self.crew.run(work)
        stream = StreamedTable(path) if self.ranks.is_first else None
        try:
            for rank in range(self.ranks.size):
                for number in self.crew.cut.pieces_of(rank):
                    table = self.ranks.to_first(made.pop(number)() if number in made else None, rank)
                    if stream is not None:
                        stream.append(table)
            if stream is not None:
                stream.finish(self._about() | more)
        except BaseException:
            if stream is not None:
                stream.discard()
            raise
        return 0 if stream is None else stream.rows

    def _about(self) -> dict[str, Any]:
        facts = self.partition.facts
        return {
            "data": facts["data"],
            "data_hash": facts["data_hash"],
            "partition_hash": self.partition.hash,
            "ranks": self.ranks.size,
            "settings": self.fitted.settings.to_dict(),
            "versions": versions(),
        }
