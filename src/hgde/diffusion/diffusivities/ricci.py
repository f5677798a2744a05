"""Weights learned from the Ollivier-Ricci curvature of edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from hgde.diffusion.degrees import Remembered, edge_weights, missing_loops
from hgde.diffusion.diffusivity import Diffusivity, register_local
from hgde.diffusion.operator import Operator
from hgde.geometry import Manifold
from hgde.graph import Graph
from hgde.kernels import ChannelWeights
from hgde.sections import Section, setting


class Kinds(NamedTuple):
    """The edges of a graph by kind, those of one curvature being alike.

    ``values [K, 1]`` are the distinct curvatures, ``kind [E]`` says which an edge has, ``weight [E]`` is the edges' own
    weight. ``occurrences [N, K]``, sparse, has the weight of each kind that arrives at a node; ``looped [N, 1]`` says
    which nodes have a loop counted, of curvature 0 and weight 1.
    """

    values: Tensor
    kind: Tensor
    weight: Tensor | None
    occurrences: Tensor
    looped: Tensor | None


@register_local("ricci")
class Ricci(Diffusivity):
    """Channel-wise softmax over neighbours of an MLP of the Ollivier-Ricci curvature.

    ``a_ij = w_ij exp(m(K_ij)) / sum_k w_ik exp(m(K_ik))``, the MLP ``m: 1 -> d -> LeakyReLU -> d`` applied to the
    distinct values of the curvature only. Nothing of size edges x width is formed.

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> operator = Ricci(Ricci.Settings(), width=4)(torch.zeros(3, 4), path, PoincareBall())
    >>> operator.edges(path).shape      # a weight for each channel
    torch.Size([4, 4])
    """

    @dataclass(frozen=True)
    class Settings(Section):
        alpha: float = setting(
            0.5,
            "Mass that stays at the node (alpha) in Ollivier-Ricci curvature.",
            at_least=0,
            at_most=1,
            flag="ricci_alpha",
        )
        self_loops: bool = setting(False, "Let every node also receive from itself, at curvature 0.")

    constant_in_time: ClassVar[bool] = True

    def __init__(self, options: Settings | None = None, width: int = 16) -> None:
        super().__init__()
        chosen = options or self.Settings()
        self.alpha, self.self_loops = chosen.alpha, chosen.self_loops
        self.mlp = nn.Sequential(nn.Linear(1, width), nn.LeakyReLU(0.2), nn.Linear(width, width))
        self._prepared: tuple[Graph, Tensor] | None = None
        self._known = Remembered(self._kinds)

    def _kinds(self, graph: Graph, dtype: torch.dtype) -> Kinds:
        values, kind = torch.unique(self._curvature(graph), return_inverse=True)
        count = values.numel()
        # How much of each kind is among the neighbours of a node: the normaliser is this matrix times the table.
        pairs, place = torch.unique(graph.rows * count + kind, return_inverse=True)
        amount = torch.zeros(len(pairs), dtype=torch.float64, device=graph.device)
        amount.index_add_(0, place, edge_weights(graph))
        occurrences = torch.sparse_coo_tensor(
            torch.stack([pairs // max(count, 1), pairs % max(count, 1)]),
            amount.to(dtype),
            (graph.num_nodes, count),
            is_coalesced=True,
            check_invariants=False,
        )
        weight = None if graph.weights is None else graph.weights.to(dtype)
        looped = missing_loops(graph).unsqueeze(1) if self.self_loops else None
        return Kinds(values.to(dtype).unsqueeze(1), kind, weight, occurrences, looped)

    def _curvature(self, graph: Graph) -> Tensor:
        from hgde.graph.measures.ricci import ollivier_ricci

        prepared = self._prepared
        if prepared is not None and prepared[0] is graph:
            return prepared[1]
        return ollivier_ricci(graph, alpha=self.alpha, cache=False)

    def know(self, graph: Graph, curvature: Tensor) -> None:
        """Take the curvatures of a graph's edges, ``[E]``, from where they are known: a piece cannot work them out."""
        self._prepared = (graph, curvature)

    def prepare(self, graph: Graph) -> None:
        """Work out the curvatures, or read them from the disk: this graph will be met again, others may not be."""
        from hgde.graph.measures.ricci import ollivier_ricci

        self._prepared = (graph, ollivier_ricci(graph, alpha=self.alpha, cache=True))
        self._known(graph, torch.get_default_dtype())

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("channel",)

    def forward(self, z: Tensor, graph: Graph, manifold: Manifold) -> Operator:
        known = self._known(graph, z.dtype)
        with_loop = known.values if known.looped is None else torch.cat([known.values, known.values.new_zeros(1, 1)])
        logits = self.mlp(with_loop)
        # One table serves all rows, so its maximum may be far above a row's own: bounded below, no row's sum vanishes.
        table = torch.exp((logits - logits.amax(0, keepdim=True)).clamp_min(-30.0)) if logits.numel() else logits
        loop = None
        if known.looped is not None:
            table, loop = table[:-1], table[-1:]
        total = (
            torch.sparse.mm(known.occurrences, table)
            if len(table)
            else logits.new_zeros(graph.num_nodes, logits.shape[1])
        )
        if known.looped is not None and loop is not None:
            total = total + torch.where(known.looped, loop, torch.zeros_like(loop))
        scale = torch.where(total > 0, total, torch.ones_like(total)).reciprocal()
        return Operator(local=ChannelWeights(table, known.kind, scale, known.weight))

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}, self_loops={self.self_loops}"
