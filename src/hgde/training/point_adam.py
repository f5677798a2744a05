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
from hgde.kernels.cpu.threads import Given, LoneCall
from hgde.training.adam import Uncompiled, unwatched

KERNEL = "points.adam"
GIVEN = ("point", "gradient", "mean", "square", "c", "lr", "beta1", "beta2", "left1", "left2", "eps", "limit")
"""Its arguments after the size."""
MARGINS = {torch.float32: 4e-3, torch.float64: 1e-5}
"""How far from the boundary geoopt keeps points, as a share of the radius."""


class PointAdam(geoopt.optim.RiemannianAdam, Uncompiled):  # type: ignore[misc]  # geoopt is untyped
    """:class:`geoopt.optim.RiemannianAdam`: same arguments, same state, same step to rounding.

    Groups that hold anything but contiguous vectors on a Poincaré ball, on the CPU, are left to geoopt, as are AMSGrad,
    weight decay and stabilisation.
    """

    def __init__(self, params: Iterable[Any], *args: Any, **options: Any) -> None:
        super().__init__(params, *args, **options)
        self._checked: Any = None
        self._goes_short = False
        self._calls: dict[tuple[int, torch.dtype], LoneCall] = {}
        for group in self.param_groups:
            if _is_plain(group):
                for point in group["params"]:
                    prepare((KERNEL,), point.dtype)

    @unwatched
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if self._checked is not self.param_groups:
            self._checked, self._goes_short = self.param_groups, all(map(_is_plain, self.param_groups))
        moved = [(point, group) for group in self.param_groups for point in group["params"] if point.grad is not None]
        if not self._goes_short or any(point.grad.is_sparse for point, _ in moved):
            return super().step(closure)
        if closure is None:
            with torch.no_grad():
                for point, group in moved:
                    self._move(point, group)
            return None
        loss = closure()
        self.step()
        return loss

    def _move(self, point: Tensor, group: dict[str, Any]) -> None:
        state = self.state[point]
        if len(state) == 0:
            state.update(step=0, exp_avg=torch.zeros_like(point), exp_avg_sq=torch.zeros_like(point))
        state["step"] += 1
        assert point.grad is not None
        c = float(point.manifold.c)  # type: ignore[attr-defined]  # a geoopt parameter
        beta1, beta2 = group["betas"]
        count, gradient = state["step"], point.grad.contiguous()
        self._call(point.numel(), point.dtype)(
            point=point, gradient=gradient, mean=state["exp_avg"], square=state["exp_avg_sq"], c=c,
            lr=float(group["lr"]), beta1=float(beta1), beta2=float(beta2), left1=1 - beta1**count,
            left2=1 - beta2**count, eps=float(group["eps"]), limit=(1 - MARGINS[point.dtype]) / c**0.5,
        )  # fmt: skip

    def _call(self, size: int, dtype: torch.dtype) -> LoneCall:
        call = self._calls.get((size, dtype))
        if call is None:
            call = self._calls[size, dtype] = LoneCall(KERNEL, dtype, 2 * size, (size, *map(Given, GIVEN)))
        return call


def _is_plain(group: dict[str, Any]) -> bool:
    return not (group["amsgrad"] or group["weight_decay"] or group["stabilize"]) and all(
        isinstance(point, geoopt.ManifoldParameter)
        and isinstance(point.manifold, geoopt.PoincareBall)
        and not isinstance(point.manifold, geoopt.PoincareBallExact)
        and point.dim() == 1
        and point.device.type == "cpu"
        and point.dtype in MARGINS
        and point.is_contiguous()
        for point in group["params"]
    )
