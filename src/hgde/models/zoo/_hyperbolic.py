"""Möbius layers on the ball, in coordinates of the tangent space at the origin.

Hyperbolic layers of the HNN family map to that space, act there and map back: ``exp_o(M log_o(x))``,
``exp_o(act(log_o(x)))``. Between two of them ``log_o exp_o`` is the identity, also where the curvature changes, so the
layers here hand on ``u = log_o(x)`` and leave the tangent space only for what needs the ball itself.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hgde.geometry import PoincareBall, ball
from hgde.geometry.numerics import dot, squared_norm
from hgde.graph import Features
from hgde.kernels.chance import dropout
from hgde.models.zoo._common import product


class MobiusLinear(nn.Module):
    """``log_o(exp_o(u W) ⊕ exp_o(b))``: Möbius matrix product and bias. ``[N, in] -> [N, out]``

    Dropout acts on the matrix, as in HNN and HGCN.
    """

    def __init__(self, inputs: int, outputs: int, space: PoincareBall, p: float = 0.0) -> None:
        super().__init__()
        self.space, self.p = space, p
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight, gain=2**0.5)

    def forward(self, u: Features) -> Tensor:
        c = self.space.c
        y = product(u, dropout(self.weight, self.p, self.training))
        return ball.logmap0(ball.mobius_add(ball.expmap0(y, c), ball.expmap0(self.bias, c), c), c)


class HyperbolicMLR(nn.Module):
    """Signed distances to hyperplanes, ``[N, d] -> [N, classes]`` (Ganea et al., eq. 25).

    ``lambda_p |a| / sqrt(c) asinh(2 sqrt(c) <-p ⊕ x, a> / ((1 - c|-p ⊕ x|^2) |a|))`` for the hyperplane through ``p``
    with normal ``a`` (both given at the origin). Cost and memory ``N classes d``.
    """

    def __init__(self, width: int, classes: int, space: PoincareBall) -> None:
        super().__init__()
        self.space = space
        self.points = nn.Parameter(torch.zeros(classes, width))
        self.normals = nn.Parameter(torch.empty(classes, width))
        nn.init.xavier_uniform_(self.normals)

    def forward(self, x: Tensor) -> Tensor:
        c = self.space.c
        # exp_o(points), and the transported normals: their length at p is |normals| times lambda_o.
        p = ball.expmap0(self.points, c)
        moved = ball.mobius_add(-p, x[:, None, :], c)
        length = squared_norm(self.normals).clamp_min(1e-30).sqrt()
        sine = 2 * c.sqrt() * dot(moved, self.normals) / ((1 - c * squared_norm(moved)) * length)
        return (2 * length * torch.asinh(sine) / c.sqrt()).squeeze(-1)
