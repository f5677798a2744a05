"""The hyperbolic graph convolutional network, on the Poincaré ball."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.geometry import Manifold, PoincareBall
from hgde.graph import Features, Graph, SparseFeatures
from hgde.models.base import MODELS, Model, Shape, built
from hgde.models.zoo._common import (
    ACTIVATIONS,
    Dense,
    Presets,
    adjacency,
    edge_scores,
    edge_softmax,
    edge_sum,
    propagate,
)
from hgde.models.zoo._hyperbolic import MobiusLinear
from hgde.sections import Section, setting


class HGCNLayer(nn.Module):
    """Möbius linear layer, aggregation, activation; tangent vectors at the origin ``[N, in] -> [N, out]``.

    Aggregation is ``exp_o(sum_j w_ij log_o(x_j))``, or with ``local`` ``exp_{x_i}(sum_j w_ij log_{x_i}(x_j))``.
    Weights are the row-normalised adjacency with loops, or with ``attention`` the softmax over neighbours of
    ``LeakyReLU(a . [log_o(x_i), log_o(x_j)])``. Edges only: memory ``E d`` with ``local``, ``N d + E`` otherwise.
    """

    def __init__(
        self, inputs: int, outputs: int, space: PoincareBall, p: float, activation: str, attention: bool, local: bool
    ) -> None:
        super().__init__()
        self.space, self.activation, self.local = space, activation, local
        self.linear = MobiusLinear(inputs, outputs, space, p)
        self.attention = Dense(outputs, 2, bias=False) if attention else None

    def forward(self, u: Features, edges: SparseFeatures) -> Tensor:
        v = self.linear(u)
        weights = edges.values
        if self.attention is not None:
            receives, sends = self.attention(v).unbind(1)
            weights = edge_softmax(edges, edge_scores(edges, receives, sends))
        if self.local:
            v = self._around_each_node(v, weights, edges)
        else:
            v = propagate(edges, v) if self.attention is None else edge_sum(edges, weights, v)
        return ACTIVATIONS[self.activation](v)

    def _around_each_node(self, u: Tensor, weights: Tensor, edges: SparseFeatures) -> Tensor:
        x = self.space.expmap0(u)
        ways = self.space.logmap(x.index_select(0, edges.rows), x.index_select(0, edges.indices))
        step = torch.zeros_like(x).index_add(0, edges.rows, weights[:, None] * ways)
        return self.space.logmap0(self.space.expmap(x, step))


@MODELS.register("hgcn")
class HGCN(Model):
    """Hyperbolic graph convolutions, each with its own curvature, and a linear layer in the origin's tangent space.

    ``layers`` counts as the authors' option does: ``layers - 1`` convolutions and the decoder for nodes, ``layers``
    convolutions for links.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = HGCN(HGCN.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Chami et al., Hyperbolic graph convolutional neural networks, NeurIPS 2019"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(16, "width of the hidden representation", at_least=1)
        layers: int = setting(2, "number of layers, the decoder for nodes included", at_least=2)
        activation: str = setting("relu", "after every convolution", choices=tuple(ACTIVATIONS))
        dropout: float = setting(0.5, "dropout on the matrices", at_least=0, below=1)
        attention: bool = setting(False, "weigh neighbours by attention instead of evenly")
        local: bool = setting(
            False, "aggregate in the tangent space of each node instead of the origin's", flag="local_aggregation"
        )
        curvature: float = setting(1.0, "c of every ball, to start with", above=0)
        learn_curvature: bool = setting(True, "train the curvatures")

    presets: ClassVar[Presets] = {
        name: {
            "model": {"width": 16, "layers": 2, "dropout": drop, "learn_curvature": learn},
            "training": {
                "lr": 0.01,
                "weight_decay": decay,
                "weight_decay_rest": decay,
                "epochs": 5000,
                "patience": 100,
            },
            "preprocessing": {"normalise": scaling},
        }
        for name, drop, decay, learn, scaling in (
            ("default", 0.5, 1e-3, True, "words"),
            ("cora", 0.5, 1e-3, True, "words"),
            ("pubmed", 0.4, 1e-4, False, "words"),
            ("airport", 0.0, 0.0, True, "words"),
            ("disease", 0.0, 0.0, False, "words"),
            ("pubmed-links", 0.4, 1e-4, False, "words"),
            ("airport-links", 0.0, 0.0, True, "words"),
            ("disease-links", 0.0, 0.0, False, "none"),
        )
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        s, for_links = settings, shape.outputs is None
        count = s.layers if for_links else s.layers - 1
        widths = [shape.in_features] + [s.width] * count
        self.layers = nn.ModuleList(
            HGCNLayer(a, b, PoincareBall(s.curvature, s.learn_curvature), s.dropout, s.activation, s.attention, s.local)
            for a, b in itertools.pairwise(widths)
        )
        # The decoder for nodes reads tangent vectors at the origin, which do not depend on the last curvature.
        self.space = PoincareBall(s.curvature, s.learn_curvature and for_links)
        self.decoder = None if shape.outputs is None else Dense(s.width, shape.outputs)

    @property
    def manifold(self) -> Manifold:
        return self.space

    def feature_parameters(self) -> list[nn.Parameter]:
        first = self.layers[0]
        assert isinstance(first, HGCNLayer)
        return [first.linear.weight]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, "rows", like=self.feature_parameters()[0])

    def embed(self, features: Features, graph: Graph) -> Tensor:
        edges = adjacency(graph, "rows", like=self.feature_parameters()[0])
        u: Features = features
        for layer in self.layers:
            u = layer(u, edges)
        assert isinstance(u, Tensor)
        return self.space.expmap0(u)

    def readout(self, z: Tensor) -> Tensor:
        return built(self.decoder)(self.space.logmap0(z))
