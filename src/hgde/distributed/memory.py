"""How to train within so much memory: all of it held, pieces on disk, or batches of pieces; chosen and explained."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hgde.distributed.cutting import training_bytes
from hgde.distributed.partition import Partition
from hgde.distributed.scratch import Scratch
from hgde.models import HGDE
from hgde.sections import SettingsError

HELD, DISK, BATCHES = "held", "disk", "batches"
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
PROGRAM = 500 * 2**20
"""What a process takes before it holds any data."""
DISK_STATES = 6
"""States that are in memory at once out of core."""


def parse_size(text: str) -> int:
    """Bytes of ``8GiB``, ``8G``, ``500 MB`` and the like; units are powers of 1024.

    >>> parse_size("1.5 KiB")
    1536
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if not found:
        raise SettingsError(f"memory is a size such as 8GiB or 500MiB, got {text!r}")
    return int(float(found[1]) * _UNITS[found[2]])


@dataclass(frozen=True)
class Need:
    """Bytes that one rank needs, by the numbers of its share of a partition."""

    held: int
    disk: int

    @classmethod
    def of(cls, partition: Partition, ranks: int, model: HGDE, *, learns: bool = True) -> Need:
        """An estimate, measured against runs in the page on scale.

        On disk a few states stay in memory, and the work on the largest piece. What does not learn keeps neither the
        states of evaluations nor the layout by columns.
        """
        halo = sum(len(partition.piece_array(k, "halo")) for k in range(partition.num_pieces))
        width, item = model.encoder.linear.weight.shape[1], model.encoder.linear.weight.element_size()
        state = (partition.num_nodes + halo) * width * item
        edges, features = partition.num_edges, int(partition.facts["feature_bytes"])
        held = (
            training_bytes(edges, features, state, evaluations(model)) if learns else 24 * edges + features + 5 * state
        )
        largest = max(partition.facts["edges_of"]) * 150 + 10 * state / partition.num_pieces
        return cls(int(PROGRAM + held / ranks), int(PROGRAM + DISK_STATES * state / ranks + largest))


def evaluations(model: HGDE) -> int:
    """How often the flow is evaluated on the way, for a method with fixed steps; a guess for others."""
    steps = max(1, math.ceil(model.block.time / model.block.step))
    return steps * (4 if "rk4" in model.block.method.name else 1)


@dataclass(frozen=True)
class Way:
    """How to train, and why in words. ``batch``: pieces in a batch, for batches."""

    mode: str
    words: str
    batch: int = 0

    @contextmanager
    def scratch(self, parent: Path) -> Iterator[Scratch | None]:
        """A folder for tensors below ``parent``, where this way needs one; it is gone afterwards."""
        if self.mode == HELD:
            yield None
            return
        scratch = Scratch(parent)
        try:
            yield scratch
        finally:
            scratch.close()


def choose_way(partition: Partition, ranks: int, model: HGDE, memory: int | None, *, learns: bool = True) -> Way:
    """The exact way if it fits, on disk if need be; batches of pieces where even a few states do not fit."""
    need = Need.of(partition, ranks, model, learns=learns)
    if memory is None or need.held <= memory:
        limit = "" if memory is None else f", within {_words(memory)}"
        return Way(HELD, f"exact, all in memory: about {_words(need.held)} per rank{limit}")
    if need.disk <= memory:
        return Way(
            DISK,
            f"exact, out of core: holding everything would take about {_words(need.held)} per rank; what is not at "
            f"work goes to disk, about {_words(need.disk)} stay in memory, within {_words(memory)}",
        )
    if ranks > 1 or not learns:
        other = "train in one process, with batches of pieces" if learns else "allow more memory"
        raise SettingsError(
            f"{_words(memory)} per rank are too little: about {_words(need.disk)} are needed even out of core; use "
            f"more ranks than {ranks}, or {other}"
        )
    per_piece = (need.held - PROGRAM) / partition.num_pieces
    batch = int((memory - PROGRAM) / per_piece)
    if batch < 1:
        raise SettingsError(
            f"{_words(memory)} do not hold a single piece, which takes about {_words(PROGRAM + per_piece)}; cut the "
            "graph into more pieces, or allow more memory"
        )
    return Way(
        BATCHES,
        f"not exact: even out of core {_words(need.disk)} are needed, {_words(memory)} are allowed. Batches of {batch} "
        f"of {partition.num_pieces} pieces are trained on, edges between batches left out; scores are those of the "
        "whole graph, worked out beyond that memory",
        batch,
    )


def _words(size: float) -> str:
    return f"{size / 2**30:.2g} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
