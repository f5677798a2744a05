"""From node features to points of the diffusion's ball."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import dropout as drop

from hgde.geometry import PoincareBall
from hgde.graph import Features
from hgde.kernels import ACTIVATIONS, exp_origin
from hgde.models.linear import HyperbolicLinear


class Encoder(nn.Module):
    """``z(0) = exp_o^{c_t}(act(log_o^{c_s}(exp_o^{c_s}(x W) ⊕ b)))``: linear layer on one ball, start on another.

    Args:
        layers: how many linear layers on the source ball, each followed by the activation.
        dropout: on the features.
        state_dropout: on what every layer gives, so also on the tangent vectors that become the start.
    """

    def __init__(
        self,
        in_features: int,
        width: int,
        source: PoincareBall,
        target: PoincareBall,
        activation: str = "identity",
        dropout: float = 0.0,
        layers: int = 1,
        state_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.linear = HyperbolicLinear(in_features, width, source)
        self.hidden = nn.ModuleList(HyperbolicLinear(width, width, source) for _ in range(layers - 1))
        self.target, self.activation = target, activation
        self.dropout, self.state_dropout = dropout, state_dropout

    def forward(self, features: Features) -> Tensor:
        tangent = self._activate(self.linear.tangent(features, self.dropout))
        for layer in self.hidden:
            assert isinstance(layer, HyperbolicLinear)
            tangent = self._activate(layer.tangent(tangent))
        return exp_origin(tangent, self.target.c)

    def _activate(self, tangent: Tensor) -> Tensor:
        return drop(ACTIVATIONS[self.activation](tangent), self.state_dropout, self.training)

    def extra_repr(self) -> str:
        return f"activation={self.activation}, dropout={self.dropout}, state_dropout={self.state_dropout}"
