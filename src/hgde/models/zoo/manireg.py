"""Manifold regularisation: a dense network whose outputs are kept smooth over the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from hgde.graph import Features, Graph
from hgde.models.base import MODELS
from hgde.models.zoo._common import LayeredSettings, Presets, adjacency
from hgde.models.zoo.knn import neighbours
from hgde.models.zoo.mlp import MLP
from hgde.sections import setting


@MODELS.register("manireg")
class ManiReg(MLP):
    """Dense layers with the penalty ``smoothness * mean w_ij |f_i - f_j|^2`` over edges; prediction needs no graph.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = ManiReg(ManiReg.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Belkin, Niyogi and Sindhwani, Manifold regularization, JMLR 2006"

    @dataclass(frozen=True)
    class Settings(LayeredSettings):
        width: int = setting(64, "width of the hidden representation", at_least=1)
        smoothness: float = setting(0.1, "weight of the penalty", at_least=0)
        graph: str = setting("given", "the edges it is summed over", choices=("given", "knn"), flag="smooth_over")
        k: int = setting(
            5,
            "neighbours, the node itself counted",
            at_least=2,
            flag="neighbours",
            inert=lambda s: None if s.graph == "knn" else "only the graph knn has k",
        )

    presets: ClassVar[Presets] = {
        "default": {
            "model": {"width": 64, "layers": 2, "dropout": 0.5, "smoothness": 0.1},
            "training": {"lr": 0.01, "weight_decay": 5e-4, "epochs": 300},
            "preprocessing": {"normalise": "words"},
        }
    }

    def penalty(self, features: Features, graph: Graph, outputs: Tensor) -> Tensor | None:
        if self.settings.graph == "knn":
            graph = neighbours(features, self.settings.k)
        edges = adjacency(graph, "none", loops=False, like=outputs)
        gaps = (outputs.index_select(0, edges.rows) - outputs.index_select(0, edges.indices)).square().sum(1)
        return self.settings.smoothness * (edges.values * gaps).sum() / edges.values.sum().clamp_min(1)
