"""From node features to points of the diffusion's ball."""

from __future__ import annotations

from torch import Tensor, nn

from hgde.geometry import PoincareBall
from hgde.graph import Features
from hgde.kernels import ACTIVATIONS, exp_origin
from hgde.models.linear import HyperbolicLinear


class Encoder(nn.Module):
    """``z(0) = exp_o^{c_t}(act(log_o^{c_s}(exp_o^{c_s}(x W) ⊕ b)))``: linear layer on one ball, start on another."""

    def __init__(
        self,
        in_features: int,
        width: int,
        source: PoincareBall,
        target: PoincareBall,
        activation: str = "identity",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.linear = HyperbolicLinear(in_features, width, source)
        self.target, self.activation, self.dropout = target, activation, dropout

    def forward(self, features: Features) -> Tensor:
        tangent = self.linear.tangent(features, self.dropout)
        return exp_origin(ACTIVATIONS[self.activation](tangent), self.target.c)

    def extra_repr(self) -> str:
        return f"activation={self.activation}, dropout={self.dropout}"
