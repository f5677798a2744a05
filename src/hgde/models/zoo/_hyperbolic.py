"""Möbius layers on the ball, in coordinates of the tangent space at the origin.

Hyperbolic layers of the HNN family map to that space, act there and map back: ``exp_o(M log_o(x))``,
``exp_o(act(log_o(x)))``. Between two of them ``log_o exp_o`` is the identity, also where the curvature changes, so the
layers here hand on ``u = log_o(x)`` and leave the tangent space only for what needs the ball itself.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hgde.geometry import PoincareBall
from hgde.geometry.numerics import dot, squared_norm
from hgde.graph import Features
from hgde.kernels import exp_origin, translate_tangent
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
        return translate_tangent(y, exp_origin(self.bias[None], c).squeeze(0), c)


def across_planes(x: Tensor, p: Tensor, normals: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """``2 <-p ⊕ x, a> / ((1 - c|-p ⊕ x|^2) |a|)`` for all ``x [N, d]`` and planes ``p, a [K, d]``, and ``|a|``.

    ``[N, K]`` and ``[1, K]``. ``-p ⊕ x`` is a combination of ``x`` and ``p`` whose length is known: with
    ``A = 1 - 2c<p, x> + c|x|^2`` and ``B = 1 - c|p|^2`` the fraction is
    ``2 (B <x, a> - A <p, a>) / (B (1 - c|x|^2) |a|)``. Two products, cost ``N K d``, memory ``N K``. ``c`` of any sign.
    """
    length = squared_norm(normals).clamp_min(1e-30).sqrt().T
    squares = squared_norm(x)
    a, b = 1 - 2 * c * (x @ p.T) + c * squares, 1 - c * squared_norm(p).T
    return 2 * (b * (x @ normals.T) - a * dot(p, normals).T) / (b * (1 - c * squares) * length), length


class HyperbolicMLR(nn.Module):
    """Signed distances to hyperplanes, ``[N, d] -> [N, classes]`` (Ganea et al., eq. 25).

    ``lambda_p |a| / sqrt(c) asinh(2 sqrt(c) <-p ⊕ x, a> / ((1 - c|-p ⊕ x|^2) |a|))`` for the hyperplane through ``p``
    with normal ``a`` (both given at the origin); see :func:`across_planes`.
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
        across, length = across_planes(x, exp_origin(self.points, c), self.normals, c)
        return 2 * length * torch.asinh(c.sqrt() * across) / c.sqrt()
