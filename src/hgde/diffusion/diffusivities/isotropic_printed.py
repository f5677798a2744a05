"""The paper's isotropic weight as printed; ill conditioned around hubs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from hgde.diffusion.degrees import Remembered, degrees
from hgde.diffusion.diffusivity import Diffusivity, register_local
from hgde.diffusion.operator import Operator
from hgde.geometry import Manifold
from hgde.graph import Graph
from hgde.kernels import EdgeWeights
from hgde.sections import Section, setting


def printed_weights(graph: Graph, dtype: torch.dtype, self_loops: bool = False) -> Tensor:
    """``w_ij / sqrt(d_i d_j)``, ``[E]``: ``d`` sums arriving weights for the receiver, leaving ones for the sender."""
    arriving, leaving = degrees(graph, dtype, self_loops=self_loops)
    values = arriving.rsqrt()[graph.rows] * leaving.rsqrt()[graph.indices]
    return values if graph.weights is None else values * graph.weights.to(dtype)


@register_local("isotropic-printed")
class IsotropicPrinted(Diffusivity):
    """``a_ij = w_ij / sqrt(d_i d_j)`` without the origin's share.

    Rows sum to ``sum_j 1 / sqrt(d_i d_j)``, which grows like the square root of a hub's degree: 13 for a node with 170
    leaves. Steps then overshoot, and training may end in numbers that are not finite. ``isotropic`` and ``symmetric``
    are the well conditioned forms; this one reproduces results that were made with the printed formula.

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> star = Graph.from_edges([(0, leaf) for leaf in range(1, 10)])
    >>> operator = IsotropicPrinted()(torch.zeros(10, 2), star, PoincareBall())
    >>> round(float(operator.row_sums(star)[0]), 4)      # more than one
    3.0
    """

    @dataclass(frozen=True)
    class Settings(Section):
        self_loops: bool = setting(False, "Count a loop at every node in its degree.")

    constant_in_time: ClassVar[bool] = True

    def __init__(self, options: Settings | None = None, width: int = 0) -> None:
        super().__init__()
        self.self_loops = (options or self.Settings()).self_loops
        self._known = Remembered(partial(printed_weights, self_loops=self.self_loops))

    def prepare(self, graph: Graph) -> None:
        self._known(graph, torch.get_default_dtype())

    def forward(self, z: Tensor, graph: Graph, manifold: Manifold) -> Operator:
        return Operator(local=EdgeWeights(self._known(graph, z.dtype)))
