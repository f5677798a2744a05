"""Maps at the origin: exponential, logarithm, and what a hyperbolic bias does to a tangent vector there."""

from __future__ import annotations

from torch import Tensor

from hgde.geometry import ball, numerics
from hgde.kernels.backend import Backend, use_fused
from hgde.kernels.reference import artanh_ratio


def exp_origin(u: Tensor, c: Tensor, backend: Backend = "auto") -> Tensor:
    """``exp_o(u)`` for ``u [N, d]``, pulled back into the ball; one pass each way where the fused kernels serve."""
    if u.dim() == 2 and use_fused(backend, u, c):
        from hgde.kernels import fused_origin

        return fused_origin.apply(u, c, None, fused_origin.EXP)
    return ball.expmap0(u, c)


def log_origin(z: Tensor, c: Tensor, backend: Backend = "auto") -> Tensor:
    """``log_o(z)`` for ``z [N, d]``; one pass each way where the fused kernels serve."""
    if z.dim() == 2 and use_fused(backend, z, c):
        from hgde.kernels import fused_origin

        return fused_origin.apply(z, c, None, fused_origin.LOG)
    return ball.logmap0(z, c)


def translate_tangent(u: Tensor, point: Tensor, c: Tensor, backend: Backend = "auto") -> Tensor:
    """``log_o(exp_o(u) ⊕ b)`` for vectors ``u [N, d]`` and one point ``b [d]`` (eq. mobius-bias-addition).

    The result is ``alpha u + beta b`` with two scalars for each row that depend on ``|u|^2``, ``<u, b>`` and ``|b|^2``
    alone: ``e = T u`` with ``T = tanh(r)/r``, ``B_e = 1/cosh^2 r``, and with ``D = B_e B_b + c|e + b|^2``
    ``e ⊕ b = ((B_e + c|e + b|^2) e + B_e b) / D``. So two operations of size ``N d``, the rest on columns.
    """
    if use_fused(backend, u, point, c):
        from hgde.kernels import fused_origin

        return fused_origin.apply(u, c, point, fused_origin.TRANSLATE)
    margin = numerics.limits(u.dtype).margin
    squared = c * numerics.squared_norm(u)
    ratio, b_e = numerics.tanhc(squared), numerics.sech2(squared)
    own = c * (point * point).sum()
    # sum of squares of the row's coefficients: c|e + b|^2, no less than zero where e is about -b.
    spread = (squared * ratio * ratio + 2 * c * ratio * (u @ point)[:, None] + own).clamp_min(0.0)
    product = b_e * (1 - own).clamp_min(margin)
    denominator = product + spread
    scale = artanh_ratio(spread / denominator, (product / denominator).clamp_min(2 * margin)) / denominator
    return (scale * (b_e + spread) * ratio) * u + (scale * b_e) * point
