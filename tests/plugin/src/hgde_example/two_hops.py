"""A linear model on the features of a node and of the nodes two steps away."""

from dataclasses import dataclass

import torch
from torch import nn

from hgde.graph import SparseFeatures
from hgde.models import Model
from hgde.sections import Section, setting


class TwoHops(Model):
    """``x W + (A A x) V + b`` with the row-normalised adjacency ``A``."""

    paper = "An example"

    @dataclass(frozen=True)
    class Settings(Section):
        bias: bool = setting(True, "Add a constant.")

    def __init__(self, settings, shape):
        super().__init__()
        self.own = nn.Linear(shape.in_features, shape.outputs, bias=settings.bias)
        self.far = nn.Linear(shape.in_features, shape.outputs, bias=False)

    def feature_parameters(self):
        return [self.own.weight, self.far.weight]

    def embed(self, features, graph):
        x = features.to_dense() if isinstance(features, SparseFeatures) else features
        far = x
        for _ in range(2):
            sums = torch.zeros_like(x).index_add(0, graph.rows, far[graph.indices])
            far = sums / graph.degree.clamp_min(1)[:, None]
        return torch.cat([x, far], dim=1)

    def readout(self, z):
        x, far = z.chunk(2, dim=1)
        return self.own(x) + self.far(far)
