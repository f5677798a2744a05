"""What a diffusivity gives: weights between nodes, ready to be applied to a state on any manifold."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.diffusion import plain
from hgde.geometry import Manifold, PoincareBall
from hgde.graph import Graph
from hgde.kernels import (
    EdgeWeights,
    LocalWeights,
    edge_values,
    tangent_sum,
    tangent_sum_global,
)


@dataclass(frozen=True, eq=False)
class GlobalWeights:
    """Weights between all pairs, stated by queries and keys ``[N, H, d]``.

    Sums are exact, or with ``landmarks`` of linear cost, see :mod:`hgde.kernels.linear`.

    >>> import torch
    >>> weights = GlobalWeights(query=torch.ones(3, 1, 2), key=torch.ones(3, 1, 2))
    >>> [round(weight, 4) for weight in weights.rows(torch.tensor([0]))[0].tolist()]
    [0.3333, 0.3333, 0.3333]
    """

    query: Tensor
    key: Tensor
    landmarks: int | None = None

    def rows(self, nodes: Tensor) -> Tensor:
        """``g_ij`` of some rows against all nodes, ``[M, N]``: for pictures; the flow never forms the whole table."""
        return plain.pair_weights(self.query[nodes], self.key)


@dataclass(frozen=True, eq=False)
class Operator:
    """``(1 - beta) * local + beta * global``.

    ``local`` has weights on the edges of the graph and, where its ``origin`` is set, a virtual neighbour of every node
    at the origin. A loop's pull is nothing, ``log_x(x) = 0``: weights count it only in what they are divided by.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.kernels import EdgeWeights
    >>> graph = Graph.from_edges([(0, 1), (1, 2)])
    >>> operator = Operator(local=EdgeWeights(torch.full((4,), 0.25)))
    >>> operator.row_sums(graph).tolist()
    [0.25, 0.5, 0.25]
    """

    local: LocalWeights | None = None
    everywhere: GlobalWeights | None = None
    beta: Tensor | float = 0.0

    def tangent_sum(self, z: Tensor, graph: Graph, manifold: Manifold) -> Tensor:
        """``v_i = sum_j a_ij log_{z_i}(z_j)`` (paper eq. hyperbolic-graph-diffusion-equation), ``z`` and ``v [N, d]``.

        On the ball by the fused kernels, elsewhere by a log map per edge (per pair, in tiles, for the global part).
        """
        if len(z) == 0:
            return torch.zeros_like(z)
        parts = []
        if self.local is not None:
            near = self._near(z, graph, manifold, self.local)
            parts.append(near if self.everywhere is None else (1 - self.beta) * near)
        if self.everywhere is not None:
            parts.append(self.beta * self._far(z, manifold, self.everywhere))
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    @property
    def edges_alone(self) -> LocalWeights | None:
        """The local weights where they are all there is, so that a kernel can do a whole step in one pass."""
        return self.local if self.everywhere is None else None

    def _near(self, z: Tensor, graph: Graph, manifold: Manifold, local: LocalWeights) -> Tensor:
        if isinstance(manifold, PoincareBall):
            return tangent_sum(z, graph, local, manifold.c)
        return plain.edge_sum(z, graph, local, manifold)

    def _far(self, z: Tensor, manifold: Manifold, weights: GlobalWeights) -> Tensor:
        given = (z, weights.query, weights.key)
        if weights.landmarks is not None:
            return plain.linear_pair_sum(*given, manifold, weights.landmarks)
        if isinstance(manifold, PoincareBall):
            return tangent_sum_global(*given, manifold.c)
        return plain.pair_sum(*given, manifold)

    def edges(self, graph: Graph) -> Tensor:
        """The local weight of every edge, ``[E]``, or ``[E, d]`` where channels have weights of their own."""
        if self.local is None:
            return torch.zeros(graph.num_edges, device=graph.device)
        share = 1.0 if self.everywhere is None else 1 - self.beta
        return share * edge_values(graph, self.local)

    def row_sums(self, graph: Graph) -> Tensor:
        """``s_i = sum_{j != i} a_ij``, the origin and all pairs included: ``[N]``, or ``[N, d]`` for channels.

        A step of ``tau`` moves node ``i`` by ``tau s_i`` times the way to its neighbours' mean, see
        :mod:`hgde.diffusion.stability`. Global rows sum to one; what a node keeps for itself of that is not subtracted.
        """
        values = self.edges(graph)
        loop = (graph.rows == graph.indices).view(-1, *[1] * (values.dim() - 1))
        pull = values.masked_fill(loop, 0.0)
        sums = pull.new_zeros(graph.num_nodes, *values.shape[1:]).index_add(0, graph.rows, pull)
        if isinstance(self.local, EdgeWeights) and self.local.origin is not None:
            sums = sums + (1.0 if self.everywhere is None else 1 - self.beta) * self.local.origin
        return sums if self.everywhere is None else sums + self.beta
