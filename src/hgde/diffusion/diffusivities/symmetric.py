"""The symmetric Laplacian in a form that keeps a row's pull at one."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from hgde.diffusion.degrees import Remembered, degrees, edge_weights
from hgde.diffusion.diffusivity import Diffusivity, register_local
from hgde.diffusion.operator import Operator
from hgde.geometry import Manifold
from hgde.graph import Graph
from hgde.kernels import EdgeWeights
from hgde.sections import Section


def symmetric_weights(graph: Graph, dtype: torch.dtype) -> EdgeWeights:
    """``w_ij / sqrt(d_i d_j)`` on each edge and what is missing to one, ``1 - sum_j a_ij``, at the origin.

    ``d`` counts a loop at every node: weights that arrive for the receiver, that leave for the sender.
    """
    arriving, leaving = degrees(graph, self_loops=True)
    row, column = arriving.rsqrt(), leaving.rsqrt()
    values = edge_weights(graph) * row[graph.rows] * column[graph.indices]
    pull = torch.zeros_like(arriving).index_add_(0, graph.rows, values * (graph.rows != graph.indices))
    kept = row * column * _loop_weight(graph)
    return EdgeWeights(values.to(dtype), (1 - pull - kept).to(dtype))


def _loop_weight(graph: Graph) -> Tensor:
    """The weight of each node's loop, one where it has none of its own, ``[N]``."""
    own = (graph.rows == graph.indices).nonzero().squeeze(1)
    total = torch.zeros(graph.num_nodes, dtype=torch.float64, device=graph.device)
    total.index_add_(0, graph.rows[own], edge_weights(graph)[own])
    return torch.where(total > 0, total, 1.0)


@register_local("symmetric")
class Symmetric(Diffusivity):
    """``sum_j a_ij log_{z_i}(z_j) + (1 - sum_j a_ij - a_ii) log_{z_i}(o)`` with ``a_ij = w_ij / sqrt(d_i d_j)``.

    In flat space at ``tau = 1`` this is ``z <- D^{-1/2} (A + I) D^{-1/2} z``, the propagation of GCN and APPNP: the
    virtual neighbour at the origin makes ``-z_i`` of ``-(sum_j a_ij) z_i``. Its weight is negative around hubs.

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> pair = Graph.from_edges([(0, 1)])
    >>> Symmetric()(torch.zeros(2, 2), pair, PoincareBall()).edges(pair).tolist()
    [0.5, 0.5]
    """

    constant_in_time: ClassVar[bool] = True

    def __init__(self, options: Section | None = None, width: int = 0) -> None:
        super().__init__()
        self._known = Remembered(symmetric_weights)

    def prepare(self, graph: Graph) -> None:
        self._known(graph, torch.get_default_dtype())

    def forward(self, z: Tensor, graph: Graph, manifold: Manifold) -> Operator:
        return Operator(local=self._known(graph, z.dtype))
