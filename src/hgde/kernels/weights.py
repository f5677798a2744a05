"""How the weight of an edge is stated, so that a kernel can work it out row by row without storing it per channel.

Edge order is that of :class:`hgde.graph.Graph` everywhere. Tensors that need no gradient are constants, and no work is
done for their gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class EdgeWeights:
    """One number per edge, ``values [E]``; the general form, and what a diffusivity of one's own returns.

    ``origin [N]`` is the weight of a virtual neighbour at the origin: ``v_i += origin_i log_{z_i}(o)``.

    >>> import torch
    >>> EdgeWeights(torch.tensor([0.5, 0.5]), origin=torch.tensor([0.1, 0.1])).values.tolist()
    [0.5, 0.5]
    """

    values: Tensor
    origin: Tensor | None = None


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """Graph attention from node scores ``target, source [N, H]``, averaged over heads.

    ``a_ij = mean_h m_ij exp(l_ijh) / sum_k m_ik exp(l_ikh)`` with ``l_ijh = LeakyReLU(target_ih + source_jh)`` and
    ``m`` the edges' own weights, ``edge [E]``, not negative, 1 if not given.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.kernels import edge_values
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> scores = torch.zeros(3, 1)
    >>> edge_values(path, AttentionWeights(scores, scores)).tolist()      # equal scores, equal shares
    [1.0, 0.5, 0.5, 1.0]
    """

    target: Tensor
    source: Tensor
    negative_slope: float = 0.2
    edge: Tensor | None = None


@dataclass(frozen=True, eq=False)
class AttentionRule:
    """Attention as a rule for any state: scores ``log_o(z) scoring``, ``scoring [d, 2H]``, receivers' heads first.

    >>> import torch
    >>> rule = AttentionRule(torch.zeros(2, 4))
    >>> rule.heads, rule.weights(torch.zeros(3, 2)).target.shape
    (2, torch.Size([3, 2]))
    """

    scoring: Tensor
    negative_slope: float = 0.2
    edge: Tensor | None = None

    @property
    def heads(self) -> int:
        return self.scoring.shape[1] // 2

    def weights(self, tangent: Tensor) -> AttentionWeights:
        """The weights at a state, from ``log_o(z) [N, d]``."""
        target, source = (tangent @ self.scoring).split(self.heads, 1)
        return AttentionWeights(target, source, self.negative_slope, self.edge)


@dataclass(frozen=True, eq=False)
class ChannelWeights:
    """A number per edge and channel, ``scale[i] * table[index[e]] * edge[e]``.

    ``table [K, d]`` has a row for each distinct value of the edge property, ``index [E]`` says which, ``scale [N, d]``
    normalises the rows, and ``edge [E]`` is the edges' own weight, 1 if not given. Nothing of size edges x width is
    stored.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.kernels import edge_values
    >>> pair = Graph.from_edges([(0, 1)])
    >>> weights = ChannelWeights(torch.tensor([[1.0, 2.0]]), torch.tensor([0, 0]), torch.full((2, 2), 0.5))
    >>> edge_values(pair, weights).tolist()
    [[0.5, 1.0], [0.5, 1.0]]
    """

    table: Tensor
    index: Tensor
    scale: Tensor
    edge: Tensor | None = None


LocalWeights = EdgeWeights | AttentionWeights | ChannelWeights


def weight_tensors(weights: LocalWeights) -> tuple[Tensor | None, ...]:
    """The numbers a weight is stated by, whole numbers left out."""
    if isinstance(weights, EdgeWeights):
        return weights.values, weights.origin
    if isinstance(weights, AttentionWeights):
        return weights.target, weights.source, weights.edge
    return weights.table, weights.scale, weights.edge
