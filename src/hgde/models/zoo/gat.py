"""The graph attention network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph, SparseFeatures
from hgde.kernels.chance import dropout
from hgde.models.base import MODELS
from hgde.models.zoo._common import (
    Dense,
    Layered,
    LayeredSettings,
    Presets,
    adjacency,
    edge_scores,
    edge_softmax,
    edge_sum,
)
from hgde.sections import SettingsError, setting


class GATLayer(nn.Module):
    """``y_i = sum_j softmax_j(LeakyReLU(a_s . h_j + a_t . h_i)) h_j + b``, ``h = x W``, per head: PyG's ``GATConv``.

    ``[N, in] -> [N, out]``, the heads side by side (each ``out / heads`` wide) or, with ``mean``, averaged. A node is
    its own neighbour. Dropout ``p`` acts on the input and on the attention weights.
    """

    def __init__(self, inputs: int, outputs: int, heads: int, mean: bool = False) -> None:
        super().__init__()
        self.heads, self.mean = heads, mean
        each = outputs if mean else outputs // heads
        self.linear = Dense(inputs, heads * each, bias=False)
        self.source = nn.Parameter(torch.empty(1, heads, each))
        self.target = nn.Parameter(torch.empty(1, heads, each))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.source)
        nn.init.xavier_uniform_(self.target)

    def forward(self, x: Features, edges: SparseFeatures, p: float = 0.0) -> Tensor:
        h = self.linear(x, p).view(edges.shape[0], self.heads, -1)
        sends, receives = (h * self.source).sum(-1), (h * self.target).sum(-1)
        weights = edge_softmax(edges, edge_scores(edges, receives, sends))
        y = edge_sum(edges, dropout(weights, p, self.training), h)
        return (y.mean(1) if self.mean else y.flatten(1)) + self.bias


@MODELS.register("gat")
class GAT(Layered):
    """Attention layers with ELU between; the last averages its heads.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = GAT(GAT.Settings(heads=2), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Veličković et al., Graph attention networks, ICLR 2018"
    activation = "elu"

    @dataclass(frozen=True)
    class Settings(LayeredSettings):
        width: int = setting(64, "width of the hidden representation, all heads together", at_least=1)
        dropout: float = setting(0.6, "dropout on the input and the attention weights", at_least=0, below=1)
        heads: int = setting(8, "attention heads of the hidden layers", at_least=1)
        output_heads: int = setting(1, "attention heads of the last layer, averaged", at_least=1)

        def check(self) -> None:
            if self.width % self.heads:
                raise SettingsError(f"width must be a multiple of heads, got width {self.width} and {self.heads} heads")

    presets: ClassVar[Presets] = {
        name: {
            "model": {"width": 64, "heads": 8, "output_heads": output_heads, "layers": 2, "dropout": 0.6},
            "training": {"lr": lr, "weight_decay": decay, "weight_decay_rest": decay, "epochs": 1000, "patience": 100},
            "preprocessing": {"normalise": "words"},
        }
        for name, output_heads, lr, decay in (
            ("default", 1, 0.005, 5e-4),
            ("cora", 1, 0.005, 5e-4),
            ("citeseer", 1, 0.005, 5e-4),
            ("pubmed", 8, 0.01, 1e-3),
        )
    }

    def layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        heads = self.settings.output_heads if last else self.settings.heads
        return GATLayer(inputs, outputs, heads, mean=last)

    def message(self, layer: nn.Module, x: Features, graph: Graph) -> Tensor:
        return layer(x, self.edges(x, graph), self.settings.dropout)

    def feature_parameters(self) -> list[nn.Parameter]:
        first = self.layers[0]
        assert isinstance(first, GATLayer)
        return [first.linear.weight]

    def edges(self, x: Features, graph: Graph) -> SparseFeatures:
        return adjacency(graph, "none", like=self.feature_parameters()[0])

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, "none", like=self.feature_parameters()[0])
