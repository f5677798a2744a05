"""Every neighbour by its share: rows that sum to one."""

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


def shares(graph: Graph, dtype: torch.dtype) -> Tensor:
    """``w_ij / (1 + sum_k w_ik)`` on each edge, ``[E]``."""
    arriving, _ = degrees(graph, self_loops=True)
    return (edge_weights(graph) / arriving[graph.rows]).to(dtype)


@register_local("isotropic")
class Isotropic(Diffusivity):
    """``a_ij = w_ij / (1 + sum_k w_ik)``: row-stochastic, the one being a loop at every node that has none.

    With the loop a row pulls by less than one, so a step of ``tau = 1`` ends inside what a node saw: it contracts.

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> graph = Graph.from_edges([(0, 1), (1, 2)])
    >>> Isotropic()(torch.zeros(3, 2), graph, PoincareBall()).row_sums(graph).tolist()      # 1 of 2, 2 of 3, 1 of 2
    [0.5, 0.6666666865348816, 0.5]
    """

    constant_in_time: ClassVar[bool] = True

    def __init__(self, options: Section | None = None, width: int = 0) -> None:
        super().__init__()
        self._known = Remembered(shares)

    def prepare(self, graph: Graph) -> None:
        self._known(graph, torch.get_default_dtype())

    def forward(self, z: Tensor, graph: Graph, manifold: Manifold) -> Operator:
        return Operator(local=EdgeWeights(self._known(graph, z.dtype)))
