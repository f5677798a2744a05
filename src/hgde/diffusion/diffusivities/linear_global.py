"""The global scheme at linear cost."""

from __future__ import annotations

from dataclasses import dataclass

from hgde.diffusion.diffusivities.everywhere import Global
from hgde.diffusion.diffusivity import DIFFUSIVITIES
from hgde.kernels import linear
from hgde.sections import setting


@DIFFUSIVITIES.register("linear-global")
class LinearGlobal(Global):
    """Like ``global``, summed over landmarks and, for what these leave out, over a cheap form: cost ``N`` for ``N^2``.

    Graphs with no more nodes than landmarks are treated exactly. See :mod:`hgde.kernels.linear`.

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> operator = LinearGlobal(LinearGlobal.Settings(landmarks=2), 4)(torch.zeros(3, 4), path, PoincareBall())
    >>> operator.everywhere.landmarks
    2
    """

    @dataclass(frozen=True)
    class Settings(Global.Settings):
        landmarks: int = setting(
            linear.LANDMARKS,
            "Number of nodes sampled to represent all others; the error falls with its square root.",
            at_least=2,
        )

    def __init__(self, options: Settings | None = None, width: int = 16) -> None:
        chosen = options or self.Settings()
        super().__init__(chosen, width)
        self.landmarks = chosen.landmarks
