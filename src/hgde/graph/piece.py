"""A piece of a graph: some nodes with all that arrives at them, and the nodes it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from hgde.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class PieceGraph(Graph):
    """The first ``own`` nodes are the piece's and have all their edges; the others, its halo, have none here.

    ``degrees [2, N]`` are the weights that arrive at and leave each node in the whole graph, ``loops [N]`` says which
    nodes have an edge to themselves there.

    >>> import torch
    >>> indptr, indices = torch.tensor([0, 1, 3, 3]), torch.tensor([1, 0, 2])      # nodes 0 and 1, and the halo 2
    >>> piece = PieceGraph(indptr, indices, own=2)
    >>> piece.num_nodes, piece.num_halo
    (3, 1)
    """

    own: int = 0
    degrees: Tensor = field(default_factory=lambda: torch.zeros(2, 0))
    loops: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))

    @property
    def num_halo(self) -> int:
        return self.num_nodes - self.own
