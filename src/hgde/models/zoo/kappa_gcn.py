"""The graph convolution in constant curvature of either sign, on geoopt's stereographic model."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hgde.geometry import GeooptManifold, Manifold
from hgde.geometry.numerics import squared_norm
from hgde.graph import Features, Graph, SparseFeatures
from hgde.models.base import MODELS, Model, Shape, built
from hgde.models.zoo._common import ACTIVATIONS, Dense, Presets, adjacency, propagate
from hgde.models.zoo._hyperbolic import across_planes
from hgde.sections import Section, setting


def midpoints(space: Any, matrix: SparseFeatures, x: Tensor) -> Tensor:
    """``log_o((A ⊠ x)_i)``: the gyromidpoint of all points weighted by row ``i``, times the row's sum (paper, def. 3).

    ``A ⊠ x = (sum_j a_ij) ⊗ (1/2 ⊗ (sum_j a_ij lambda_j x_j / sum_j |a_ij| (lambda_j - 1)))``; cost ``E d``. The first
    multiplication is an ordinary one in the tangent space at the origin, and
    ``1/2 ⊗ m = m / (1 + sqrt(1 + kappa |m|^2))``.
    """
    scale = space.lambda_x(x, keepdim=True)
    sums = propagate(matrix, torch.cat([scale * x, scale - 1, torch.ones_like(scale)], dim=1))
    top, bottom, total = sums[:, :-2], sums[:, -2:-1], sums[:, -1:]
    small = 1e-10
    bottom = torch.where(bottom.abs() < small, bottom.new_full((), small), bottom)
    mean = space.projx(top / bottom)
    middle = mean / (1 + (1 + space.k * squared_norm(mean)).clamp_min(small).sqrt())
    tangent: Tensor = total * space.logmap0(middle)
    return tangent


def plane_distances(space: Any, x: Tensor, p: Tensor, normals: Tensor) -> Tensor:
    """Signed distances of ``x [N, d]`` to the planes through ``p [K, d]``, times the lengths of the normals."""
    from geoopt.manifolds.stereographic.math import arsin_k

    across, length = across_planes(x, p, normals, -space.k)
    return arsin_k(across, space.k) * length


@MODELS.register("kappa-gcn")
class KappaGCN(Model):
    """``x' = act⊗(A ⊠ (x ⊗ W))`` in the stereographic model of curvature ``kappa``.

    Logits are signed distances to hyperplanes, propagated once more: ``A logit(x)``.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = KappaGCN(KappaGCN.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Bachmann, Bécigneul and Ganea, Constant curvature graph convolutional networks, ICML 2020"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(16, "width of the hidden representation", at_least=1)
        layers: int = setting(2, "number of layers, the one that gives the outputs included", at_least=2)
        activation: str = setting("relu", "between the layers", choices=tuple(ACTIVATIONS))
        dropout: float = setting(0.5, "dropout on the input of every layer", at_least=0, below=1)
        kappa: float = setting(-1.0, "sectional curvature to start with; negative, zero or positive")
        learn_curvature: bool = setting(True, "train the curvature")

    # The paper has nothing on links: activation and learning rate are what validation on Cora chose.
    presets: ClassVar[Presets] = {
        name: {
            "model": {"width": 16, "layers": 2, "dropout": 0.5, "activation": activation},
            "training": {"lr": lr, "weight_decay": 5e-4, "epochs": 1000, "patience": 100},
            "preprocessing": {"normalise": "words"},
        }
        for name, activation, lr in (("default", "relu", 0.01), ("links", "tanh", 0.03))
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        import geoopt

        self.settings, self.shape = settings, shape
        self.space: Any = geoopt.Stereographic(settings.kappa, learnable=settings.learn_curvature)
        count = settings.layers if shape.outputs is None else settings.layers - 1
        widths = [shape.in_features] + [settings.width] * count
        self.layers = nn.ModuleList(Dense(a, b, bias=False) for a, b in itertools.pairwise(widths))
        self.normals, self.points = None, None
        if shape.outputs is not None:
            self.normals = nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape.outputs, settings.width)))
            self.points = nn.Parameter(1e-2 * nn.init.xavier_uniform_(torch.empty(shape.outputs, settings.width)))

    @property
    def manifold(self) -> Manifold:
        return GeooptManifold(self.space)

    def curvatures(self) -> dict[str, float]:
        return {"curvature": -float(self.space.k.detach())}

    def feature_parameters(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.layers[0].parameters() if parameter.dim() == 2]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, like=self.feature_parameters()[0])

    def embed(self, features: Features, graph: Graph) -> Tensor:
        matrix = adjacency(graph, like=self.feature_parameters()[0])
        u: Features = features
        for layer in self.layers:
            mean = midpoints(self.space, matrix, self.space.expmap0(layer(u, self.settings.dropout)))
            u = ACTIVATIONS[self.settings.activation](mean)
        assert isinstance(u, Tensor)
        return self.space.expmap0(u)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        x, p = self.embed(features, graph), self.space.expmap0(built(self.points))
        return propagate(adjacency(graph, like=x), plane_distances(self.space, x, p, built(self.normals)))
