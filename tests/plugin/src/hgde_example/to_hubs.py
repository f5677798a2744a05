"""Neighbours weighted by their own degree."""

from typing import ClassVar

import torch

from hgde.diffusion import Diffusivity, Operator
from hgde.kernels import EdgeWeights


class ToHubs(Diffusivity):
    """``a_ij = d_j / (1 + sum_k d_k)``: rows sum to less than one."""

    constant_in_time: ClassVar[bool] = True

    def __init__(self, options=None, width=0):
        super().__init__()

    def forward(self, z, graph, manifold):
        degree = graph.degree.to(z.dtype)
        pull = degree[graph.indices]
        total = 1 + torch.zeros_like(degree).index_add(0, graph.rows, pull)
        return Operator(local=EdgeWeights(pull / total[graph.rows]))
