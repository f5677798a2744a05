"""What a model is to a task and a trainer. A new model is one file that registers a subclass of :class:`Model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch import Tensor, nn

from hgde.geometry import Curvature, Euclidean, Manifold
from hgde.graph import Features, Graph
from hgde.kernels import give_back
from hgde.registry import Registry
from hgde.sections import Section, SettingsError

T = TypeVar("T")

MODELS: Registry[type[Model]] = Registry(
    "model",
    "models",
    home=("hgde.models", "hgde.models.zoo"),
    accepts=lambda value: isinstance(value, type) and issubclass(value, Model),
)
"""Subclasses of :class:`Model` by name (``hgde list models``); ``MODELS.register`` adds one."""


@dataclass(frozen=True)
class Shape:
    """What a model is built for.

    ``outputs`` is how many numbers per node a task asks for (a logit per class, a value per target); ``None`` when it
    asks for points instead, to be compared in pairs.

    >>> Shape(in_features=3, num_nodes=5, outputs=2).outputs
    2
    """

    in_features: int
    num_nodes: int
    outputs: int | None = None


def built(part: T | None) -> T:
    """The part of a model that gives a task's outputs; refused where the model was built without one."""
    if part is None:
        raise TypeError("this model was built to compare points in pairs: use embed(features, graph)")
    return part


class Model(nn.Module):
    """A network that turns the features of all nodes of a graph into numbers, or points, for each node.

    Subclasses take ``(settings, shape)``, where ``settings`` is an instance of their own class ``Settings``, draw their
    initial weights in the constructor, and implement :meth:`embed` and either :meth:`readout` or :meth:`forward`.

    ``paper``: what to cite.  ``presets``: published settings by name, as nested plain values of the sections ``model``,
    ``training``, ``preprocessing``.  ``pair_decoder``: the link decoder its paper uses.  ``reroutes``: its layers are
    another library's and draw from torch's global generator (see :mod:`hgde.randomness`).

    >>> from hgde import MODELS
    >>> issubclass(MODELS.get("gcn"), Model)
    True
    """

    Settings: ClassVar[type[Section]] = Section
    paper: ClassVar[str] = ""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    pair_decoder: ClassVar[str] = "fermi-dirac"
    reroutes: ClassVar[bool] = False

    @classmethod
    def candidates(cls, task: str, graph: Graph, labelled: float = 1.0) -> tuple[str, ...]:
        """Names of the presets to choose among for a task on a graph, the simplest first.

        ``labelled`` is the share of nodes to learn from.
        """
        return ("default",)

    @classmethod
    def preset(cls, name: str) -> Mapping[str, Any]:
        """The preset of that name; refused with the ones there are."""
        if name not in cls.presets:
            raise SettingsError(
                f"unknown preset {name!r} for this model; choose one of {', '.join(('auto', 'none', *cls.presets))} "
                "(`hgde list presets`)"
            )
        return cls.presets[name]

    @property
    def manifold(self) -> Manifold:
        """The space that :meth:`embed` gives points of."""
        return Euclidean()

    def embed(self, features: Features, graph: Graph) -> Tensor:
        """Points of :attr:`manifold`, ``[N, width]``: what links are decoded from and pictures drawn of."""
        raise NotImplementedError

    def embed_some(self, features: Features, graph: Graph, nodes: Tensor) -> Tensor:
        """Points of some nodes, ``[n, width]``; a model that can does without what these do not depend on."""
        return self.embed(features, graph).index_select(0, nodes)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        """``[N, outputs]``: class logits or values, as the task reads them."""
        return self.readout(self.embed(features, graph))

    def readout(self, z: Tensor) -> Tensor:
        """``[n, outputs]`` of some of the points of :meth:`embed`; for models that read out each node by itself.

        A model that has it needs no :meth:`forward` of its own, and only the nodes asked for are read out.
        """
        raise NotImplementedError

    def outputs_of(self, features: Features, graph: Graph, nodes: Tensor) -> Tensor:
        """``[n, outputs]`` of some nodes, for models that read out each node by itself."""
        return self.readout(self.embed_some(features, graph, nodes))

    @property
    def reads_out_each(self) -> bool:
        """Whether :meth:`readout` of a node's point is all there is to its output."""
        return type(self).readout is not Model.readout

    def feature_parameters(self) -> list[nn.Parameter]:
        """The parameters that meet the input features, the ones that weight decay is for first of all."""
        raise NotImplementedError

    def prepare(self, graph: Graph) -> None:
        """Work out, once, what depends on the graph alone."""

    def begin(self, features: Features, graph: Graph) -> None:
        """Adjust freshly drawn weights to the features, once before training."""

    def observe(self, targets: Tensor, nodes: Tensor) -> None:
        """See the targets of the training nodes, once before training; for models that spread labels themselves."""

    def release(self) -> None:
        """Give back the memory that was kept from one epoch to the next; called when training is over."""
        give_back()

    def penalty(self, features: Features, graph: Graph, outputs: Tensor) -> Tensor | None:
        """A term of the model's own to be added to the task's loss, ``None`` if it has none."""
        return None

    def curvatures(self) -> dict[str, float]:
        """The magnitudes ``c`` of its curvatures by name."""
        return {
            name.removesuffix(".curvature") or "curvature": float(module().detach())
            for name, module in self.named_modules()
            if isinstance(module, Curvature)
        }
