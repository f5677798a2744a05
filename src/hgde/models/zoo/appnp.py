"""Predict, then propagate by personalised PageRank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from hgde.graph import Features, Graph
from hgde.kernels.chance import dropout
from hgde.models.base import MODELS, Model, Shape
from hgde.models.zoo._common import Dense, Presets, adjacency, propagate
from hgde.sections import Section, setting


@MODELS.register("appnp")
class APPNP(Model):
    """``z_0 = MLP(x)``, ``z_{k+1} = (1 - teleport) A z_k + teleport z_0``.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = APPNP(APPNP.Settings(teleport=0.1), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Gasteiger, Bojchevski and Günnemann, Predict then propagate, ICLR 2019"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(64, "width of the hidden representation", at_least=1)
        hops: int = setting(10, "steps of the power iteration", at_least=0)
        teleport: float = setting(0.1, "share of the start kept in every step", at_least=0, at_most=1)
        dropout: float = setting(0.5, "dropout on the input of both layers", at_least=0, below=1)
        edge_dropout: float = setting(
            0.5, "dropout on the adjacency matrix, drawn anew in every step", at_least=0, below=1
        )

    presets: ClassVar[Presets] = {
        name: {
            "model": {"width": 64, "hops": 10, "teleport": 0.1, "dropout": 0.5, "edge_dropout": 0.5},
            "training": {"lr": 0.01, "weight_decay": 5e-3, "epochs": 1000, "patience": 100},
            "preprocessing": {"normalise": "words"},
        }
        for name in ("default", "cora", "citeseer", "pubmed")
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        self.hidden = Dense(shape.in_features, settings.width, bias=False)
        self.out = Dense(settings.width, settings.width if shape.outputs is None else shape.outputs, bias=False)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.hidden.weight]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, like=self.hidden.weight)

    def embed(self, features: Features, graph: Graph) -> Tensor:
        return self.forward(features, graph)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        s = self.settings
        start = self.out(self.hidden(features, s.dropout).relu(), s.dropout)
        matrix, z, share = adjacency(graph, like=start), start, s.teleport * start
        matrix = matrix.with_values((1 - s.teleport) * matrix.values)
        for _ in range(s.hops):
            z = propagate(matrix.with_values(dropout(matrix.values, s.edge_dropout, self.training)), z) + share
        return z
