"""A global part over all pairs of nodes, mixed with a local one of choice."""

from __future__ import annotations

from dataclasses import dataclass

from hgde.diffusion.diffusivities.everywhere import Mixture, MixtureSettings
from hgde.diffusion.diffusivity import DIFFUSIVITIES, LOCAL
from hgde.sections import Chosen, choice, setting


@DIFFUSIVITIES.register("local-global")
class LocalGlobal(Mixture):
    """The paper's local-global scheme: ``beta * g_ij + (1 - beta) * a_ij``, ``a`` any diffusivity on edges.

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> operator = LocalGlobal(LocalGlobal.Settings(), 4)(torch.zeros(3, 4), path, PoincareBall())
    >>> operator.local is not None, operator.everywhere is not None
    (True, True)
    """

    @dataclass(frozen=True)
    class Settings(MixtureSettings):
        # Not `heads` on the command line: that is what the local part's are called.
        heads: int = setting(1, "Attention heads of the global part.", at_least=1, flag="global_heads")
        local: Chosen = choice(LOCAL, "attention", "Local part of `local-global`.")

    def __init__(self, options: Settings | None = None, width: int = 16) -> None:
        chosen = options or self.Settings()
        near = chosen.local.entry(chosen.local.options, width)
        super().__init__(width, near, chosen.heads, chosen.beta, chosen.learn_beta)
