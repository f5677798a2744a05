"""geoopt's Riemannian Adam with a short way for single points on a ball, such as a hyperbolic layer's bias.

geoopt takes some sixty tensor operations a step and point, each far more expensive than the sixteen numbers it moves:
on Cora more than a layer of diffusion. Here the same step is one compiled pass in double precision
(:mod:`hgde.kernels.cpu.points`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import geoopt
import torch
from torch import Tensor

from hgde.compiler.load import prepare
from hgde.kernels.cpu.threads import LoneCall
from hgde.training.adam import Uncompiled, unwatched

KERNEL = "points.adam"
MARGINS = {torch.float32: 4e-3, torch.float64: 1e-5}
"""How far from the boundary geoopt keeps points, as a share of the radius."""


class PointAdam(geoopt.optim.RiemannianAdam, Uncompiled):  # type: ignore[misc]  # geoopt is untyped
    """:class:`geoopt.optim.RiemannianAdam`: same arguments, same state, same step to rounding.

    Groups that hold anything but contiguous vectors on a Poincaré ball, on the CPU, are left to geoopt, as are AMSGrad,
    weight decay and stabilisation.
    """

    def __init__(self, params: Iterable[Any], *args: Any, **options: Any) -> None:
        super().__init__(params, *args, **options)
        for group in self.param_groups:
            if _is_plain(group):
                for point in group["params"]:
                    prepare((KERNEL,), point.dtype)

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
        c = float(point.manifold.c)  # type: ignore[attr-defined]  # a geoopt parameter
        beta1, beta2 = group["betas"]
        size, count, limit = point.numel(), state["step"], (1 - MARGINS[point.dtype]) / c**0.5
        rates = (c, group["lr"], beta1, beta2, 1 - beta1**count, 1 - beta2**count, group["eps"], limit)
        given = (point, point.grad.contiguous(), state["exp_avg"], state["exp_avg_sq"])
        LoneCall(KERNEL, point.dtype, 2 * size, (size, *given, *map(float, rates)))()


def _is_plain(group: dict[str, Any]) -> bool:
    return not (group["amsgrad"] or group["weight_decay"] or group["stabilize"]) and all(
        isinstance(point, geoopt.ManifoldParameter)
        and isinstance(point.manifold, geoopt.PoincareBall)
        and not isinstance(point.manifold, geoopt.PoincareBallExact)
        and point.dim() == 1
        and point.device.type == "cpu"
        and point.dtype in MARGINS
        and point.is_contiguous()
        and (point.grad is None or not point.grad.is_sparse)
        for point in group["params"]
    )
