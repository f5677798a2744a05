"""The graph convolutional network of Kipf and Welling, by PyG's layers."""

from __future__ import annotations

import itertools
from typing import Any

from torch import Tensor, nn

from hgde.graph import Features, Graph, SparseFeatures
from hgde.models.hgde import NodeModel


class GCN(NodeModel):
    """``layers`` graph convolutions with ReLU and dropout between."""

    def __init__(self, in_features: int, width: int, num_classes: int, layers: int = 2, dropout: float = 0.5) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        widths = [in_features, *[width] * (layers - 1), num_classes]
        self.layers = nn.ModuleList(GCNConv(a, b, cached=True) for a, b in itertools.pairwise(widths))
        self.dropout = dropout

    def feature_parameters(self) -> list[nn.Parameter]:
        first: Any = self.layers[0]
        return [first.lin.weight]

    def forward(self, features: Features, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        x = features.to_dense() if isinstance(features, SparseFeatures) else features
        for number, layer in enumerate(self.layers):
            x = x.relu() if number else x
            x = layer(nn.functional.dropout(x, self.dropout, self.training), graph.edge_index)
        return x if nodes is None else x.index_select(0, nodes)
