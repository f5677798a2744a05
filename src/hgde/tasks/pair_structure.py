"""What the graph around a pair says about a link between its ends, the pair's own edge left out.

Points that diffuse say who is like whom. How many neighbours two nodes share, and how many each has, is in the graph
itself and lost on the way; here it becomes a few numbers for each pair. A training edge is seen as a held-out one will
be: without itself. Otherwise a node of degree 0 would never be linked in training, and always in the test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from hgde.graph import Graph
from hgde.tasks.decoders import PairDecoder
from hgde.tasks.heuristics import binary_adjacency

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

COUNT = 5
_adjacencies: WeakKeyDictionary[Graph, csr_matrix] = WeakKeyDictionary()


def pair_structure(graph: Graph, pairs: Tensor) -> Tensor:
    """Five numbers for each of the pairs ``[2, m]``: float32 ``[m, 5]``.

    Logarithms of one plus: common neighbours; their sum of ``1 / log degree`` (Adamic-Adar); their sum of
    ``1 / degree`` (resource allocation); the product and the ratio of the degrees, the pair's own edge not counted.
    Cost per pair: the smaller degree.
    """
    adjacency = _adjacencies.get(graph)
    if adjacency is None:
        adjacency = _adjacencies[graph] = binary_adjacency(graph)
    degree = np.asarray(adjacency.sum(1)).ravel()
    u, v = pairs.cpu().numpy()
    shared: Any = adjacency[u].multiply(adjacency[v])
    # A common neighbour has at least two edges, so what is put for the others is never read.
    weights = np.stack([np.ones_like(degree), 1 / np.log(np.maximum(degree, 2)), 1 / np.maximum(degree, 1)], axis=1)
    own_edge = np.asarray(adjacency[u, v]).ravel()
    ends = np.log1p(degree[u] - own_edge), np.log1p(degree[v] - own_edge)
    counts = np.log1p(np.asarray(shared @ weights))
    made = np.column_stack([counts, ends[0] + ends[1], np.abs(ends[0] - ends[1])])
    return torch.from_numpy(made.astype(np.float32)).to(pairs.device)


class WithStructure(nn.Module):
    """A decoder of two points whose log-odds are joined by a small network of :func:`pair_structure`.

    Without a graph, where only points are at hand, the decoder answers alone.
    """

    sees_graph: ClassVar[bool] = True

    def __init__(self, decoder: PairDecoder, width: int = 16) -> None:
        super().__init__()
        self.decoder = decoder
        self.hidden = nn.Linear(COUNT, width)
        self.out = nn.Linear(width, 1)

    def forward(self, z: Tensor, pairs: Tensor, graph: Graph | None = None) -> Tensor:
        odds: Tensor = self.decoder(z, pairs)
        if graph is None:
            return odds
        around = pair_structure(graph, pairs).to(odds.dtype)
        return odds + self.out(torch.relu(self.hidden(around)))[:, 0]
