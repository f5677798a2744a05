"""GraphSAGE with the mean aggregator."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from hgde.graph import Features, Graph
from hgde.models.base import MODELS
from hgde.models.zoo._common import Dense, Layered, Presets, adjacency, drop_features, for_links, product, propagate


class SAGELayer(nn.Module):
    """``mean_{j in N(i)} x_j W_n + x_i W_s + b``: PyG's ``SAGEConv``. ``[N, in] -> [N, out]``"""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.neighbours = Dense(inputs, outputs)
        self.own = Dense(inputs, outputs, bias=False)

    def forward(self, x: Features, graph: Graph, p: float = 0.0) -> Tensor:
        x = drop_features(x, p, self.training)
        mean = adjacency(graph, "rows", loops=False, like=self.own.weight)
        # The mean of products is the product of the mean, and x W is dense where x is sparse.
        return self.neighbours.translate(propagate(mean, product(x, self.neighbours.weight))) + self.own(x)


CITATION = {
    "model": {"width": 64, "layers": 2, "dropout": 0.5},
    "training": {"lr": 0.01, "weight_decay": 5e-4, "epochs": 200},
    "preprocessing": {"normalise": "words"},
}


@MODELS.register("sage")
class SAGE(Layered):
    """``x' = relu(SAGE(dropout(x)))``, layer by layer.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = SAGE(SAGE.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Hamilton, Ying and Leskovec, Inductive representation learning on large graphs, NeurIPS 2017"
    presets: ClassVar[Presets] = {
        "default": CITATION,
        "links": for_links(CITATION),
    }

    def layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        return SAGELayer(inputs, outputs)

    def message(self, layer: nn.Module, x: Features, graph: Graph) -> Tensor:
        return layer(x, graph, self.settings.dropout)

    def feature_parameters(self) -> list[nn.Parameter]:
        first = self.layers[0]
        assert isinstance(first, SAGELayer)
        return [first.neighbours.weight, first.own.weight]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, "rows", loops=False, like=self.feature_parameters()[0])
