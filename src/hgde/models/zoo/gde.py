"""Graph neural ordinary differential equations: a continuum of graph convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from hgde.graph import Features, Graph
from hgde.models.base import MODELS, Model, Shape
from hgde.models.zoo._common import ACTIVATIONS, Presets, adjacency
from hgde.models.zoo._solve import ContinuousSettings, solve
from hgde.models.zoo.gcn import GCNLayer
from hgde.sections import setting


@MODELS.register("gde")
class GDE(Model):
    """``h(0) = relu(GCN(x))``, ``dh/dt = GCN_2(act(GCN_1(h)))``, outputs ``GCN(h(T))``.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = GDE(GDE.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Poli et al., Graph neural ordinary differential equations, DLGMA at AAAI 2020"

    @dataclass(frozen=True)
    class Settings(ContinuousSettings):
        width: int = setting(64, "width of the hidden representation", at_least=1)
        activation: str = setting("softplus", "inside the field", choices=tuple(ACTIVATIONS))
        dropout: float = setting(0.5, "dropout on the features", at_least=0, below=1)
        field_dropout: float = setting(
            0.5, "dropout on the inputs of the field's layers, drawn anew in every evaluation", at_least=0, below=1
        )

    # One step of rk4 and dropout in the field are what the authors' code for Cora has.
    presets: ClassVar[Presets] = {
        "default": {
            "model": {"width": 64, "time": 1.0, "method": "rk4", "dropout": 0.4, "field_dropout": 0.9},
            "training": {"lr": 0.001, "weight_decay": 5e-4, "weight_decay_rest": 5e-4, "epochs": 3000, "patience": 200},
            "preprocessing": {"normalise": "words"},
        }
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        width = settings.width
        self.encoder = GCNLayer(shape.in_features, width)
        self.field = nn.ModuleList(GCNLayer(width, width) for _ in range(2))
        self.decoder = GCNLayer(width, width if shape.outputs is None else shape.outputs)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.encoder.weight]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, like=self.encoder.weight)

    def embed(self, features: Features, graph: Graph) -> Tensor:
        return self._state(features, graph) if self.shape.outputs is not None else self.forward(features, graph)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        return self.decoder(self._state(features, graph), graph=graph)

    def _state(self, features: Features, graph: Graph) -> Tensor:
        first, second = self.field
        act, p = ACTIVATIONS[self.settings.activation], self.settings.field_dropout

        def field(_: Tensor, h: Tensor) -> Tensor:
            return second(act(first(h, p, graph)), p, graph)

        return solve(field, self.encoder(features, self.settings.dropout, graph).relu(), self.settings)
