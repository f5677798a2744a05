"""Dense layers on the features; the graph is not looked at."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from hgde.graph import Features, Graph
from hgde.models.base import MODELS
from hgde.models.zoo._common import Dense, Layered, Presets, for_links

CITATION = {
    "model": {"width": 16, "layers": 2, "dropout": 0.5},
    "training": {"lr": 0.01, "weight_decay": 5e-3, "epochs": 200},
    "preprocessing": {"normalise": "words"},
}


@MODELS.register("mlp")
class MLP(Layered):
    """``x' = relu(dropout(x) W + b)``, layer by layer.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = MLP(MLP.Settings(layers=3), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Rumelhart, Hinton and Williams, Learning representations by back-propagating errors, Nature 1986"
    presets: ClassVar[Presets] = {
        "default": CITATION,
        "links": for_links(CITATION),
        "pubmed": {
            "model": {"width": 16, "layers": 2, "dropout": 0.2},
            "training": {"lr": 0.01, "weight_decay": 1e-3},
            "preprocessing": {"normalise": "words"},
        },
    }

    def layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        return Dense(inputs, outputs)

    def message(self, layer: nn.Module, x: Features, graph: Graph) -> Tensor:
        return layer(x, self.settings.dropout)
