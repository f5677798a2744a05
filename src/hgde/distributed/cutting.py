"""Which piece a node belongs to, and what a cut costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
METHODS = ("metis", "contiguous", "random")
SMALLEST_PIECES = 12
"""Pieces are divided evenly among 1, 2, 3, 4, 6 and 12 ranks."""
EDGES_PER_PIECE = 2_000_000


class CutError(ValueError):
    """A graph that cannot be cut as asked; the message says what to try.

    >>> import numpy as np
    >>> from hgde.distributed.cutting import assign
    >>> assign(np.array([0, 1, 2]), np.array([1, 0]), pieces=5, method="contiguous")
    Traceback (most recent call last):
    hgde.distributed.cutting.CutError: there are 2 nodes; pieces must be a number from 1 to that, got 5
    """


def default_pieces(num_nodes: int, num_edges: int) -> int:
    """Twelve pieces, doubled until one has no more than two million edges; fewer nodes than that are pieces of one."""
    pieces = SMALLEST_PIECES
    while num_edges > pieces * EDGES_PER_PIECE:
        pieces *= 2
    return max(1, min(pieces, num_nodes))


def assign(indptr: Array, indices: Array, pieces: int, method: str, seed: int = 0) -> Array:
    """The piece of every node, ``[N]``, with about the same number of edges in each.

    ``metis`` bisects recursively, so that pieces with neighbouring numbers lie near each other and any run of them is a
    good share for a rank. ``contiguous`` keeps the order of the nodes, which is right where that has a meaning, as
    after a sort by place. ``random`` is for comparison.
    """
    nodes = len(indptr) - 1
    if not 1 <= pieces <= max(nodes, 1):
        raise CutError(f"there are {nodes} nodes; pieces must be a number from 1 to that, got {pieces}")
    if method == "metis":
        return _metis(indptr, indices, pieces)
    work = np.diff(indptr) + 4
    if method == "random":
        shuffled = np.random.default_rng(seed).permutation(nodes)
        piece = np.empty(nodes, np.int64)
        piece[shuffled] = _even(work[shuffled], pieces)
        return piece
    if method == "contiguous":
        return _even(work, pieces)
    raise CutError(f"method must be one of {', '.join(METHODS)}, got {method!r}")


def _even(work: Array, pieces: int) -> Array:
    """Runs of about equal work, none of them empty."""
    total = np.concatenate([[0], np.cumsum(work)])
    cuts = np.searchsorted(total, total[-1] * np.arange(1, pieces) / pieces)
    bounds = np.concatenate([[0], cuts, [len(work)]])
    for k in range(1, pieces):
        bounds[k] = min(max(bounds[k], bounds[k - 1] + 1), len(work) - (pieces - k))
    return np.repeat(np.arange(pieces), np.diff(bounds))


def _metis(indptr: Array, indices: Array, pieces: int) -> Array:
    try:
        import pymetis
    except ImportError:
        raise CutError("cutting by METIS needs pymetis: pip install 'hgde[scale]', or --method contiguous") from None
    if pieces == 1:
        return np.zeros(len(indptr) - 1, np.int64)
    xadj, adjncy = _symmetric(indptr, indices)
    degree = (np.diff(indptr) + 4).tolist()
    pattern = pymetis.CSRAdjacency(xadj, adjncy)
    _, parts = pymetis.part_graph(pieces, pattern, vweights=degree, recursive=True)
    piece = np.asarray(parts, dtype=np.int64)
    missing = np.setdiff1d(np.arange(pieces), piece)
    if len(missing):
        # METIS may leave a piece of a tiny graph empty: the largest ones give a node each.
        for number in missing:
            largest = np.bincount(piece, minlength=pieces).argmax()
            piece[np.flatnonzero(piece == largest)[-1]] = number
    return piece


def _symmetric(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """The pattern with every edge in both directions and no loops, as METIS wants it."""
    from scipy.sparse import csr_matrix

    nodes = len(indptr) - 1
    ones = np.ones(len(indices), np.int8)
    pattern = csr_matrix((ones, indices, indptr), shape=(nodes, nodes))
    both = (pattern + pattern.T).tocsr()
    both.setdiag(0)
    both.eliminate_zeros()
    return both.indptr, both.indices


@dataclass(frozen=True)
class Cost:
    """What a cut costs on a number of ranks.

    ``boundary`` is ``H``, the rows that one rank needs of another, each counted once for a rank; ``returned`` counts a
    row once for every piece that needs it from another rank, which is what gradients travel by.
    """

    ranks: int
    nodes: int
    boundary: int
    returned: int
    largest_share: float

    @property
    def ratio(self) -> float:
        """``H / N``."""
        return self.boundary / max(self.nodes, 1)

    def bytes_per_evaluation(self, width: int, item: int = 4) -> int:
        """Bytes over all ranks of one evaluation of the flow and its gradient: ``item d (H + returned)``."""
        return item * width * (self.boundary + self.returned)

    def memory_per_rank(self, edges: int, features: int, width: int, evaluations: int, halo: int, item: int = 4) -> int:
        """Bytes of the largest rank in training."""
        state = (self.nodes + halo) * width * item
        return int(self.largest_share * training_bytes(edges, features, state, evaluations))


def training_bytes(edges: int, features: int, state: int, evaluations: int) -> int:
    """What training holds: layouts and weights of edges, the input, two states per evaluation and some to work with.

    Measured in the page on scale.
    """
    return 32 * edges + features + state * (2 * evaluations + 5)


def cost(starts: Sequence[int], halos: Sequence[Array], work: Sequence[int], ranks: int) -> Cost:
    """The cost of giving contiguous runs of pieces to so many ranks; ``halos`` are the rows each piece needs."""
    pieces = len(halos)
    boundary = returned = 0
    largest = 0
    for rank in range(ranks):
        run = range(pieces * rank // ranks, pieces * (rank + 1) // ranks)
        low, high = starts[run.start], starts[run.stop]
        outside = [halos[k][(halos[k] < low) | (halos[k] >= high)] for k in run]
        returned += sum(len(ids) for ids in outside)
        boundary += len(np.unique(np.concatenate([*outside, np.zeros(0, np.int64)])))
        largest = max(largest, sum(work[k] for k in run))
    return Cost(ranks, starts[-1], boundary, returned, largest / max(sum(work), 1))
