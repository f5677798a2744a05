"""BLEND: Beltrami diffusion of features together with positions in the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from hgde.graph import Features, Graph
from hgde.models.base import MODELS, Shape
from hgde.models.zoo._common import Dense, Presets, once_per
from hgde.models.zoo.grand import GRAND, _preset
from hgde.sections import setting

REACH = 4.0
"""The largest distance in the hyperbolic embedding that positions come from, in units of its curvature radius."""


def positions(graph: Graph, width: int, landmarks: int) -> Tensor:
    """Hyperbolic positions ``[N, width]`` in the unit ball, from shortest-path distances to landmarks.

    Classical scaling on the hyperboloid (Keller-Ressel and Nargang, Hydra, 2020): with ``D`` the distances between
    landmarks, ``cosh D = x_0 x_0^T - X X^T`` is solved by the largest and the most negative eigenvalues, and every
    other node is placed by its distances to the landmarks. Landmarks are the nodes of largest degree; distances are
    scaled to at most :data:`REACH`, nodes out of reach counting as one step farther than any. Memory ``N landmarks``.
    """
    from scipy.sparse.csgraph import dijkstra

    chosen = torch.argsort(graph.degree, descending=True, stable=True)[:landmarks].cpu().numpy()
    distances = dijkstra(graph.to_scipy(), unweighted=True, indices=chosen).T
    reached = np.isfinite(distances)
    farthest = distances[reached].max(initial=0.0)
    # Rows first: a node out of reach of all landmarks is one step farther from every one of them.
    distances = np.where(reached, distances, farthest + 1) * (REACH / (farthest + 1))
    cosh = np.cosh(distances)
    values, vectors = np.linalg.eigh(cosh[chosen])
    vectors *= np.where((vectors**3).sum(0) < 0, -1.0, 1.0)
    time = cosh @ vectors[:, -1:] / np.sqrt(values[-1])
    count = min(width, len(chosen) - 1)
    negative = np.minimum(values[:count], 0)
    scale = np.where(negative < -1e-9 * values[-1], 1 / np.sqrt(np.maximum(-negative, 1e-300)), 0.0)
    space = -cosh @ vectors[:, :count] * scale
    # From the hyperboloid to the ball; a landmark's own time is at least 1 only up to the error of the fit.
    time = np.maximum(np.abs(time), np.sqrt(1 + (space**2).sum(1, keepdims=True)))
    placed = np.zeros((graph.num_nodes, width))
    placed[:, :count] = space / (1 + time)
    return torch.from_numpy(placed).to(graph.device)


@MODELS.register("blend")
class BLEND(GRAND):
    """GRAND whose state is ``[features W, positions V]``: both are diffused, and attention sees both.

    Positions are hyperbolic (:func:`positions`), worked out once per graph; the equation is solved in flat space.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = BLEND(BLEND.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Chamberlain et al., Beltrami flow and neural diffusion on graphs, NeurIPS 2021"

    @dataclass(frozen=True)
    class Settings(GRAND.Settings):
        positions: int = setting(16, "dimension of the hyperbolic positions", at_least=1)
        position_width: int = setting(16, "width they are encoded to", at_least=1)
        landmarks: int = setting(500, "nodes whose distances place all others", at_least=2)

    presets: ClassVar[Presets] = {
        "default": _preset(64, 8.0, 0.2, 0.5, 0.01, 0.03),
        "cora": _preset(64, 18.29, 0.047, 0.5, 0.01, 0.03),
        "citeseer": _preset(64, 7.87, 0.75, 0.41, 0.0026, 0.1),
        "pubmed": _preset(64, 12.94, 0.07, 0.5, 0.0145, 7e-4, heads=1),
    }

    settings: Settings

    def __init__(self, settings: Settings, shape: Shape) -> None:
        self._position_width = settings.position_width
        super().__init__(settings, shape)
        self.placement = Dense(settings.positions, settings.position_width)

    def extra_width(self) -> int:
        return self._position_width

    def prepare(self, graph: Graph) -> None:
        super().prepare(graph)
        self.positions(graph)

    def positions(self, graph: Graph) -> Tensor:
        s = self.settings
        key = ("positions", s.positions, s.landmarks)
        return once_per(graph, key, lambda: positions(graph, s.positions, s.landmarks)).to(self.encoder.weight.dtype)

    def start(self, features: Features, graph: Graph) -> Tensor:
        encoded = self.encoder(features, self.settings.input_dropout)
        return torch.cat([encoded, self.placement(self.positions(graph))], dim=1)
