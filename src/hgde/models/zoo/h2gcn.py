"""H2GCN: own, first and second neighbourhood kept apart, for graphs whose neighbours differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph, SparseFeatures
from hgde.models.base import MODELS, Model, Shape
from hgde.models.zoo._common import Dense, Presets, adjacency, once_per, propagate
from hgde.sections import Section, setting


def two_hops(graph: Graph) -> Graph:
    """Pairs at distance exactly two: joined by a path of two edges, neither equal nor joined by one."""
    once = graph.to_scipy()
    once.data[:] = 1
    twice = (once @ once).tocoo()
    key = twice.row.astype(np.int64) * graph.num_nodes + twice.col
    near = (graph.rows * graph.num_nodes + graph.indices).cpu().numpy()
    strict = ~np.isin(key, near) & (twice.row != twice.col)
    pairs = torch.from_numpy(np.stack([twice.col[strict], twice.row[strict]]).astype(np.int64))
    return Graph.from_edges(pairs, graph.num_nodes, undirected=False).to(graph.device)


@MODELS.register("h2gcn")
class H2GCN(Model):
    """``r_0 = relu(x W)``, ``r_k = [A_1 r_{k-1}, A_2 r_{k-1}]``, outputs ``dropout([r_0, ..., r_K]) V``.

    ``A_1`` and ``A_2`` are the symmetrically normalised adjacencies of the first and the strict second neighbourhood,
    both without loops; rounds have no weights. The last representation is ``(2^(rounds + 1) - 1) width`` wide.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = H2GCN(H2GCN.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = (
        "Zhu et al., Beyond homophily in graph neural networks: current limitations and effective designs, NeurIPS 2020"
    )

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(64, "width of the first representation", at_least=1)
        rounds: int = setting(1, "rounds of aggregation", at_least=0)
        dropout: float = setting(0.5, "dropout before the last layer", at_least=0, below=1)

    presets: ClassVar[Presets] = {
        name: {
            "model": {"width": 64, "rounds": rounds, "dropout": 0.5},
            "training": {"lr": 0.01, "weight_decay": 5e-4, "weight_decay_rest": 5e-4, "epochs": 500, "patience": 100},
            "preprocessing": {"normalise": "words"},
        }
        for name, rounds in (
            ("default", 1),
            ("texas", 1),
            ("wisconsin", 1),
            ("cornell", 1),
            ("cora", 2),
            ("citeseer", 2),
        )
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        self.encoder = Dense(shape.in_features, settings.width, bias=False)
        joined = (2 ** (settings.rounds + 1) - 1) * settings.width
        self.decoder = Dense(joined, settings.width if shape.outputs is None else shape.outputs, bias=False)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.encoder.weight]

    def prepare(self, graph: Graph) -> None:
        self.matrices(graph)

    def matrices(self, graph: Graph) -> tuple[SparseFeatures, SparseFeatures]:
        like = self.encoder.weight
        second = once_per(graph, "two hops", lambda: two_hops(graph))
        return adjacency(graph, loops=False, like=like), adjacency(second, loops=False, like=like)

    def embed(self, features: Features, graph: Graph) -> Tensor:
        joined = self._joined(features, graph)
        return self.decoder(joined, self.settings.dropout) if self.shape.outputs is None else joined

    def forward(self, features: Features, graph: Graph) -> Tensor:
        return self.decoder(self._joined(features, graph), self.settings.dropout)

    def _joined(self, features: Features, graph: Graph) -> Tensor:
        rounds = [self.encoder(features).relu()]
        for _ in range(self.settings.rounds):
            rounds.append(torch.cat([propagate(matrix, rounds[-1]) for matrix in self.matrices(graph)], dim=1))
        return torch.cat(rounds, dim=1)
