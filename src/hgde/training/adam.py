"""torch's fused Adam, called straight away: what torch does around the kernel costs more than a small model's step."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import torch

Step = TypeVar("Step", bound=Callable[..., Any])


def unwatched(step: Step) -> Step:
    """Keep torch from wrapping an optimiser's step for its profiler, which takes as long as a small step."""
    step.hooked = True  # type: ignore[attr-defined]  # how torch marks what it has wrapped
    return step


class Uncompiled(torch.optim.Optimizer):
    """Methods as torch has them, without its mark that they are not to be compiled: the first call of a marked method
    loads torch's compiler, which takes longer than many a small training run."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


class Adam(torch.optim.Adam, Uncompiled):
    """:class:`torch.optim.Adam`: same arguments, same state, same bits.

    The parameters of a group are of one dtype and on one device. Steps that are not fused are left to torch.

    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> optimiser = Adam([weight], lr=0.1, fused=True)
    >>> for _ in range(2):
    ...     weight.grad = torch.ones(2)
    ...     optimiser.step()
    >>> [round(number, 4) for number in weight.tolist()]
    [0.8, 0.8]
    """

    @unwatched
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        moved = [[p for p in group["params"] if p.grad is not None] for group in self.param_groups]
        if closure is not None or not all(group["fused"] for group in self.param_groups):
            return super().step(closure)
        for group, parameters in zip(self.param_groups, moved, strict=True):
            if not all(parameter in self.state for parameter in parameters):
                self._init_group(group, [], [], [], [], [], [])  # type: ignore[no-untyped-call]  # torch's
        taken = [self.state[parameter]["step"] for parameters in moved for parameter in parameters]
        if taken:
            torch._foreach_add_(taken, 1)
        for group, parameters in zip(self.param_groups, moved, strict=True):
            if parameters:
                states = [self.state[parameter] for parameter in parameters]
                torch._fused_adam_(
                    parameters,
                    [parameter.grad for parameter in parameters],
                    [state["exp_avg"] for state in states],
                    [state["exp_avg_sq"] for state in states],
                    [],
                    [state["step"] for state in states],
                    lr=group["lr"],
                    beta1=group["betas"][0],
                    beta2=group["betas"][1],
                    weight_decay=group["weight_decay"],
                    eps=group["eps"],
                    amsgrad=False,
                    maximize=False,
                )
        return None
