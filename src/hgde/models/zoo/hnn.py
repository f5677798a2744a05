"""Hyperbolic neural networks: the dense network on the ball."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from hgde.geometry import Manifold, PoincareBall
from hgde.graph import Features, Graph
from hgde.models.base import MODELS, Model, Shape, built
from hgde.models.zoo._common import ACTIVATIONS, Presets, for_links
from hgde.models.zoo._hyperbolic import HyperbolicMLR, MobiusLinear
from hgde.sections import Section, setting


@MODELS.register("hnn")
class HNN(Model):
    """Möbius layers on one ball, then hyperbolic multinomial logistic regression; the graph is not looked at.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = HNN(HNN.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Ganea, Bécigneul and Hofmann, Hyperbolic neural networks, NeurIPS 2018"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(16, "width of the hidden representation", at_least=1)
        layers: int = setting(2, "number of layers, the one that gives the outputs included", at_least=2)
        activation: str = setting("identity", "between the layers", choices=tuple(ACTIVATIONS))
        dropout: float = setting(0.5, "dropout on the matrices", at_least=0, below=1)
        curvature: float = setting(1.0, "c of the ball", above=0)
        learn_curvature: bool = setting(False, "train the curvature")

    presets: ClassVar[Presets] = {
        "default": {
            "model": {"width": 16, "layers": 2, "dropout": 0.5},
            "training": {"lr": 0.01, "weight_decay": 1e-3, "epochs": 1000, "patience": 100},
            "preprocessing": {"normalise": "words"},
        },
        "pubmed": {
            "model": {"width": 16, "layers": 2, "dropout": 0.5},
            "training": {"lr": 0.01, "weight_decay": 0.0},
            "preprocessing": {"normalise": "words"},
        },
        "cora-links": for_links(
            {
                "model": {"width": 16, "layers": 2, "dropout": 0.2},
                "training": {"lr": 0.01, "weight_decay": 1e-3},
                "preprocessing": {"normalise": "words"},
            }
        ),
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        self.space = PoincareBall(settings.curvature, settings.learn_curvature)
        count = settings.layers if shape.outputs is None else settings.layers - 1
        widths = [shape.in_features] + [settings.width] * count
        self.layers = nn.ModuleList(
            MobiusLinear(a, b, self.space, settings.dropout) for a, b in itertools.pairwise(widths)
        )
        self.head = None if shape.outputs is None else HyperbolicMLR(settings.width, shape.outputs, self.space)

    @property
    def manifold(self) -> Manifold:
        return self.space

    def feature_parameters(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.layers[0].parameters() if parameter.dim() == 2]

    def embed(self, features: Features, graph: Graph) -> Tensor:
        u: Features = features
        for layer in self.layers:
            u = ACTIVATIONS[self.settings.activation](layer(u))
        assert isinstance(u, Tensor)
        return self.space.expmap0(u)

    def readout(self, z: Tensor) -> Tensor:
        return built(self.head)(z)
