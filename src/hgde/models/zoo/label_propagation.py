"""Labels spread along the edges; nothing is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph, SparseFeatures
from hgde.models.base import MODELS, Model, Shape
from hgde.models.zoo._common import Presets, adjacency, propagate
from hgde.sections import Section, SettingsError, setting


@dataclass(frozen=True)
class _Spreading(Section):
    rounds: int = setting(1000, "largest number of rounds", at_least=1)
    tolerance: float = setting(1e-4, "stop when no entry changes by more", at_least=0)


class LabelModel(Model):
    """What both share: known labels as a table ``[N, classes]``, spread until nothing changes.

    :meth:`observe` takes one target per node it names: class numbers, or numbers to be interpolated. The table is part
    of the state, so a saved model needs no labels. Outputs are log-probabilities, or the interpolated numbers. Nodes
    that no label reaches get equal odds, or the mean.
    """

    presets: ClassVar[Presets] = {"default": {}}
    known: Tensor
    values: Tensor
    is_class: Tensor

    def __init__(self, settings: _Spreading, shape: Shape) -> None:
        super().__init__()
        if shape.outputs is None:
            raise SettingsError(
                "label spreading gives no points that links could be decoded from; choose another model"
            )
        self.settings, self.shape = settings, shape
        self.register_buffer("known", torch.zeros(shape.num_nodes, dtype=torch.bool))
        self.register_buffer("values", torch.zeros(shape.num_nodes, shape.outputs))
        self.register_buffer("is_class", torch.tensor(True))

    def feature_parameters(self) -> list[nn.Parameter]:
        return []

    def observe(self, targets: Tensor, nodes: Tensor) -> None:
        if targets.shape[0] != nodes.numel():
            raise ValueError(f"expected one target per node, got {targets.shape[0]} targets of {nodes.numel()} nodes")
        self.known.zero_()
        self.values.zero_()
        self.known[nodes] = True
        self.is_class.fill_(not targets.is_floating_point())
        if targets.is_floating_point():
            self.values[nodes] = targets.reshape(nodes.numel(), -1).to(self.values.dtype)
        else:
            self.values[nodes, targets] = 1

    def spread(self, graph: Graph, start: Tensor) -> Tensor:
        raise NotImplementedError

    def embed(self, features: Features, graph: Graph) -> Tensor:
        return self.forward(features, graph)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        if graph.num_nodes != self.shape.num_nodes:
            raise ValueError(f"labels are known of {self.shape.num_nodes} nodes, but the graph has {graph.num_nodes}")
        # The last column spreads what weight of labels arrives at all.
        start = torch.cat([self.values, self.known[:, None].to(self.values.dtype)], dim=1)
        result = self.spread(graph, start)
        weight = result[:, -1:]
        reached = weight > 0
        values = result[:, :-1] / torch.where(reached, weight, 1.0)
        if not bool(self.is_class):
            return torch.where(reached, values, self.values[self.known].mean(0))
        even = torch.full_like(values, 1 / values.shape[1])
        return torch.where(reached, values, even).clamp_min(1e-12).log()

    def _iterate(self, matrix: SparseFeatures, start: Tensor, keep: float) -> Tensor:
        """``F <- keep A F + (1 - keep) start``; with ``keep`` 1, known rows are put back instead."""
        state = start
        for _ in range(self.settings.rounds):
            moved = propagate(matrix, state)
            after = torch.where(self.known[:, None], start, moved) if keep == 1 else keep * moved + (1 - keep) * start
            change = (after - state).abs().max()
            state = after
            if change <= self.settings.tolerance:
                break
        return state


@MODELS.register("label-propagation")
class LabelPropagation(LabelModel):
    """``F <- D^-1 A F``, known rows put back after every round."""

    paper = "Zhu and Ghahramani, Learning from labeled and unlabeled data with label propagation, 2002"
    Settings = _Spreading

    def spread(self, graph: Graph, start: Tensor) -> Tensor:
        return self._iterate(adjacency(graph, "rows", loops=False, like=start), start, 1.0)


@MODELS.register("label-spreading")
class LabelSpreading(LabelModel):
    """``F <- alpha D^-1/2 A D^-1/2 F + (1 - alpha) F_0``."""

    paper = "Zhou et al., Learning with local and global consistency, NeurIPS 2003"

    @dataclass(frozen=True)
    class Settings(_Spreading):
        alpha: float = setting(0.9, "share of the neighbours in every round", above=0, below=1)

    settings: Settings

    def spread(self, graph: Graph, start: Tensor) -> Tensor:
        return self._iterate(adjacency(graph, loops=False, like=start), start, self.settings.alpha)
