"""The HGDE model: encoder, HPDE block, decoder, each with the curvature it lives on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from hgde.diffusion import DIFFUSIVITIES, GraphFlow, make_diffusivity
from hgde.geometry import SPACES, Curvature, Manifold, PoincareBall, Product, make_space
from hgde.graph import Features, Graph, SparseFeatures
from hgde.kernels import warm_up
from hgde.models.base import MODELS, Model, Shape, built
from hgde.models.block import HPDEBlock
from hgde.models.layers import Encoder, NodeDecoder
from hgde.models.presets import (
    FEW_LABELS,
    LINK_PRESETS,
    MANY,
    MANY_LABELS,
    NO_CLASSES,
    PRESETS,
    Preset,
)
from hgde.models.straight import Straight
from hgde.sections import Chosen, Section, SettingsError, choice, setting
from hgde.solvers import SOLVERS

ACTIVATIONS = ("identity", "relu", "leaky_relu", "tanh")


def _without_residual(settings: HGDESettings) -> str | None:
    return None if settings.residual else "there is no residual (residual = false)"


@dataclass(frozen=True)
class HGDESettings(Section):
    """What an HGDE is built from."""

    width: int = setting(16, "Dimension of the space.", at_least=1)
    space: Chosen = choice(SPACES, "ball", "Space that nodes are embedded in; encoder and flow have one each.")
    time: float = setting(8.0, "Diffusion time T.", above=0)
    solver: Chosen = choice(SOLVERS, "heuler", "Solver (`hgde orders` compares them).", flag="method")
    gradient: Literal["backprop", "recompute"] = setting(
        "backprop",
        "Store every step's intermediate values, or recompute them (exact, one state per step in memory).",
        choices=("backprop", "recompute"),
    )
    diffusivity: Chosen = choice(DIFFUSIVITIES, "isotropic", "How neighbours are weighted (`hgde list diffusivities`).")
    residual: bool = setting(True, "Mix each step with the state and the start by a weighted midpoint.")
    eta: tuple[float, float, float] = setting(
        (1.0, 0.6, 0.1), "Weights of step, state and start in the residual.", inert=_without_residual
    )
    learn_eta: bool = setting(False, "Train those weights.", inert=_without_residual)
    activation: str = setting("identity", "Activation inside the flow.", choices=ACTIVATIONS)
    encoder_layers: int = setting(1, "Linear layers of the encoder.", at_least=1, at_most=1000)
    encoder_width: int | None = setting(
        None,
        "Width of the encoder's layers before the last (default: the dimension of the space).",
        at_least=1,
        inert=lambda s: "the encoder has one layer" if s.encoder_layers == 1 else None,
    )
    encoder_activation: str = setting("identity", "Activation after each layer of the encoder.", choices=ACTIVATIONS)
    encoder_bends_last: bool = setting(
        True,
        "Apply that activation after the encoder's last layer too; without it, points lie on all sides of the origin.",
        inert=lambda s: "the encoder has no activation" if s.encoder_activation == "identity" else None,
    )
    dropout: float = setting(0.5, "Dropout on the input features.", at_least=0, below=1)
    state_dropout: float = setting(0.0, "Dropout on the encoded nodes before they diffuse.", at_least=0, below=1)
    start_distance: float = setting(
        1.0,
        "Mean initial distance of the encoded nodes from the origin, whatever the scale of the "
        "features (0: as the random weights give it).",
        at_least=0,
    )
    hidden_dropout: float = setting(0.0, "Dropout on the embedding before the decoder of nodes.", at_least=0, below=1)
    own_readout: bool = setting(
        False,
        "Also read out a node's own encoded features, separately from what it received along its "
        "edges; for classes and values.",
    )


@MODELS.register("hgde")
class HGDE(Model):
    """Hyperbolic graph diffusion: ``readout(z(T))``, ``z(T) = HPDESolve(encode(x), F, 0, T)``.

    Initial weights are drawn in the order encoder, diffusivity, decoder.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models.base import Shape
    >>> model = HGDE(HGDE.Settings(width=4, time=2.0), Shape(in_features=3, num_nodes=5, outputs=2))
    >>> graph = Graph.from_edges(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]), 5)
    >>> model(torch.randn(5, 3), graph).shape
    torch.Size([5, 2])
    """

    Settings = HGDESettings
    paper: ClassVar[str] = "Continuous Geometry-Aware Graph Diffusion via Hyperbolic Neural PDE"
    presets: ClassVar[Mapping[str, Preset]] = PRESETS | LINK_PRESETS

    def __init__(self, settings: HGDESettings, shape: Shape) -> None:
        super().__init__()
        if shape.outputs is None and settings.hidden_dropout > 0:
            raise SettingsError(
                "hidden_dropout has no effect: links are decoded from the points themselves; leave it out"
            )
        self.width = width = settings.width
        source, target = (make_space(settings.space, width) for _ in range(2))
        inner = width if settings.encoder_width is None else settings.encoder_width
        if isinstance(source, Product) and inner != width:
            raise SettingsError(f"a product space fixes the width: encoder_width must be {width}; leave it out")
        self.encoder = Encoder(
            shape.in_features,
            width,
            source,
            target,
            settings.encoder_activation,
            settings.dropout,
            settings.encoder_layers,
            settings.state_dropout,
            settings.encoder_bends_last,
            inner,
        )
        diffusivity = make_diffusivity(settings.diffusivity, width)
        eta = settings.eta if settings.residual else None
        flow = GraphFlow(target, diffusivity, eta, settings.residual and settings.learn_eta, settings.activation)
        self.block = HPDEBlock.from_settings(flow, settings.time, settings.solver, settings.gradient)
        self.start_distance = settings.start_distance
        self.decoder: NodeDecoder | None = None
        if shape.outputs is not None:
            self.decoder = NodeDecoder(width, shape.outputs, target, settings.hidden_dropout)
        self.own_decoder: NodeDecoder | None = None
        if settings.own_readout:
            if shape.outputs is None:
                raise SettingsError("own_readout has no effect: links are decoded from the points; leave it out")
            self.own_decoder = NodeDecoder(width, shape.outputs, target, settings.hidden_dropout)
        self._straight = Straight()

    @classmethod
    def candidates(cls, task: str, graph: Graph, labelled: float = 1.0) -> tuple[str, ...]:
        if task == "links":
            return tuple(LINK_PRESETS)
        if task != "nodes":
            return NO_CLASSES
        return MANY_LABELS if labelled >= MANY else FEW_LABELS

    @property
    def manifold(self) -> Manifold:
        """The space the embedding lies in."""
        return self.block.flow.manifold

    def embed(self, features: Features, graph: Graph) -> Tensor:
        """Points after diffusion, ``[N, coordinates]``."""
        return self.block(self.encoder(features), graph)

    def embed_some(self, features: Features, graph: Graph, nodes: Tensor) -> Tensor:
        reach = self.block.reach(graph, nodes, self.encoder.linear.weight)
        if reach is None:
            return super().embed_some(features, graph, nodes)
        return self.block(self.encoder(features, reach.rows), graph, reach)

    def outputs_of(self, features: Features, graph: Graph, nodes: Tensor) -> Tensor:
        scores = self._straight.scores(self.encoder, self.block, built(self.decoder), features, graph, nodes)
        return super().outputs_of(features, graph, nodes) if scores is None else scores

    def release(self) -> None:
        self._straight = Straight()
        super().release()

    def readout(self, z: Tensor) -> Tensor:
        """``[n, outputs]`` of some of the points of :meth:`embed`."""
        return built(self.decoder)(z)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        start = self.encoder(features)
        scores = self.readout(self.block(start, graph))
        return scores if self.own_decoder is None else scores + self.own_decoder(start)

    @property
    def reads_out_each(self) -> bool:
        return self.own_decoder is None

    def trajectory(self, features: Features, graph: Graph) -> tuple[list[float], Tensor]:
        """Times ``0, step, ..., T`` and the states there, ``[times, N, coordinates]``."""
        return self.block.trajectory(self.encoder(features), graph)

    def begin(self, features: Features, graph: Graph) -> None:
        weight = self.encoder.linear.weight
        if weight.device.type == "cpu" and isinstance(self.manifold, PoincareBall):
            sparse = ("sparse", "encoder") if isinstance(features, SparseFeatures) else ()
            decoder = () if self.decoder is None else ("decoder",)
            warm_up(*self.block.kernels, "origin", *sparse, *decoder, dtype=weight.dtype, width=self.width)
        if self.start_distance > 0:
            self.encoder.scale_to(features, self.start_distance)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.encoder.linear.weight]

    def prepare(self, graph: Graph) -> None:
        self.block.flow.diffusivity.prepare(graph)

    def curvatures(self) -> dict[str, float]:
        """The magnitudes ``c`` of encoder and diffusion; the parts of a product are numbered from 1."""
        named = {}
        for role, space in (("encoder", self.encoder.linear.manifold), ("diffusion", self.manifold)):
            values = [float(part().detach()) for part in space.modules() if isinstance(part, Curvature)]
            for number, value in enumerate(values, 1):
                named[role if len(values) == 1 else f"{role} {number}"] = value
        return named
