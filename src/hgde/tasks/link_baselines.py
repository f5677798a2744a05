"""Links without a model: the heuristics as baselines, and two more that look at ends alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.tasks.base import Problem
from hgde.tasks.baselines import BASELINES, HELD_OUT, Baseline, Predictions, baseline, feature_matrix
from hgde.tasks.heuristics import HEURISTICS, score_pairs
from hgde.tasks.metrics import PAIRS


def _as_odds(scores: Tensor) -> Tensor:
    """Log-odds in the order of the scores. Only the order means anything; nothing in common is below even odds."""
    positive = scores[scores > 0]
    return scores - (0.5 * positive.min() if positive.numel() else 1.0)


def _by_heuristic(name: str, problem: Problem) -> Predictions:
    generator = torch.Generator().manual_seed(0)
    count = problem.parts["train"].size
    negatives = problem.extra.sample_training_negatives(count, generator)
    pairs = torch.cat([problem.parts[part].items for part in HELD_OUT], dim=1)
    scores = _as_odds(score_pairs(name, problem.graph, problem.inputs, pairs, negatives=negatives).double().cpu())
    first = problem.parts[HELD_OUT[0]].size
    return {HELD_OUT[0]: scores[:first], HELD_OUT[1]: scores[first:]}


def _register(name: str) -> None:
    def predict(problem: Problem) -> Predictions:
        return _by_heuristic(name, problem)

    predict.__doc__ = HEURISTICS.get(name).__doc__
    BASELINES.add(name, Baseline(name, predict, (PAIRS,)))


for _name in HEURISTICS.names():
    _register(_name)


@baseline("preferential-attachment", PAIRS)
def preferential_attachment(problem: Problem) -> Predictions:
    """The product of the two degrees. Barabási and Albert, Emergence of scaling in random networks, 1999."""
    degree = problem.graph.degree.double().cpu()
    parts = {name: problem.parts[name].items.cpu() for name in HELD_OUT}
    return {name: _as_odds(degree[pairs[0]] * degree[pairs[1]]) for name, pairs in parts.items()}


@baseline("feature-likeness", PAIRS)
def feature_likeness(problem: Problem) -> Predictions:
    """Cosine of the two rows of features."""
    from sklearn.preprocessing import normalize

    x: Any = normalize(feature_matrix(problem))
    predictions = {}
    for name in HELD_OUT:
        u, v = problem.parts[name].items.cpu().numpy()
        product = x[u].multiply(x[v]).sum(1) if hasattr(x, "tocsr") else (x[u] * x[v]).sum(1)
        predictions[name] = torch.from_numpy(np.asarray(product, dtype=np.float64).ravel())
    return predictions
