"""GraphCON: nodes as oscillators coupled by a graph layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from hgde.graph import Features, Graph
from hgde.kernels.chance import dropout
from hgde.models.base import MODELS, Model, Shape, built
from hgde.models.zoo._common import Dense, Presets, adjacency
from hgde.models.zoo.gat import GATLayer
from hgde.models.zoo.gcn import GCNLayer
from hgde.models.zoo.sage import SAGELayer
from hgde.sections import Section, setting


@MODELS.register("graphcon")
class GraphCON(Model):
    """``y' = y + dt (relu(F(x) - R(x)) - gamma x - alpha y)``, ``x' = x + dt y'``, the same ``F`` in every step.

    ``F`` is a layer of GCN, GAT or GraphSAGE, ``R`` a linear layer on the node itself (the authors' residual for
    heterophilic graphs; without it, ``R = 0``). It starts at ``x = y = relu(encoder)``.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = GraphCON(GraphCON.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Rusch et al., Graph-coupled oscillator networks, ICML 2022"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(64, "width of the hidden representation", at_least=1)
        layers: int = setting(2, "number of steps", at_least=0)
        coupling: str = setting("gcn", "the layer that couples the oscillators", choices=("gcn", "gat", "sage"))
        heads: int = setting(
            4, "attention heads", at_least=1, inert=lambda s: None if s.coupling == "gat" else "only gat has heads"
        )
        residual: bool = setting(True, "subtract a linear layer of the node itself inside the coupling")
        step: float = setting(1.0, "length of a step", above=0)
        alpha: float = setting(1.0, "damping", at_least=0)
        gamma: float = setting(1.0, "frequency", at_least=0)
        dropout: float = setting(0.5, "dropout on the features and on the state after every step", at_least=0, below=1)

    presets: ClassVar[Presets] = {
        name: {
            "model": {"width": width, "layers": layers, "dropout": drop, "alpha": alpha, "gamma": gamma},
            "training": {"lr": lr, "weight_decay": decay, "weight_decay_rest": decay, "epochs": 500, "patience": 100},
            "preprocessing": {"normalise": "words"},
        }
        for name, width, layers, drop, alpha, gamma, lr, decay in (
            ("default", 64, 2, 0.5, 1.0, 1.0, 0.005, 5e-3),
            ("texas", 256, 2, 0.68, 0.0, 0.0, 0.00155, 8.5e-4),
            ("wisconsin", 64, 2, 0.23, 0.0, 0.0, 0.00356, 8.1e-3),
            ("cornell", 256, 1, 0.15, 0.0, 0.0, 0.00721, 1.27e-3),
        )
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        width = settings.width
        self.encoder = Dense(shape.in_features, width)
        self.coupling: nn.Module
        if settings.coupling == "gcn":
            self.coupling = GCNLayer(width, width)
        elif settings.coupling == "gat":
            self.coupling = GATLayer(width, width, settings.heads, mean=True)
        else:
            self.coupling = SAGELayer(width, width)
        self.own = Dense(width, width) if settings.residual else None
        self.decoder = None if shape.outputs is None else Dense(width, shape.outputs)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.encoder.weight]

    def couple(self, x: Tensor, graph: Graph) -> Tensor:
        by_edges = isinstance(self.coupling, GATLayer)
        y = self.coupling(x, adjacency(graph, "none", like=x)) if by_edges else self.coupling(x, graph=graph)
        return (y if self.own is None else y - self.own(x)).relu()

    def embed(self, features: Features, graph: Graph) -> Tensor:
        s = self.settings
        x = y = dropout(self.encoder(features, s.dropout).relu(), s.dropout, self.training)
        for _ in range(s.layers):
            y = y + s.step * (self.couple(x, graph) - s.gamma * x - s.alpha * y)
            x = dropout(x + s.step * y, s.dropout, self.training)
            y = dropout(y, s.dropout, self.training)
        return x

    def readout(self, z: Tensor) -> Tensor:
        return built(self.decoder)(z)
