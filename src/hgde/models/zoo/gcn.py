"""The graph convolutional network."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from hgde.graph import Features, Graph
from hgde.models.base import MODELS
from hgde.models.zoo._common import Dense, Layered, Presets, adjacency, for_links, product, propagate


class GCNLayer(Dense):
    """``A (dropout(x) W) + b`` with ``A = D^-1/2 (adjacency + loops) D^-1/2``: PyG's ``GCNConv`` on sparse features.

    ``[N, in] -> [N, out]``; cost ``nnz(x) out + E out``.
    """

    def forward(self, x: Features, p: float = 0.0, graph: Graph | None = None) -> Tensor:
        assert graph is not None
        y = product(x, self.weight, p, self.training)
        return self.translate(propagate(adjacency(graph, like=y), y))


CITATION = {
    "model": {"width": 16, "layers": 2, "dropout": 0.5},
    "training": {"lr": 0.01, "weight_decay": 5e-4, "epochs": 200},
    "preprocessing": {"normalise": "words"},
}


@MODELS.register("gcn")
class GCN(Layered):
    """``x' = relu(A dropout(x) W + b)``, layer by layer.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = GCN(GCN.Settings(width=8), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Kipf and Welling, Semi-supervised classification with graph convolutional networks, ICLR 2017"
    presets: ClassVar[Presets] = {
        "default": CITATION,
        "cora": CITATION,
        "citeseer": CITATION,
        "pubmed": CITATION,
        "links": for_links(CITATION),
        "cora-links": for_links(
            {"model": {"width": 16, "layers": 2, "dropout": 0.2}, "training": {"lr": 0.01, "weight_decay": 0.0}}
        ),
    }

    def layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        return GCNLayer(inputs, outputs)

    def message(self, layer: nn.Module, x: Features, graph: Graph) -> Tensor:
        return layer(x, self.settings.dropout, graph)

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, like=self.feature_parameters()[0])
