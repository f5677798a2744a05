"""Graph learning-convolution: the weights of the graph are learned together with the convolutions on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph, GraphError, SparseFeatures
from hgde.models.base import MODELS, Model, Shape
from hgde.models.zoo._common import Dense, Presets, adjacency, edge_softmax, edge_sum, once_per, product
from hgde.models.zoo.knn import neighbours
from hgde.sections import Section, setting

LARGEST = 3_000


@MODELS.register("glcn")
class GLCN(Model):
    """``S_ij = softmax_j(relu(a . |h_i - h_j|))`` with ``h = x P``, then ``x' = relu(S x W)``, layer by layer.

    The softmax runs over the edges of the given graph, of the nearest-neighbour graph, or over all pairs (at most
    3,000 nodes: a table of ``N^2 projection`` numbers). The penalty is the paper's loss of graph learning,
    ``(sum_ij |h_i - h_j|^2 S_ij + spread sum_ij S_ij^2) / N``, times ``graph_loss``.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = GLCN(GLCN.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Jiang et al., Semi-supervised learning with graph learning-convolutional networks, CVPR 2019"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(30, "width of the hidden representation", at_least=1)
        layers: int = setting(2, "number of convolutions", at_least=2)
        projection: int = setting(70, "width of the features that edges are scored by", at_least=1)
        dropout: float = setting(0.6, "dropout on the input of every convolution", at_least=0, below=1)
        pairs: str = setting("edges", "where edges may be learned", choices=("edges", "knn", "all"))
        k: int = setting(
            5,
            "neighbours, the node itself counted",
            at_least=2,
            flag="neighbours",
            inert=lambda s: None if s.pairs == "knn" else "only the pairs knn have k",
        )
        graph_loss: float = setting(0.01, "weight of the penalty", at_least=0)
        spread: float = setting(
            0.1,
            "weight of the squares of the learned weights in the penalty",
            at_least=0,
            inert=lambda s: None if s.graph_loss > 0 else "the penalty has no weight (graph_loss = 0)",
        )

    presets: ClassVar[Presets] = {
        "default": {
            "model": {"width": 30, "layers": 2, "projection": 70, "dropout": 0.6},
            "training": {"lr": 0.005, "weight_decay": 5e-4, "epochs": 500, "patience": 100},
            "preprocessing": {"normalise": "words"},
        }
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        outputs = settings.width if shape.outputs is None else shape.outputs
        widths = [shape.in_features, *[settings.width] * (settings.layers - 1), outputs]
        self.projection = Dense(shape.in_features, settings.projection, bias=False)
        self.score = nn.Parameter(torch.empty(settings.projection))
        nn.init.uniform_(self.score, -(settings.projection**-0.5), settings.projection**-0.5)
        self.layers = nn.ModuleList(Dense(widths[i], widths[i + 1]) for i in range(settings.layers))

    def feature_parameters(self) -> list[nn.Parameter]:
        first = self.layers[0]
        assert isinstance(first, Dense)
        return [first.weight, self.projection.weight]

    def edges(self, features: Features, graph: Graph) -> SparseFeatures:
        if self.settings.pairs == "knn":
            graph = neighbours(features, self.settings.k)
        elif self.settings.pairs == "all":
            graph = once_per(graph, "complete", lambda: _complete(graph.num_nodes, graph.device))
        return adjacency(graph, "none", like=self.projection.weight)

    def learned(self, features: Features, edges: SparseFeatures) -> tuple[Tensor, Tensor]:
        """Weights ``S [E]`` and squared distances ``[E]`` of the edges."""
        h = self.projection(features)
        gap = h.index_select(0, edges.rows) - h.index_select(0, edges.indices)
        return edge_softmax(edges, (gap.abs() @ self.score).relu()), gap.square().sum(1)

    def penalty(self, features: Features, graph: Graph, outputs: Tensor) -> Tensor | None:
        if self.settings.graph_loss == 0:
            return None
        weights, squared = self.learned(features, self.edges(features, graph))
        loss = (squared * weights).sum() + self.settings.spread * weights.square().sum()
        return self.settings.graph_loss * loss / graph.num_nodes

    def embed(self, features: Features, graph: Graph) -> Tensor:
        return self._run(features, graph, self.settings.layers - (0 if self.shape.outputs is None else 1))

    def forward(self, features: Features, graph: Graph) -> Tensor:
        return self._run(features, graph, self.settings.layers)

    def _run(self, features: Features, graph: Graph, count: int) -> Tensor:
        edges = self.edges(features, graph)
        weights, _ = self.learned(features, edges)
        x: Features = features
        for number in range(count):
            layer = self.layers[number]
            assert isinstance(layer, Dense)
            y = product(x, layer.weight, self.settings.dropout, self.training)
            x = layer.translate(edge_sum(edges, weights, y))
            x = x.relu() if number < self.settings.layers - 1 else x
        assert isinstance(x, Tensor)
        return x


def _complete(num_nodes: int, device: torch.device) -> Graph:
    if num_nodes > LARGEST:
        raise GraphError(
            f"glcn over all pairs takes at most {LARGEST:,} nodes, got {num_nodes:,}; set pairs to knn or edges"
        )
    nodes = torch.arange(num_nodes, device=device)
    pairs = torch.stack([nodes.repeat(num_nodes), nodes.repeat_interleave(num_nodes)])
    return Graph.from_edges(pairs, num_nodes, undirected=False, self_loops=True)
