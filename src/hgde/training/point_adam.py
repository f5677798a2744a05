"""geoopt's Riemannian Adam with a short way for single points on a ball, such as a hyperbolic layer's bias.

geoopt takes some sixty tensor operations a step and point, each far more expensive than the sixteen numbers it moves:
on Cora more than a layer of diffusion. Here the same step is a few sums in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import geoopt
import numpy as np
import torch
from torch import Tensor

from hgde.training.adam import Uncompiled, unwatched

Array = np.ndarray[Any, Any]


class PointAdam(geoopt.optim.RiemannianAdam, Uncompiled):  # type: ignore[misc]  # geoopt is untyped
    """:class:`geoopt.optim.RiemannianAdam`: same arguments, same state, same step to rounding.

    Groups that hold anything but contiguous vectors on a Poincaré ball, on the CPU, are left to geoopt, as are AMSGrad,
    weight decay and stabilisation.
    """

    @unwatched
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if not all(_is_plain(group) for group in self.param_groups):
            return super().step(closure)
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                for point in group["params"]:
                    if point.grad is not None:
                        self._move(point, group)
        return loss

    def _move(self, point: Tensor, group: dict[str, Any]) -> None:
        state = self.state[point]
        if len(state) == 0:
            state.update(step=0, exp_avg=torch.zeros_like(point), exp_avg_sq=torch.zeros_like(point))
        state["step"] += 1
        assert point.grad is not None
        x, g, mean, square = (t.numpy() for t in (point, point.grad, state["exp_avg"], state["exp_avg_sq"]))
        c = float(point.manifold.c)  # type: ignore[attr-defined]  # a geoopt parameter
        beta1, beta2 = group["betas"]
        _step(x, g, mean, square, state["step"], c, group["lr"], beta1, beta2, group["eps"])


def _is_plain(group: dict[str, Any]) -> bool:
    return not (group["amsgrad"] or group["weight_decay"] or group["stabilize"]) and all(
        isinstance(point, geoopt.ManifoldParameter)
        and isinstance(point.manifold, geoopt.PoincareBall)
        and not isinstance(point.manifold, geoopt.PoincareBallExact)
        and point.dim() == 1
        and point.device.type == "cpu"
        and point.is_contiguous()
        and (point.grad is None or not point.grad.is_sparse)
        for point in group["params"]
    )


def _step(
    point: Array, gradient: Array, mean: Array, square: Array, count: int,
    c: float, lr: float, beta1: float, beta2: float, eps: float,
) -> None:  # fmt: skip
    """One step in place: averages of the Riemannian gradient and of its squared length, then retraction by addition,
    projection into the ball, and transport of the average ``PT_{x -> y}(m) = gyr[y, -x] m (lambda_x / lambda_y)``."""
    x, g, m = point.astype(np.float64), gradient.astype(np.float64), mean.astype(np.float64)
    xx = float(x @ x)
    rest_x = max(1 - c * xx, 1e-15)
    # lambda^2 |g / lambda^2|^2 = |g|^2 / lambda^2
    shrink = 0.25 * rest_x * rest_x
    m = beta1 * m + (1 - beta1) * shrink * g
    square *= beta2
    square += (1 - beta2) * shrink * float(g @ g)
    slope = m / (1 - beta1**count) / (np.sqrt(square.astype(np.float64) / (1 - beta2**count)) + eps)
    y = x - lr * slope
    limit = (1 - (4e-3 if point.dtype == np.float32 else 1e-5)) / c**0.5
    yy = float(y @ y)
    if yy**0.5 > limit:
        y *= limit / yy**0.5
        yy = float(y @ y)
    mean[:] = _transport(x, y, m, xx, yy, c) * (max(1 - c * yy, 1e-15) / rest_x)
    point[:] = y


def _transport(x: Array, y: Array, m: Array, xx: float, yy: float, c: float) -> Array:
    """``gyr[y, -x] m``, the squared lengths of both points being known."""
    xy, xm, ym = float(x @ y), float(x @ m), float(y @ m)
    along_y = -c * c * ym * xx - c * xm + 2 * c * c * xy * xm
    along_x = c * ym - c * c * xm * yy
    turned: Array = m + 2 * (along_y * y + along_x * x) / max(1 - 2 * c * xy + c * c * xx * yy, 1e-15)
    return turned
