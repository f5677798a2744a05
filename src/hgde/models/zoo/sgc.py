"""The simplified graph convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from hgde.graph import Features, Graph
from hgde.models.base import MODELS, Model, Shape
from hgde.models.zoo._common import Dense, Presets, adjacency, for_links, product, propagate
from hgde.sections import Section, SettingsError, setting

CITATION = {
    "model": {"hops": 2},
    "training": {"lr": 0.2, "weight_decay": 5e-6, "epochs": 100},
    "preprocessing": {"normalise": "words"},
}


@MODELS.register("sgc")
class SGC(Model):
    """``A^hops x W + b``: ``hops`` propagations and one linear layer, nothing between.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = SGC(SGC.Settings(hops=3), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Wu et al., Simplifying graph convolutional networks, ICML 2019"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(16, "width of the points that links are decoded from", at_least=1)
        hops: int = setting(2, "how often features are propagated", at_least=0)
        dropout: float = setting(0.0, "dropout on the features", at_least=0, below=1)

    presets: ClassVar[Presets] = {
        "default": CITATION,
        "links": for_links(CITATION),
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        if shape.outputs is not None and settings.width != type(settings)().width:
            raise SettingsError("width has no effect: only links are decoded from points; leave it out")
        self.settings = settings
        self.linear = Dense(shape.in_features, settings.width if shape.outputs is None else shape.outputs)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.linear.weight]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, like=self.linear.weight)

    def embed(self, features: Features, graph: Graph) -> Tensor:
        return self.forward(features, graph)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        # (A^K x) W = A^K (x W), and x W is narrow.
        y = product(features, self.linear.weight, self.settings.dropout, self.training)
        for _ in range(self.settings.hops):
            y = propagate(adjacency(graph, like=y), y)
        return self.linear.translate(y)
