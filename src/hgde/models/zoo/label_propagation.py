"""Labels spread along the edges; nothing is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph, GraphError, SparseFeatures
from hgde.models.base import MODELS, Model, Shape
from hgde.models.zoo._common import Presets, adjacency, propagate
from hgde.sections import Section, SettingsError, setting

_CLASSES, _LABEL_SETS, _NUMBERS = range(3)


@dataclass(frozen=True)
class _Spreading(Section):
    rounds: int = setting(1000, "largest number of rounds", at_least=1)
    tolerance: float = setting(1e-4, "stop when no entry changes by more", at_least=0)


class LabelModel(Model):
    """What both share: known targets as a table ``[N, outputs]``, spread until nothing changes.

    :meth:`observe` takes one target per node it names: class numbers ``[n]``, label sets (0, 1, or -1 for unknown,
    ``[n, labels]``) or numbers to be interpolated (NaN for unknown). The table is part of the state, so a saved model
    needs no labels. Outputs are log-probabilities, log-odds, or the interpolated numbers; what nothing reaches gets
    even odds, or the mean.
    """

    presets: ClassVar[Presets] = {"default": {}}
    known: Tensor
    values: Tensor
    kind: Tensor

    def __init__(self, settings: _Spreading, shape: Shape) -> None:
        super().__init__()
        if shape.outputs is None:
            raise SettingsError(
                "label spreading gives no points that links could be decoded from; choose another model"
            )
        self.settings, self.shape = settings, shape
        self.register_buffer("known", torch.zeros(shape.num_nodes, shape.outputs, dtype=torch.bool))
        self.register_buffer("values", torch.zeros(shape.num_nodes, shape.outputs))
        self.register_buffer("kind", torch.tensor(_CLASSES))

    def feature_parameters(self) -> list[nn.Parameter]:
        return []

    def observe(self, targets: Tensor, nodes: Tensor) -> None:
        if targets.shape[0] != nodes.numel():
            raise ValueError(f"expected one target per node, got {targets.shape[0]} targets of {nodes.numel()} nodes")
        self.known.zero_()
        self.values.zero_()
        if targets.is_floating_point():
            self.kind.fill_(_NUMBERS)
            table = targets.reshape(nodes.numel(), -1)
            self.known[nodes] = torch.isfinite(table)
            self.values[nodes] = table.nan_to_num(0.0).to(self.values.dtype)
        elif targets.dim() == 2:
            self.kind.fill_(_LABEL_SETS)
            self.known[nodes] = targets >= 0
            self.values[nodes] = targets.clamp_min(0).to(self.values.dtype)
        else:
            self.kind.fill_(_CLASSES)
            self.known[nodes] = True
            self.values[nodes, targets] = 1

    def spread(self, graph: Graph, start: Tensor, fixed: Tensor) -> Tensor:
        """``start`` spread over the graph, both ``[N, columns]``; ``fixed`` says which entries are known."""
        raise NotImplementedError

    def embed(self, features: Features, graph: Graph) -> Tensor:
        return self.forward(features, graph)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        if graph.num_nodes != self.shape.num_nodes:
            raise GraphError(f"labels are known of {self.shape.num_nodes} nodes, but the graph has {graph.num_nodes}")
        # Beside every column of values, how much of what is known in it arrives at all.
        start = torch.cat([self.values, self.known.to(self.values.dtype)], dim=1)
        result, weight = self.spread(graph, start, self.known.repeat(1, 2)).chunk(2, dim=1)
        reached = weight > 0
        values = result / torch.where(reached, weight, 1.0)
        kind = int(self.kind)
        if kind == _NUMBERS:
            mean = self.values.sum(0) / self.known.sum(0).clamp_min(1)
            return torch.where(reached, values, mean)
        if kind == _LABEL_SETS:
            return torch.logit(torch.where(reached, values, 0.5), eps=1e-6)
        return torch.where(reached, values, 1 / values.shape[1]).clamp_min(1e-12).log()

    def _iterate(self, matrix: SparseFeatures, start: Tensor, fixed: Tensor, keep: float) -> Tensor:
        """``F <- keep A F + (1 - keep) start``; with ``keep`` 1, fixed entries are put back instead."""
        state = start
        for _ in range(self.settings.rounds):
            moved = propagate(matrix, state)
            after = torch.where(fixed, start, moved) if keep == 1 else keep * moved + (1 - keep) * start
            change = (after - state).abs().max()
            state = after
            if change <= self.settings.tolerance:
                break
        return state


@MODELS.register("label-propagation")
class LabelPropagation(LabelModel):
    """``F <- D^-1 A F``, known rows put back after every round.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = LabelPropagation(LabelPropagation.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model.observe(torch.tensor([0, 1]), torch.tensor([0, 3]))      # the two ends
    >>> model(torch.eye(4), path).argmax(1).tolist()
    [0, 0, 1, 1]
    """

    paper = "Zhu and Ghahramani, Learning from labeled and unlabeled data with label propagation, 2002"
    Settings = _Spreading

    def spread(self, graph: Graph, start: Tensor, fixed: Tensor) -> Tensor:
        return self._iterate(adjacency(graph, "rows", loops=False, like=start), start, fixed, 1.0)


@MODELS.register("label-spreading")
class LabelSpreading(LabelModel):
    """``F <- alpha D^-1/2 A D^-1/2 F + (1 - alpha) F_0``.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = LabelSpreading(LabelSpreading.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model.observe(torch.tensor([0, 1]), torch.tensor([0, 3]))      # the two ends
    >>> model(torch.eye(4), path).argmax(1).tolist()
    [0, 0, 1, 1]
    """

    paper = "Zhou et al., Learning with local and global consistency, NeurIPS 2003"

    @dataclass(frozen=True)
    class Settings(_Spreading):
        alpha: float = setting(0.9, "share of the neighbours in every round", above=0, below=1)

    settings: Settings

    def spread(self, graph: Graph, start: Tensor, fixed: Tensor) -> Tensor:
        return self._iterate(adjacency(graph, loops=False, like=start), start, fixed, self.settings.alpha)
