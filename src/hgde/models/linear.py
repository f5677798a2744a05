"""The hyperbolic linear layer shared by encoder and decoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hgde.geometry import PoincareBall, ball, manifold_parameter
from hgde.graph import Features, SparseFeatures
from hgde.kernels import sparse_matmul, translate_tangent


class HyperbolicLinear(nn.Module):
    """Möbius matrix product and translation by a point (eqs. mobius-feature-transformation, mobius-bias-addition).

    It takes vectors ``u`` in the tangent space at the origin, because both of its callers have them at hand: features
    are what the encoder maps with ``exp_o``, and ``log_o`` of that is the features again. So
    ``exp_o(log_o(exp_o(x)) W)`` is ``exp_o(x W)``: one product, sparse when ``x`` is. The bias is a point of the ball,
    ``exp_o(x W) ⊕ b``.

    ``b`` is kept as the point ``sqrt(c) b`` of the unit ball, where Riemannian optimisers move it: a trained curvature
    shrinks or widens the ball and would leave a point with fixed coordinates outside it.
    """

    def __init__(self, in_features: int, out_features: int, manifold: PoincareBall, bias: bool = True) -> None:
        super().__init__()
        self.manifold = manifold
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        nn.init.xavier_uniform_(self.weight)
        self.bias = manifold_parameter(torch.zeros(out_features), PoincareBall(1.0)) if bias else None

    def forward(self, u: Features, dropout: float = 0.0) -> Tensor:
        """Points ``[N, out]`` on the ball from tangent vectors ``[N, in]``; ``dropout`` acts on ``u`` in training."""
        z = self.manifold.expmap0(self._product(u, dropout))
        if self.bias is None:
            return z
        c = self.manifold.c
        return ball.mobius_add(z, self.bias * c.rsqrt(), c)

    def tangent(self, u: Features, dropout: float = 0.0) -> Tensor:
        """``log_o`` of :meth:`forward`, ``[N, out]``, at a fraction of its cost: neither caller needs the points."""
        product, c = self._product(u, dropout), self.manifold.c
        return product if self.bias is None else translate_tangent(product, self.bias * c.rsqrt(), c)

    def _product(self, u: Features, dropout: float) -> Tensor:
        if isinstance(u, SparseFeatures):
            return sparse_matmul(u, self.weight, dropout, self.training)
        return nn.functional.dropout(u, dropout, self.training) @ self.weight

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, bias={self.bias is not None}"
