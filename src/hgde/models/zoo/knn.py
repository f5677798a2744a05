"""GCN and GAT on the graph of nearest features, for data that come without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from hgde.graph import Features, Graph
from hgde.graph.knn import knn_graph
from hgde.models.base import MODELS
from hgde.models.zoo._common import LayeredSettings, Presets, once_per
from hgde.models.zoo.gat import GAT
from hgde.models.zoo.gcn import GCN
from hgde.sections import setting


def neighbours(features: Features, k: int) -> Graph:
    """The undirected graph of the ``k`` nearest rows (the row itself being one), built once per features."""
    return once_per(features, ("neighbours", k), lambda: knn_graph(features, min(k, int(features.shape[0]))))


@MODELS.register("gcn-knn")
class GCNkNN(GCN):
    """The GCN on the k-nearest-neighbour graph of the features; the given graph is not looked at.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = GCNkNN(GCNkNN.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Kipf and Welling, ICLR 2017, on a k-nearest-neighbour graph as in Wu et al., DIFFormer, ICLR 2023"

    @dataclass(frozen=True)
    class Settings(LayeredSettings):
        width: int = setting(64, "width of the hidden representation", at_least=1)
        k: int = setting(5, "neighbours, the node itself counted", at_least=2, flag="neighbours")

    presets: ClassVar[Presets] = {
        "default": {
            "model": {"width": 64, "layers": 2, "dropout": 0.5},
            "training": {"lr": 0.01, "weight_decay": 5e-4, "epochs": 300},
        }
    }

    def prepare(self, graph: Graph) -> None:
        pass

    def _run(self, features: Features, graph: Graph, count: int) -> Tensor:
        return super()._run(features, neighbours(features, self.settings.k), count)


@MODELS.register("gat-knn")
class GATkNN(GAT):
    """The GAT on the k-nearest-neighbour graph of the features; the given graph is not looked at.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = GATkNN(GATkNN.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Veličković et al., ICLR 2018, on a k-nearest-neighbour graph as in Wu et al., DIFFormer, ICLR 2023"

    @dataclass(frozen=True)
    class Settings(GAT.Settings):
        k: int = setting(5, "neighbours, the node itself counted", at_least=2, flag="neighbours")

    presets: ClassVar[Presets] = {
        "default": {
            "model": {"width": 64, "heads": 8, "layers": 2, "dropout": 0.5},
            "training": {"lr": 0.005, "weight_decay": 5e-4, "epochs": 300},
        }
    }

    def prepare(self, graph: Graph) -> None:
        pass

    def _run(self, features: Features, graph: Graph, count: int) -> Tensor:
        return super()._run(features, neighbours(features, self.settings.k), count)
