"""What a diffusivity is: how strongly a node is drawn to each of the others.

A new one is one file in :mod:`hgde.diffusion.diffusivities` (or in a package of your own) that registers a subclass of
:class:`Diffusivity`. It never builds an ``N x N`` table: it returns an :class:`Operator`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from hgde.diffusion.operator import Operator
from hgde.geometry import Manifold
from hgde.graph import Graph
from hgde.kernels import AttentionRule
from hgde.registry import Registry
from hgde.sections import Chosen, Section, choose

D = TypeVar("D", bound="type[Diffusivity]")


class Diffusivity(nn.Module):
    """Base of all diffusivities; subclasses take ``(options, width)``, ``options`` an instance of their ``Settings``.

    ``constant_in_time`` says that the operator does not depend on the state, so that a solve asks for it only once.

    >>> from hgde import DIFFUSIVITIES
    >>> issubclass(DIFFUSIVITIES.get("isotropic"), Diffusivity)
    True
    """

    Settings: ClassVar[type[Section]] = Section
    constant_in_time: ClassVar[bool] = False

    def __init__(self, options: Section | None = None, width: int = 0) -> None:
        super().__init__()

    @property
    def kernels(self) -> tuple[str, ...]:
        """Parts of :func:`hgde.kernels.warm_up` that its weights need on the ball."""
        return ("edge",)

    def forward(self, z: Tensor, graph: Graph, manifold: Manifold) -> Operator:
        """The weights at the state ``z [N, d]``."""
        raise NotImplementedError

    def rule(self, graph: Graph, dtype: torch.dtype) -> AttentionRule | None:
        """Its weights as a rule for any state, where they are attention: a kernel then does all steps in one call."""
        return None

    def prepare(self, graph: Graph) -> None:
        """Work out what depends on the graph alone (called once, before training)."""


def _accepts(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Diffusivity)


_HOME = ("hgde.diffusion.diffusivities",)
DIFFUSIVITIES: Registry[type[Diffusivity]] = Registry("diffusivity", "diffusivities", _HOME, _accepts)
"""Subclasses of :class:`Diffusivity` by name (``hgde list diffusivities``); ``register`` adds one."""
LOCAL: Registry[type[Diffusivity]] = Registry("local diffusivity", "local_diffusivities", _HOME, _accepts)
"""Those that weigh edges alone, which a global part can be mixed with."""


def register_local(name: str) -> Callable[[D], D]:
    """Decorator: a diffusivity that weighs edges alone, by itself or as the local part of a mixture.

    >>> from hgde.diffusion import LOCAL, Diffusivity
    >>> @register_local("weightless")
    ... class Weightless(Diffusivity):
    ...     '''No pull at all.'''
    >>> "weightless" in LOCAL.names()
    True
    """

    def add(entry: D) -> D:
        DIFFUSIVITIES.add(name, entry)
        LOCAL.add(name, entry)
        return entry

    return add


def make_diffusivity(name: str | Chosen, width: int, **options: Any) -> Diffusivity:
    """The diffusivity of a name with its options (``"package.module:Name"`` works too), or of a settings' choice.

    >>> make_diffusivity("attention", width=8, heads=2).constant_in_time
    False
    """
    chosen = choose(DIFFUSIVITIES, name, options) if isinstance(name, str) else name
    made: Diffusivity = chosen.entry(chosen.options, width)
    return made
