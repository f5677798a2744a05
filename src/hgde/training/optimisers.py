"""Riemannian Adam for points on the manifold, Adam for everything else, weight decay only where it belongs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from hgde.geometry import Curvature
from hgde.tasks import Learner
from hgde.training import checkpoint
from hgde.training.adam import Adam
from hgde.training.settings import TrainingSettings


class Optimisers:
    """The optimisers of one learner, stepped together.

    Weight decay on every parameter pulls the whole embedding to the origin, where the loss is that of guessing. It
    belongs on the feature matrix; points on the ball and curvatures never get any.
    """

    def __init__(self, learner: Learner, settings: TrainingSettings) -> None:
        import geoopt

        points = [p for p in learner.parameters() if isinstance(p, geoopt.ManifoldParameter)]
        curvatures = [p for m in learner.modules() if isinstance(m, Curvature) for p in m.parameters()]
        features = learner.model.feature_parameters()
        taken = {id(p) for p in (*points, *curvatures, *features)}
        rest = [p for p in learner.parameters() if id(p) not in taken]
        matrices, vectors = [p for p in rest if p.dim() > 1], [p for p in rest if p.dim() < 2]
        groups: list[dict[str, Any]] = [
            {"params": features, "weight_decay": settings.weight_decay},
            {"params": matrices, "weight_decay": settings.weight_decay_rest},
            {"params": vectors},
            {"params": curvatures, "lr": settings.lr_curvature or settings.lr},
        ]
        self._parameters = [*learner.parameters()]
        self.idle = _idle(bool(features), bool(matrices), bool(curvatures), bool(vectors or points))
        groups = _merged([group for group in groups if group["params"]], settings.lr)
        fused = all(p.device.type in ("cpu", "cuda") for p in learner.parameters())
        self.parts: dict[str, torch.optim.Optimizer] = {}
        if groups:
            self.parts["adam"] = Adam(groups, lr=settings.lr, fused=fused)
        if points:
            from hgde.training.point_adam import PointAdam

            self.parts["radam"] = PointAdam(points, lr=settings.lr)
        self.warm_up = settings.warm_up
        self._rates = {id(part): [group["lr"] for group in part.param_groups] for part in self.parts.values()}

    def step(self, epoch: int) -> None:
        """One step; over the first epochs (counted from 0) the learning rates rise to their values."""
        if epoch <= self.warm_up:
            share = 1.0 if epoch == self.warm_up else (epoch + 1) / (self.warm_up + 1)
            for part in self.parts.values():
                for group, rate in zip(part.param_groups, self._rates[id(part)], strict=True):
                    group["lr"] = share * rate
        for part in self.parts.values():
            part.step()

    def zero_grad(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def clip(self, longest: float) -> None:
        """Shorten the gradient of all points together, and that of everything else, to a length where it is longer.

        A point's coordinates are those of the unit ball: where space is nearly flat its gradient is longer than all
        others by ``1 / sqrt(c)``, and shortened with it they would be left to weight decay.
        """
        for part in self.parts.values():
            parameters = [parameter for group in part.param_groups for parameter in group["params"]]
            length = get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
            if not float(longest / (length + 1e-6)) >= 1:  # also where it is not a number
                clip_grads_with_norm_(parameters, longest, length)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors: dict[str, Tensor] = {}
        numbers: dict[str, Any] = {}
        for name, part in self.parts.items():
            its_tensors, its_numbers = checkpoint.flatten_optimiser(name, part)
            tensors.update(its_tensors)
            numbers.update(its_numbers)
        return tensors, numbers

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        for name, part in self.parts.items():
            checkpoint.restore_optimiser(name, part, tensors, numbers)


def _idle(features: bool, matrices: bool, curvatures: bool, others: bool) -> dict[str, str]:
    """Settings of the training that cannot act on a model with these kinds of parameters, each with the reason."""
    if not (features or matrices or curvatures or others):
        reason = "nothing of this model is trained"
        return {spec.name: reason for spec in fields(TrainingSettings) if spec.name != "calibrate"}
    reasons = {
        "weight_decay": None if features else "no matrix of the model meets the features",
        "weight_decay_rest": None if matrices else "the model has no matrix but the one that meets the features",
        "lr_curvature": None if curvatures else "no curvature is learned",
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _merged(groups: list[dict[str, Any]], lr: float) -> list[dict[str, Any]]:
    """Neighbouring parameters with the same options and dtype in one group, in order: every group costs a call."""
    each = [{"lr": lr, "weight_decay": 0.0, **group, "params": [p]} for group in groups for p in group["params"]]

    def kind(group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["weight_decay"], group["params"][0].dtype

    merged: list[dict[str, Any]] = []
    for group in each:
        if merged and kind(merged[-1]) == kind(group):
            merged[-1]["params"] += group["params"]
        else:
            merged.append(group)
    return merged
