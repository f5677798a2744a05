"""Deep GCNs with edges dropped down to the critical number that can still connect the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph, SparseFeatures
from hgde.models.base import MODELS, Model, Shape
from hgde.models.zoo._common import Dense, Presets, adjacency, once_per, product, propagate
from hgde.randomness import generator
from hgde.sections import Section, setting


def critical_share(graph: Graph) -> float:
    """``(N - 1) / M``, the least share of the ``M`` edges that can connect ``N`` nodes; at most 1."""
    edges = graph.undirected_edges.shape[1]
    return min(1.0, (graph.num_nodes - 1) / max(edges, 1))


@MODELS.register("c-dropedge")
class CDropEdge(Model):
    """A residual GCN, ``x' = relu(A dropout(x) W + b) + x``, whose ``A`` keeps a random share of the edges per pass.

    The share is :func:`critical_share`, as the analysis by the graph neural tangent kernel has it; both directions of
    an edge go together, and the matrix is normalised anew after the draw. Nothing is dropped outside training.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = CDropEdge(CDropEdge.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = (
        "Huang et al., Towards deepening graph neural networks: a GNTK-based optimization perspective, ICLR 2022; "
        "Rong et al., DropEdge, ICLR 2020"
    )

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(64, "width of the hidden representation", at_least=1)
        layers: int = setting(4, "number of convolutions, the one that gives the outputs included", at_least=2)
        dropout: float = setting(0.5, "dropout on the input of every layer", at_least=0, below=1)
        keep: float | None = setting(None, "share of edges kept; none: the critical share", above=0, at_most=1)
        residual: bool = setting(True, "add a hidden layer's input to its output")

    presets: ClassVar[Presets] = {
        "default": {
            "model": {"width": 64, "layers": 4, "dropout": 0.5},
            "training": {"lr": 0.01, "weight_decay": 5e-4, "epochs": 400},
            "preprocessing": {"normalise": "words"},
        }
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        outputs = settings.width if shape.outputs is None else shape.outputs
        self.first = Dense(shape.in_features, settings.width)
        self.middle = nn.ModuleList(Dense(settings.width, settings.width) for _ in range(settings.layers - 2))
        self.last = Dense(settings.width, outputs)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.first.weight]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, like=self.first.weight)

    def embed(self, features: Features, graph: Graph) -> Tensor:
        matrix = self.matrix(graph)
        hidden = self._hidden(features, matrix)
        return hidden if self.shape.outputs is not None else self._convolve(self.last, hidden, matrix)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        matrix = self.matrix(graph)
        return self._convolve(self.last, self._hidden(features, matrix), matrix)

    def matrix(self, graph: Graph) -> SparseFeatures:
        """The normalised adjacency of this pass."""
        like = self.first.weight
        if not self.training:
            return adjacency(graph, like=like)
        keep = self.settings.keep
        share = once_per(graph, "critical share", lambda: critical_share(graph)) if keep is None else keep
        pair = once_per(graph, "pairs", lambda: graph.undirected_index)
        drawn = torch.rand(graph.undirected_edges.shape[1], generator=generator(), device=graph.device) < share
        kept = pair < 0
        kept[~kept] = drawn[pair[~kept]]
        return adjacency(graph.keep_edges(kept), like=like)

    def _hidden(self, features: Features, matrix: SparseFeatures) -> Tensor:
        x = self._convolve(self.first, features, matrix).relu()
        for layer in self.middle:
            y = self._convolve(layer, x, matrix).relu()
            x = x + y if self.settings.residual else y
        return x

    def _convolve(self, layer: nn.Module, x: Features, matrix: SparseFeatures) -> Tensor:
        assert isinstance(layer, Dense)
        y = product(x, layer.weight, self.settings.dropout, self.training)
        return layer.translate(propagate(matrix, y))
