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

    The parameters of a group are of one dtype and on one device. Steps that are not fused, or not Adam's usual ones
    (``amsgrad``, ``maximize``), are left to torch.

    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> optimiser = Adam([weight], lr=0.1, fused=True)
    >>> for _ in range(2):
    ...     weight.grad = torch.ones(2)
    ...     optimiser.step()
    >>> [round(number, 4) for number in weight.tolist()]
    [0.8, 0.8]
    """

    _known: tuple[Any, list[int], list[dict[str, Any]]] = ({}, [], [])
    """The state, the parameters moved last, and the lists that torch's kernel takes of each group of them."""

    @unwatched
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if closure is not None or not all(_is_plain(group) for group in self.param_groups):
            return super().step(closure)
        moved = [[p for p in group["params"] if p.grad is not None] for group in self.param_groups]
        names = [id(parameter) for parameters in moved for parameter in parameters]
        state, known, lists = self._known
        if state is not self.state or known != names:
            lists = self._lists(moved)
            self._known = self.state, names, lists
        if names:
            torch._foreach_add_([count for tensors in lists for count in tensors["state_steps"]], 1)
        for group, parameters, tensors in zip(self.param_groups, moved, lists, strict=True):
            if parameters:
                torch._fused_adam_(
                    parameters,
                    [parameter.grad for parameter in parameters],
                    **tensors,
                    lr=group["lr"],
                    beta1=group["betas"][0],
                    beta2=group["betas"][1],
                    weight_decay=group["weight_decay"],
                    eps=group["eps"],
                    amsgrad=False,
                    maximize=False,
                )
        return None

    def _lists(self, moved: list[list[torch.Tensor]]) -> list[dict[str, Any]]:
        lists = []
        for group, parameters in zip(self.param_groups, moved, strict=True):
            if not all(parameter in self.state for parameter in parameters):
                self._init_group(group, [], [], [], [], [], [])  # type: ignore[no-untyped-call]  # torch's
            names = {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "state_steps": "step"}
            tensors = {theirs: [self.state[p][name] for p in parameters] for theirs, name in names.items()}
            lists.append({**tensors, "max_exp_avg_sqs": []})
        return lists


def _is_plain(group: dict[str, Any]) -> bool:
    return bool(group["fused"]) and not group["amsgrad"] and not group["maximize"]
