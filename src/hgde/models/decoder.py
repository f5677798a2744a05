"""From points of the ball to classes or links."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hgde.geometry import PoincareBall
from hgde.kernels import log_origin
from hgde.models.linear import HyperbolicLinear


class NodeDecoder(nn.Module):
    """Class scores: a hyperbolic linear layer on ``log_o z``, read off in the tangent space at the origin."""

    def __init__(self, width: int, num_classes: int, manifold: PoincareBall, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = HyperbolicLinear(width, num_classes, manifold)
        self.dropout = dropout

    def forward(self, z: Tensor) -> Tensor:
        """Logits ``[N, classes]``."""
        return self.linear.tangent(log_origin(z, self.linear.manifold.c), self.dropout)


class LinkDecoder(nn.Module):
    """Fermi-Dirac: ``p(i ~ j) = 1 / (exp((d(z_i, z_j)^2 - r) / t) + 1)``."""

    def __init__(self, manifold: PoincareBall, r: float = 2.0, t: float = 1.0) -> None:
        super().__init__()
        self.manifold, self.r, self.t = manifold, r, t

    def forward(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Log-odds ``[M]`` of the node pairs ``[2, M]``; ``sigmoid`` of them are the probabilities."""
        # index_select, not z[pairs]: its gradient is summed in a fixed order, so that a seed gives the same bits.
        squared = self.manifold.dist(z.index_select(0, pairs[0]), z.index_select(0, pairs[1])).square()
        return (self.r - squared) / self.t

    def probability(self, z: Tensor, pairs: Tensor) -> Tensor:
        return torch.sigmoid(self(z, pairs))

    def extra_repr(self) -> str:
        return f"r={self.r}, t={self.t}"
