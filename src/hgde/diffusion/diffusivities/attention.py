"""Graph attention between neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from hgde.diffusion.degrees import edge_weights, missing_loops
from hgde.diffusion.diffusivity import Diffusivity, register_local
from hgde.diffusion.operator import Operator
from hgde.geometry import Manifold
from hgde.graph import Graph
from hgde.kernels import AttentionRule, EdgeWeights
from hgde.sections import Section, setting


@register_local("attention")
class Attention(Diffusivity):
    """Graph attention in the tangent space at the origin, averaged over heads.

    ``a_ij = w_ij exp(s_ij) / sum_k w_ik exp(s_ik)``, ``s_ij = LeakyReLU(a . [W u_i, W u_j])`` with ``u = log_o z``.
    Only node scores ``[N, H]`` are formed; with loops also ``[E, H]``.

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> Attention(Attention.Settings(heads=2), width=4)(torch.zeros(3, 4), path, PoincareBall()).edges(path).shape
    torch.Size([4])
    """

    @dataclass(frozen=True)
    class Settings(Section):
        heads: int = setting(1, "Attention heads.", at_least=1)
        negative_slope: float = setting(0.2, "Negative slope of the LeakyReLU on the scores.", at_least=0, at_most=1)
        self_loops: bool = setting(False, "Let every node also attend to itself.")

    def __init__(self, options: Settings | None = None, width: int = 16) -> None:
        super().__init__()
        chosen = options or self.Settings()
        self.heads, self.negative_slope, self.self_loops = chosen.heads, chosen.negative_slope, chosen.self_loops
        self.transform = nn.Parameter(torch.empty(width, self.heads * width))
        self.target = nn.Parameter(torch.empty(self.heads, width))
        self.source = nn.Parameter(torch.empty(self.heads, width))
        for parameter in self.parameters():
            nn.init.xavier_uniform_(parameter)

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("edge", "attention")

    def forward(self, z: Tensor, graph: Graph, manifold: Manifold) -> Operator:
        weights = self._rule(graph, z.dtype).weights(manifold.logmap0(z))
        if self.self_loops:
            return Operator(local=EdgeWeights(self._with_loops(graph, weights.target, weights.source)))
        return Operator(local=weights)

    def rule(self, graph: Graph, dtype: torch.dtype) -> AttentionRule | None:
        return None if self.self_loops else self._rule(graph, dtype)

    def _rule(self, graph: Graph, dtype: torch.dtype) -> AttentionRule:
        # a . (W u) = (W a) . u: the product with W never happens per node and channel.
        split = self.transform.view(-1, self.heads, self.target.shape[1])
        scoring = torch.cat([(split * vector).sum(-1) for vector in (self.target, self.source)], 1)
        edge = None if graph.weights is None else graph.weights.to(dtype)
        return AttentionRule(scoring, self.negative_slope, edge)

    def _with_loops(self, graph: Graph, target: Tensor, source: Tensor) -> Tensor:
        """The softmax with a loop of weight one at nodes that have none, ``[E]``; the loop itself pulls nothing."""
        slope = self.negative_slope
        score = functional.leaky_relu(target.index_select(0, graph.rows) + source.index_select(0, graph.indices), slope)
        loop = functional.leaky_relu(target + source, slope)
        looped = missing_loops(graph)[:, None]
        rows = graph.rows[:, None].expand_as(score)
        top = torch.where(looped, loop.detach(), -torch.inf).scatter_reduce(0, rows, score.detach(), "amax")
        share = edge_weights(graph, score.dtype)[:, None] * (score - top[graph.rows]).exp()
        # Where there is no loop its score may be far above the row's largest: the exponential must not see it.
        own = torch.where(looped, torch.where(looped, loop - top, 0.0).exp(), 0.0)
        total = own.index_add(0, graph.rows, share)
        return (share / total.index_select(0, graph.rows)).mean(-1)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, negative_slope={self.negative_slope}, self_loops={self.self_loops}"
