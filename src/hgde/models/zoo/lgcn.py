"""The Lorentzian graph convolutional network."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.geometry import Lorentz, Manifold
from hgde.graph import Features, Graph, SparseFeatures
from hgde.models.base import MODELS, Model, Shape, built
from hgde.models.zoo._common import ACTIVATIONS, Dense, Presets, adjacency, edge_softmax, edge_sum
from hgde.models.zoo._lorentz import centroid, edge_inner, exp0, log0, pairwise_inner
from hgde.sections import Section, setting


class LGCNLayer(nn.Module):
    """Lorentzian product, attention, centroid, activation; tangent vectors at the origin ``[N, in] -> [N, out]``.

    ``h = exp_o(u W)``, ``a_ij = softmax_j(-d_L^2(M h_i, M h_j))`` with ``d_L^2(x, y) = -2/c - 2<x, y>_L``, then the
    Lorentzian centroid ``sum_j a_ij h_j`` brought to the hyperboloid, then ``act(log_o(.))``.
    """

    def __init__(self, inputs: int, outputs: int, space: Lorentz, p: float, activation: str) -> None:
        super().__init__()
        self.space, self.p, self.activation = space, p, activation
        self.linear = Dense(inputs, outputs, bias=False, gain=2**0.5)
        self.attention = Dense(outputs, outputs, bias=False)

    def forward(self, u: Features, edges: SparseFeatures) -> Tensor:
        v = self.linear(u, self.p)
        h, seen = exp0(self.space, v), exp0(self.space, self.attention(v))
        # The constant -2/c of the distance is the same for all neighbours and leaves the softmax as it is.
        closeness = 2 * edge_inner(edges, seen, seen)
        mean = centroid(edge_sum(edges, edge_softmax(edges, closeness), h), self.space.c)
        return ACTIVATIONS[self.activation](log0(self.space, mean))


@MODELS.register("lgcn")
class LGCN(Model):
    """Lorentzian convolutions, each with its own curvature; classes by distances to trained centroids.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = LGCN(LGCN.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Zhang et al., Lorentzian graph convolutional networks, WWW 2021"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(16, "width of the hidden representation", at_least=1)
        layers: int = setting(2, "number of convolutions", at_least=1)
        activation: str = setting("relu", "after every convolution", choices=tuple(ACTIVATIONS))
        dropout: float = setting(0.5, "dropout on the input of every convolution", at_least=0, below=1)
        centroids: int = setting(64, "points whose distances are the input of the last layer, for nodes", at_least=1)
        curvature: float = setting(1.0, "c of every hyperboloid, to start with", above=0)
        learn_curvature: bool = setting(True, "train the curvatures")

    # The authors' code for nodes is not at hand; dropout and learning rate are what validation on Cora chose.
    presets: ClassVar[Presets] = {
        "default": {
            "model": {"width": 16, "layers": 2, "dropout": 0.8},
            "training": {"lr": 0.01, "weight_decay": 1e-3, "epochs": 1000, "patience": 100},
            "preprocessing": {"normalise": "words"},
        },
        "links": {
            "model": {"width": 64, "layers": 2, "dropout": 0.5},
            "training": {"lr": 0.005, "weight_decay": 0.0, "epochs": 1000, "patience": 100},
            "preprocessing": {"normalise": "words"},
        },
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        s = settings
        self.layers = nn.ModuleList(
            LGCNLayer(a, b, Lorentz(s.curvature, s.learn_curvature), s.dropout, s.activation)
            for a, b in itertools.pairwise([shape.in_features] + [s.width] * s.layers)
        )
        self.space = Lorentz(s.curvature, s.learn_curvature)
        self.centroids, self.decoder = None, None
        if shape.outputs is not None:
            self.centroids = nn.Parameter(torch.empty(s.centroids, s.width))
            nn.init.normal_(self.centroids, std=s.width**-0.5)
            self.decoder = Dense(s.centroids, shape.outputs)

    @property
    def manifold(self) -> Manifold:
        return self.space

    def feature_parameters(self) -> list[nn.Parameter]:
        first = self.layers[0]
        assert isinstance(first, LGCNLayer)
        return [first.linear.weight]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, "none", like=self.feature_parameters()[0])

    def embed(self, features: Features, graph: Graph) -> Tensor:
        edges = adjacency(graph, "none", like=self.feature_parameters()[0])
        u: Features = features
        for layer in self.layers:
            u = layer(u, edges)
        assert isinstance(u, Tensor)
        return exp0(self.space, u)

    def readout(self, z: Tensor) -> Tensor:
        return built(self.decoder)(-2 / self.space.c - 2 * pairwise_inner(z, exp0(self.space, built(self.centroids))))
