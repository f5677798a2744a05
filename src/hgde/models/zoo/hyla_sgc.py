"""HyLa-SGC: random Laplacian features of hyperbolic space in front of a simplified graph convolution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hgde.geometry import PoincareBall
from hgde.geometry.numerics import squared_norm
from hgde.graph import Features, Graph
from hgde.kernels.chance import dropout
from hgde.models.base import MODELS, Model, Shape
from hgde.models.zoo._common import Dense, Presets, adjacency, product, propagate
from hgde.sections import Section, setting


def hyla(z: Tensor, directions: Tensor, frequencies: Tensor, phases: Tensor) -> Tensor:
    """``exp((n - 1) P / 2) cos(f P + b)`` with ``P = log((1 - |z|^2) / |z - w|^2)``: ``[F, n] -> [F, D]``.

    ``P`` is the signed distance of ``z`` from the horocycle through the origin with centre ``w`` (unit vectors
    ``directions [D, n]``); these are eigenfunctions of the ball's Laplacian.
    """
    square = squared_norm(z)
    gap = (square + 1 - 2 * z @ directions.T).clamp_min(torch.finfo(z.dtype).eps)
    horocycle = torch.log((1 - square).clamp_min(torch.finfo(z.dtype).eps)) - torch.log(gap)
    return torch.exp(0.5 * (z.shape[1] - 1) * horocycle) * torch.cos(frequencies * horocycle + phases)


def _preset(width: int, hops: int, scale: float, lr: float, level: str = "features") -> Any:
    return {
        "model": {"hyla_width": width, "hops": hops, "frequency": scale, "level": level},
        "training": {"lr": lr, "weight_decay": 0.0, "epochs": 100},
        "preprocessing": {"normalise": "none"},
    }


@MODELS.register("hyla-sgc")
class HyLaSGC(Model):
    """``A^hops x H(z) W + b`` with ``H`` the :func:`hyla` features of trained points ``z`` of the ball.

    Points belong to features, ``x H(z)``, or (``level`` nodes) to the nodes themselves: then the features of the nodes
    are not used, and the model knows only the graph it was made for.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = HyLaSGC(HyLaSGC.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Yu and De Sa, Random Laplacian features for learning with hyperbolic space, ICLR 2023"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(16, "dimension of the points of the ball", at_least=1)
        hyla_width: int = setting(100, "number of random features", at_least=1)
        hops: int = setting(2, "how often they are propagated", at_least=0)
        frequency: float = setting(0.01, "standard deviation of the frequencies", above=0)
        level: str = setting("features", "what has a point of its own", choices=("features", "nodes"))
        dropout: float = setting(0.0, "dropout on the random features", at_least=0, below=1)

    presets: ClassVar[Presets] = {
        "default": _preset(100, 2, 0.01, 0.01),
        "cora": _preset(100, 2, 0.01, 0.01),
        "citeseer": _preset(500, 5, 0.01, 0.001),
        "pubmed": _preset(250, 5, 0.01, 0.01),
        "airport": _preset(1000, 2, 0.01, 0.1, "nodes"),
        "disease": _preset(500, 5, 0.1, 0.01, "nodes"),
    }
    directions: Tensor
    frequencies: Tensor
    phases: Tensor

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        s = settings
        count = shape.in_features if s.level == "features" else shape.num_nodes
        self.space = PoincareBall(1.0)
        # Tangent vectors at the origin, so that any step of an optimiser stays in the ball, ten times as long as meant:
        # the features grow as exp((n - 1) P / 2), and Adam's steps would be too large for them.
        self.points = nn.Parameter(torch.empty(count, s.width))
        nn.init.normal_(self.points, std=0.01)
        self.register_buffer("directions", nn.functional.normalize(nn.init.normal_(torch.empty(s.hyla_width, s.width))))
        self.register_buffer("frequencies", s.frequency * nn.init.normal_(torch.empty(s.hyla_width)))
        self.register_buffer("phases", nn.init.uniform_(torch.empty(s.hyla_width), 0, 2 * math.pi))
        self.linear = Dense(s.hyla_width, s.hyla_width if shape.outputs is None else shape.outputs)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.points]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, like=self.points)

    def embed(self, features: Features, graph: Graph) -> Tensor:
        return self.forward(features, graph)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        z = self.space.expmap0(0.1 * self.points)
        table = dropout(hyla(z, self.directions, self.frequencies, self.phases), self.settings.dropout, self.training)
        # Everything after the table is linear: multiply by the narrow matrix first.
        table = table @ self.linear.weight
        y = table if self.settings.level == "nodes" else product(features, table)
        for _ in range(self.settings.hops):
            y = propagate(adjacency(graph, like=y), y)
        return self.linear.translate(y)
