"""GCNII: a deep graph convolution with initial residual and identity mapping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph, SparseFeatures
from hgde.kernels.chance import dropout
from hgde.models.base import MODELS, Model, Shape, built
from hgde.models.zoo._common import Dense, Presets, adjacency, propagate
from hgde.sections import Section, setting


class GCNIILayer(nn.Module):
    """``((1 - alpha) A x + alpha x_0) ((1 - beta) I + beta W)``: PyG's ``GCN2Conv``. ``[N, width] -> [N, width]``

    ``(1 - alpha) A`` and ``alpha x_0``, the same for all layers, are handed in.
    """

    def __init__(self, width: int, beta: float) -> None:
        super().__init__()
        self.beta = beta
        self.weight = nn.Parameter(torch.empty(width, width))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor, share: Tensor, matrix: SparseFeatures) -> Tensor:
        # One small matrix instead of a product and a sum of the size of x.
        identity = torch.eye(len(self.weight), dtype=x.dtype, device=x.device)
        return (propagate(matrix, x) + share) @ torch.lerp(identity, self.weight, self.beta)


def _preset(layers: int, width: int, dropout: float, theta: float, alpha: float, decay: float, rest: float) -> Any:
    return {
        "model": {"layers": layers, "width": width, "dropout": dropout, "theta": theta, "alpha": alpha},
        "training": {"lr": 0.01, "weight_decay": decay, "weight_decay_rest": rest, "epochs": 1500, "patience": 100},
        "preprocessing": {"normalise": "words"},
    }


@MODELS.register("gcnii")
class GCNII(Model):
    """``x_0 = relu(x W)``, then ``x_l = relu(GCNII_l(dropout(x_{l-1}), x_0))`` with ``beta_l = log(theta / l + 1)``.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = GCNII(GCNII.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Chen et al., Simple and deep graph convolutional networks, ICML 2020"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(64, "width of the hidden representation", at_least=1)
        layers: int = setting(16, "number of convolutions", at_least=0)
        dropout: float = setting(0.6, "dropout on the input of every layer", at_least=0, below=1)
        alpha: float = setting(0.1, "share of the first representation in every layer", at_least=0, at_most=1)
        theta: float = setting(0.5, "how far a layer's matrix is from the identity, over its depth", above=0)

    presets: ClassVar[Presets] = {
        "default": _preset(16, 64, 0.6, 0.5, 0.1, 5e-4, 0.01),
        "cora": _preset(64, 64, 0.6, 0.5, 0.1, 5e-4, 0.01),
        "citeseer": _preset(32, 256, 0.7, 0.6, 0.1, 5e-4, 0.01),
        "pubmed": _preset(16, 256, 0.5, 0.4, 0.1, 5e-4, 5e-4),
        "texas": _preset(32, 64, 0.5, 1.5, 0.5, 1e-4, 1e-4),
        "cornell": _preset(16, 64, 0.5, 1.0, 0.5, 1e-3, 1e-3),
        "wisconsin": _preset(16, 64, 0.5, 1.0, 0.5, 5e-4, 5e-4),
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        self.encoder = Dense(shape.in_features, settings.width)
        betas = [math.log(settings.theta / (number + 1) + 1) for number in range(settings.layers)]
        self.layers = nn.ModuleList(GCNIILayer(settings.width, beta) for beta in betas)
        self.decoder = None if shape.outputs is None else Dense(settings.width, shape.outputs)

    def feature_parameters(self) -> list[nn.Parameter]:
        # The paper decays both dense layers alike and the convolutions by another factor.
        return [self.encoder.weight, *([] if self.decoder is None else [self.decoder.weight])]

    def prepare(self, graph: Graph) -> None:
        adjacency(graph, like=self.encoder.weight)

    def embed(self, features: Features, graph: Graph) -> Tensor:
        p, alpha = self.settings.dropout, self.settings.alpha
        x = self.encoder(features, p).relu()
        matrix, share = adjacency(graph, like=x), alpha * x
        matrix = matrix.with_values((1 - alpha) * matrix.values)
        for layer in self.layers:
            x = layer(dropout(x, p, self.training), share, matrix).relu()
        return x

    def readout(self, z: Tensor) -> Tensor:
        return built(self.decoder)(z, self.settings.dropout)
