"""HyboNet: graph convolutions that never leave the hyperboloid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hgde.geometry import Lorentz, Manifold
from hgde.geometry.lorentz import with_time
from hgde.geometry.numerics import squared_norm
from hgde.graph import Features, Graph, SparseFeatures
from hgde.kernels.chance import dropout
from hgde.models.base import MODELS, Model, Shape, built
from hgde.models.zoo._common import ACTIVATIONS, Presets, adjacency, edge_sum, product, propagate
from hgde.models.zoo._lorentz import centroid, edge_inner, exp0, on_hyperboloid, pairwise_inner
from hgde.sections import Section, setting


class LorentzLinear(nn.Module):
    """A linear map of all coordinates, time included, brought back to the hyperboloid. ``[N, in + 1] -> [N, out + 1]``

    With ``(t, s) = dropout(act(x)) W + b`` the new time is ``x_0 = e^scale sigmoid(t) + 1/sqrt(c) + 0.1`` and the new
    space ``sqrt(x_0^2 - 1/c) s / |s|`` (paper, eq. 3 and the choice of phi below it).
    """

    def __init__(self, inputs: int, outputs: int, space: Lorentz, p: float = 0.0, activation: str = "identity") -> None:
        super().__init__()
        self.space, self.p, self.activation = space, p, activation
        self.weight = nn.Parameter(torch.empty(inputs + 1, outputs + 1))
        self.bias = nn.Parameter(torch.zeros(outputs + 1))
        self.scale = nn.Parameter(torch.tensor(math.log(10.0)))
        nn.init.uniform_(self.weight, -((outputs + 1) ** -0.5), (outputs + 1) ** -0.5)
        with torch.no_grad():
            self.weight[0] = 0

    def forward(self, time: Tensor, space: Features) -> Tensor:
        if isinstance(space, Tensor):
            act = ACTIVATIONS[self.activation]
            time, space = act(time), act(space)
        y = product(space, self.weight[1:], self.p, self.training)
        y = y + dropout(time, self.p, self.training) * self.weight[:1] + self.bias
        c, s = self.space.c, y[:, 1:]
        new_time = torch.sigmoid(y[:, :1]) * self.scale.exp() + (c.rsqrt() + 0.1).to(y.dtype)
        length = squared_norm(s).clamp_min(1e-8)
        return with_time(s * ((new_time.square() - 1 / c) / length).sqrt(), c)


class HyboNetLayer(nn.Module):
    """Lorentz linear layer, then the centroid of the neighbours, ``sum_j w_ij x_j`` scaled onto the hyperboloid.

    Weights are the row-normalised adjacency with loops, with ``attention`` times
    ``sigmoid((2/c + 2<q_i, k_j>_L) / a + b)``. Edges only.
    """

    def __init__(self, inputs: int, outputs: int, space: Lorentz, p: float, activation: str, attention: bool) -> None:
        super().__init__()
        self.space = space
        self.linear = LorentzLinear(inputs, outputs, space, p, activation)
        self.query = LorentzLinear(outputs, outputs, space) if attention else None
        self.key = LorentzLinear(outputs, outputs, space) if attention else None
        if attention:
            self.shift = nn.Parameter(torch.tensor(20.0))
            self.divisor = nn.Parameter(torch.tensor(math.sqrt(outputs + 1)))

    def forward(self, time: Tensor, space: Features, edges: SparseFeatures) -> Tensor:
        x, c = self.linear(time, space), self.space.c
        if self.query is None or self.key is None:
            return centroid(propagate(edges, x), c)
        q, k = self.query(x[:, :1], x[:, 1:]), self.key(x[:, :1], x[:, 1:])
        closeness = torch.sigmoid((2 / c + 2 * edge_inner(edges, q, k)) / self.divisor + self.shift)
        return centroid(edge_sum(edges, edges.values * closeness, x), c)


def _preset(
    layers: int, p: float, lr: float, clip: float | None, activation: str = "identity", scaling: str = "words"
) -> Any:
    # The authors' optimiser takes `lr * decay` off the weights directly; with their values (at most 2e-4 a step) that
    # is next to nothing beside Adam's penalty of the same name, which pulls this model to a constant.
    return {
        "model": {"width": 16, "layers": layers, "dropout": p, "activation": activation},
        "training": {"lr": lr, "weight_decay": 0.0, "clip": clip, "epochs": 5000, "patience": 500},
        "preprocessing": {"normalise": scaling},
    }


@MODELS.register("hybonet")
class HyboNet(Model):
    """Fully hyperbolic convolutions; logits ``2/c + 2<x, p_k>_L + b_k``, a squared distance to a point per class.

    ``layers`` counts as the authors' option does: ``layers - 1`` convolutions and the decoder for nodes, ``layers``
    convolutions for links. The authors train with a margin loss; here the task's loss is used.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = HyboNet(HyboNet.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Chen et al., Fully hyperbolic neural networks, ACL 2022"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(16, "width of the hidden representation", at_least=1)
        layers: int = setting(3, "number of layers, the decoder for nodes included", at_least=2)
        activation: str = setting("identity", "on the input of every layer but the first", choices=tuple(ACTIVATIONS))
        dropout: float = setting(0.5, "dropout on the input of every layer", at_least=0, below=1)
        attention: bool = setting(False, "weigh neighbours by attention")
        curvature: float = setting(1.0, "c of the hyperboloid", above=0)

    presets: ClassVar[Presets] = {
        "default": _preset(3, 0.5, 0.02, 1.0),
        "cora": _preset(3, 0.9, 0.02, 1.0),
        "pubmed": _preset(3, 0.8, 0.02, 0.5),
        "airport": _preset(6, 0.0, 0.02, 1.0, "relu"),
        "disease": _preset(4, 0.1, 0.005, 0.5),
        "cora-links": _preset(2, 0.7, 0.02, 0.5),
        "pubmed-links": _preset(2, 0.5, 0.008, 0.5),
        "airport-links": _preset(2, 0.0, 0.01, None),
        "disease-links": _preset(2, 0.0, 0.005, 0.5, scaling="none"),
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        s = settings
        self.space = Lorentz(s.curvature)
        count = s.layers if shape.outputs is None else s.layers - 1
        widths = [shape.in_features] + [s.width] * count
        self.layers = nn.ModuleList(
            HyboNetLayer(
                widths[i], widths[i + 1], self.space, s.dropout, s.activation if i else "identity", s.attention
            )
            for i in range(count)
        )
        self.classes, self.bias = None, None
        if shape.outputs is not None:
            self.classes = nn.Parameter(torch.empty(shape.outputs, s.width))
            self.bias = nn.Parameter(torch.zeros(shape.outputs))
            nn.init.normal_(self.classes, std=s.width**-0.5)

    @property
    def manifold(self) -> Manifold:
        return self.space

    def feature_parameters(self) -> list[nn.Parameter]:
        first = self.layers[0]
        assert isinstance(first, HyboNetLayer)
        return [first.linear.weight]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, "rows", like=self.feature_parameters()[0])

    def embed(self, features: Features, graph: Graph) -> Tensor:
        edges = adjacency(graph, "rows", like=self.feature_parameters()[0])
        time, space = on_hyperboloid(features, self.space.c)
        x = self.layers[0](time, space, edges)
        for layer in self.layers[1:]:
            x = layer(x[:, :1], x[:, 1:], edges)
        return x

    def readout(self, z: Tensor) -> Tensor:
        return 2 / self.space.c + 2 * pairwise_inner(z, exp0(self.space, built(self.classes))) + built(self.bias)
