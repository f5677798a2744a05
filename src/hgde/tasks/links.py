"""Links between nodes: cross entropy on the training edges against as many fresh non-edges each epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hgde import randomness
from hgde.data import Dataset
from hgde.data.columns import Columns
from hgde.data.settings import DataSettings
from hgde.data.splits import LinkSplit, hard_negatives, link_split
from hgde.graph import Graph
from hgde.models.base import Model
from hgde.sections import Chosen, Section, SettingsError, choose, setting
from hgde.tasks.base import TASKS, Learner, Part, Predicted, Problem, Table, Task, TaskError
from hgde.tasks.decoders import DECODERS, PairDecoder
from hgde.tasks.metrics import PAIRS
from hgde.tasks.pair_structure import WithStructure


def _only_fermi_dirac(settings: LinkSettings) -> str | None:
    return None if settings.decoder in ("auto", "fermi-dirac") else f"the decoder is {settings.decoder}"


@dataclass(frozen=True)
class LinkSettings(Section):
    metric: str = setting(
        "auto", "Score to choose the epoch by and to report first (`hgde list metrics`; auto: roc_auc)."
    )
    decoder: str = setting(
        "auto", "How a pair of points becomes a probability (`hgde list decoders`; auto: the model's own)."
    )
    fermi_r: float = setting(
        2.0,
        "Fermi-Dirac decoder: squared distance at which a link is as likely as not.",
        inert=_only_fermi_dirac,
    )
    fermi_t: float = setting(
        1.0,
        "Fermi-Dirac decoder: temperature; larger means that probability falls more slowly with distance.",
        above=0,
        inert=_only_fermi_dirac,
    )
    learn_fermi: bool = setting(
        False,
        "Fermi-Dirac decoder: train both parameters.",
        inert=_only_fermi_dirac,
    )
    hidden_edges: float = setting(
        0.0,
        "Share of the training edges hidden from the flow each epoch; only these are learned "
        "from (0: learn from all, diffuse along all).",
        at_least=0,
        below=1,
    )
    structure: bool = setting(
        False,
        "Also use the graph around a pair: common neighbours and degrees, ignoring the pair's own edge.",
    )
    negatives: str = setting(
        "random",
        "Non-edges used for scoring: random pairs, or for each edge pairs that heuristics rank as likely (hard).",
        choices=("random", "hard"),
    )
    negatives_per_edge: int = setting(
        100,
        "Number of hard negatives each edge is ranked against.",
        above=1,
        inert=lambda s: "negatives are random, one for each edge" if s.negatives != "hard" else None,
    )


@TASKS.register("links")
class LinkPrediction(Task):
    """Which pairs of nodes are linked.

    An edge that points are moved along is easy to tell: its ends have come nearer to each other. Those of held-out
    edges have not. With ``hidden_edges``, a fresh share of the training edges is taken out of the graph each epoch, and
    the loss is that of these edges only, so that training asks for what the test will ask for.

    >>> from hgde import load
    >>> from hgde.data import DataSettings
    >>> problem = LinkPrediction.pose(load("tree-random", num_nodes=50), LinkPrediction.Settings(), DataSettings())
    >>> problem.task.metric.name, problem.graph.num_edges // 2      # messages travel on training edges alone
    ('roc_auc', 43)
    """

    Settings = LinkSettings
    kind = PAIRS
    default_metric = "roc_auc"
    reported = ("roc_auc", "average_precision", "mrr", "hits@10", "log_loss", "calibration_error")
    outputs = None

    options: LinkSettings

    @classmethod
    def pose(cls, dataset: Dataset, options: LinkSettings, data: DataSettings) -> Problem:
        return cls.pose_on(dataset, options, link_split(dataset.graph, seed=data.split, protocol=data.protocol))

    @classmethod
    def pose_on(cls, dataset: Dataset, options: LinkSettings, split: LinkSplit) -> Problem:
        if split.train_pos.shape[1] == 0 or split.val_pos.shape[1] == 0:
            raise TaskError("the graph has too few edges to hold some out for validation")
        val_neg, test_neg = split.val_neg, split.test_neg
        if options.negatives == "hard":
            linked = dataset.graph.undirected_edges
            features = None if isinstance(dataset.features, Columns) else dataset.features
            val_neg, test_neg = (
                hard_negatives(
                    split.graph, edges, features, options.negatives_per_edge, split.seed, exclude=linked
                ).flatten(1)
                for edges in (split.val_pos, split.test_pos)
            )
        parts = {
            "train": Part(split.train_pos, torch.ones(split.train_pos.shape[1], dtype=torch.int64)),
            "val": _labelled(split.val_pos, val_neg),
            "test": _labelled(split.test_pos, test_neg),
        }
        return Problem(cls(options), split.graph, parts, split.name, split.hash, extra=split)

    def fitted(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_fitted(cls, options: LinkSettings, fitted: Mapping[str, Any]) -> LinkPrediction:
        return cls(options)

    def head(self, model: Model, num_nodes: int) -> nn.Module:
        chosen = self._decoder(model)
        decoder: PairDecoder = chosen.entry(chosen.options, model.manifold)
        return WithStructure(decoder) if self.options.structure else decoder

    def _decoder(self, model: Model) -> Chosen:
        name = model.pair_decoder if self.options.decoder == "auto" else self.options.decoder
        if name == "fermi-dirac":
            return choose(
                DECODERS,
                name,
                {"r": self.options.fermi_r, "t": self.options.fermi_t, "learn": self.options.learn_fermi},
            )
        defaults = LinkSettings()
        for key in ("fermi_r", "fermi_t", "learn_fermi"):
            if getattr(self.options, key) != getattr(defaults, key):
                raise SettingsError(
                    f"task.{key} has no effect: the model's own decoder is {name}; leave it out, or choose "
                    "decoder fermi-dirac"
                )
        return choose(DECODERS, name)

    def loss(self, learner: Learner, problem: Problem) -> Tensor:
        split: LinkSplit = problem.extra
        edges, graph = problem.parts["train"].items, problem.graph
        if self.options.hidden_edges > 0:
            edges, graph = self._hide(edges, graph)
        negatives = split.sample_training_negatives(edges.shape[1], randomness.generator())
        points = learner.outputs(problem.inputs, graph)
        predictions = learner.predict(points, torch.cat([edges, negatives], dim=1), graph)
        truth = torch.zeros_like(predictions)
        truth[: edges.shape[1]] = 1
        return 2 * self.discrepancy(predictions, truth) + learner.penalty(problem.inputs, graph, points)

    def _hide(self, edges: Tensor, graph: Graph) -> tuple[Tensor, Graph]:
        """A fresh share of the training edges, and the graph without them."""
        source = randomness.generator()
        device = edges.device if source is None else source.device
        order = torch.randperm(edges.shape[1], generator=source, device=device).to(edges.device)
        count = max(1, round(self.options.hidden_edges * len(order)))
        return edges[:, order[:count]], graph.without_pairs(edges[:, order[:count]])

    def discrepancy(self, predictions: Tensor, truth: Tensor, weights: Tensor | None = None) -> Tensor:
        return nn.functional.binary_cross_entropy_with_logits(predictions, truth.to(predictions.dtype), weights)

    def table(self, predicted: Predicted) -> Table:
        """A row per pair. Without pairs it is refused: no one wants all ``N^2`` of them."""
        learner, pairs, ids = predicted.learner, predicted.pairs, predicted.ids
        if pairs is None:
            raise TaskError("links are predicted for pairs of nodes: name them with --pairs FILE (source,target)")
        chances = torch.sigmoid(learner.predict(predicted.outputs, pairs, predicted.graph).double()).cpu().numpy()
        source, target = (ids[end.cpu().numpy()] for end in pairs)
        return {"source": source, "target": target, "probability": chances}

    def held_out_table(self, predicted: Predicted, problem: Problem) -> Table:
        """Validation and test pairs with their truth."""
        parts = [problem.parts["val"], problem.parts["test"]]
        pairs = torch.cat([part.items for part in parts], dim=1)
        table = self.table(replace(predicted, pairs=pairs, graph=problem.graph))
        table["truth"] = torch.cat([part.truth for part in parts]).cpu().numpy()
        table["part"] = np.array(["val"] * parts[0].size + ["test"] * parts[1].size, dtype=object)
        return table


def _labelled(linked: Tensor, others: Tensor) -> Part:
    truth = torch.cat([torch.ones(linked.shape[1]), torch.zeros(others.shape[1])]).to(torch.int64)
    return Part(torch.cat([linked, others], dim=1), truth)
