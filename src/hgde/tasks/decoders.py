"""From two points to the log-odds of a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.geometry import Euclidean, Manifold, PoincareBall
from hgde.kernels import link_logits, pair_squares
from hgde.registry import Registry
from hgde.sections import Section, setting


class PairDecoder(nn.Module):
    """Log-odds ``[m]`` that the pairs ``[2, m]`` of points ``z [N, d]`` are linked."""

    Settings: ClassVar[type[Section]] = Section

    def __init__(self, options: Section, manifold: Manifold) -> None:
        super().__init__()
        self.manifold = manifold

    def forward(self, z: Tensor, pairs: Tensor) -> Tensor:
        # index_select, not z[pairs]: its gradient is summed in a fixed order, so that a seed gives the same bits.
        return self.compare(z.index_select(0, pairs[0]), z.index_select(0, pairs[1]))

    def compare(self, x: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError


DECODERS: Registry[type[PairDecoder]] = Registry(
    "decoder",
    "decoders",
    home=("hgde.tasks.decoders",),
    accepts=lambda value: isinstance(value, type) and issubclass(value, PairDecoder),
)


@dataclass(frozen=True)
class FermiDiracSettings(Section):
    r: float = setting(2.0, "Squared distance at which a link is as likely as not.", flag="fermi_r")
    t: float = setting(
        1.0, "Temperature; larger means that probability falls more slowly with distance.", above=0, flag="fermi_t"
    )
    learn: bool = setting(False, "Train both numbers.", flag="learn_fermi")


@DECODERS.register("fermi-dirac")
class FermiDirac(PairDecoder):
    """``p(i ~ j) = 1 / (exp((d(z_i, z_j)^2 - r) / t) + 1)``."""

    Settings = FermiDiracSettings

    def __init__(self, options: FermiDiracSettings, manifold: Manifold) -> None:
        super().__init__(options, manifold)
        self.r: Tensor | float = options.r
        self.log_t: Tensor | None = None
        self.t = options.t
        if options.learn:
            self.r = nn.Parameter(torch.tensor(options.r))
            self.log_t = nn.Parameter(torch.tensor(options.t).log())

    @property
    def temperature(self) -> Tensor | float:
        return self.t if self.log_t is None else self.log_t.exp()

    def forward(self, z: Tensor, pairs: Tensor) -> Tensor:
        if z.dim() == 2 and type(self.manifold) is PoincareBall:
            return link_logits(z, pairs, self.manifold.c, self.r, self.temperature)
        if z.dim() == 2 and type(self.manifold) is Euclidean:
            return (self.r - self.manifold.scale**2 * pair_squares(z, pairs)) / self.temperature
        return super().forward(z, pairs)

    def compare(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.r - self.manifold.dist(x, y).square()) / self.temperature


@DECODERS.register("dot")
class DotProduct(PairDecoder):
    """``p(i ~ j) = sigmoid(<u_i, u_j>)`` with ``u = log_o z``."""

    def compare(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.manifold.logmap0(x) * self.manifold.logmap0(y)).sum(-1)
