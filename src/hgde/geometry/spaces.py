"""Every space by name. An entry is a subclass of :class:`Manifold` with ``build(options, width)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.geometry.curvature import Curvature
from hgde.registry import Registry
from hgde.sections import Chosen, Section, setting

SPACES: Registry[type[Manifold]] = Registry(
    "space",
    "spaces",
    home=("hgde.geometry",),
    accepts=lambda value: isinstance(value, type) and issubclass(value, Manifold),
)
"""Spaces by name (``hgde list spaces``): ``SPACES.get("ball")`` is the class, ``SPACES.register`` adds one."""


@dataclass(frozen=True)
class CurvatureSettings(Section):
    """Settings of a space of constant negative curvature."""

    curvature: float = setting(1.0, "Initial magnitude c of the curvature -c.", above=0.0)
    learn_curvature: bool = setting(True, "Train the curvature.")


class Hyperbolic(Manifold):
    """What the models of hyperbolic space share: the curvature ``-c``, a number or a :class:`Curvature` of others."""

    Settings = CurvatureSettings

    def __init__(self, c: float | Curvature = 1.0, learnable: bool = False) -> None:
        super().__init__()
        self.curvature = c if isinstance(c, Curvature) else Curvature(c, learnable)

    @classmethod
    def build(cls, options: CurvatureSettings, width: int) -> Self:
        """The space that settings describe, for points of dimension ``width``."""
        return cls(options.curvature, options.learn_curvature)

    @property
    def c(self) -> Tensor:
        """The curvature magnitude, a 0-d tensor that carries gradient when learnable."""
        value: Tensor = self.curvature()
        return value


def make_space(chosen: Chosen, width: int) -> Manifold:
    """The space that a choice from :data:`SPACES` stands for, of dimension ``width``.

    >>> from hgde import SPACES
    >>> from hgde.sections import choose
    >>> space = make_space(choose(SPACES, "ball", {"curvature": 0.5}), width=3)
    >>> type(space).__name__, round(space.c.item(), 4)
    ('PoincareBall', 0.5)
    """
    entry = chosen.entry
    made: Manifold = entry.build(chosen.options, width)
    return made
