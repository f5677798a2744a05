"""Two dense layers on the features; the graph is not looked at."""

from __future__ import annotations

from torch import Tensor, nn

from hgde.graph import Features, Graph, SparseFeatures
from hgde.kernels import sparse_matmul
from hgde.models.hgde import NodeModel


class MLP(NodeModel):
    def __init__(self, in_features: int, width: int, num_classes: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.hidden = nn.Linear(in_features, width)
        self.out = nn.Linear(width, num_classes)
        self.dropout = dropout

    def feature_parameters(self) -> list[nn.Parameter]:
        return list(self.hidden.parameters())[:1]

    def forward(self, features: Features, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        if isinstance(features, SparseFeatures):
            x = sparse_matmul(features, self.hidden.weight.T, self.dropout, self.training) + self.hidden.bias
        else:
            x = self.hidden(nn.functional.dropout(features, self.dropout, self.training))
        x = x if nodes is None else x.index_select(0, nodes)
        x = nn.functional.dropout(x.relu(), self.dropout, self.training)
        return self.out(x)
