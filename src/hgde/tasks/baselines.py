"""Baselines that cost nothing: what is reached without a graph model. They stand beside every run and in every table.

A baseline is a function of a :class:`~hgde.tasks.Problem` that gives predictions for its validation and its test part,
in the form that the task's metrics read. Where it has something to choose, the validation part chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.graph import SparseFeatures
from hgde.registry import Registry
from hgde.tasks.base import Array, Problem, Scores, TaskError
from hgde.tasks.metrics import CLASSES, LABELS, VALUES

Predictions = dict[str, Tensor]
Predict = Callable[[Problem], Predictions]
HELD_OUT = ("val", "test")
_TINY = 1e-12


@dataclass(frozen=True)
class Baseline:
    """A baseline for some kinds of predictions (:mod:`hgde.tasks.metrics`)."""

    name: str
    function: Predict
    kinds: tuple[str, ...]

    def __call__(self, problem: Problem) -> Predictions:
        if problem.task.kind not in self.kinds:
            fitting = ", ".join(baselines_for(problem.task.kind)) or "none"
            raise TaskError(f"{self.name} does not predict {problem.task.kind}; these do: {fitting}")
        return self.function(problem)


BASELINES: Registry[Baseline] = Registry(
    "baseline",
    "baselines",
    home=("hgde.tasks.baselines", "hgde.tasks.link_baselines"),
    accepts=lambda value: isinstance(value, Baseline),
)


def baseline(name: str, *kinds: str) -> Callable[[Predict], Baseline]:
    """Decorator that registers a function as a baseline."""

    def make(function: Predict) -> Baseline:
        made = Baseline(name, function, kinds)
        BASELINES.add(name, made)
        return made

    return make


def baselines_for(kind: str) -> list[str]:
    """Names of the baselines that make predictions of a kind."""
    return [name for name, entry in BASELINES.items() if kind in entry.kinds]


def baseline_scores(problem: Problem, names: Iterable[str] | None = None) -> dict[str, dict[str, Scores]]:
    """Scores of the validation and the test part by each baseline that fits the problem.

    >>> from hgde import TASKS, load
    >>> from hgde.data import DataSettings
    >>> nodes = TASKS.get("nodes")
    >>> problem = nodes.pose(load("tree-random", num_nodes=50), nodes.Settings(), DataSettings())
    >>> list(baseline_scores(problem, ["majority"])["majority"])
    ['val', 'test']
    """
    scores = {}
    for name in baselines_for(problem.task.kind) if names is None else names:
        predictions = BASELINES.get(name)(problem)
        scores[name] = {part: problem.task.scores(predictions[part], problem.parts[part].truth) for part in HELD_OUT}
    return scores


@baseline("majority", CLASSES, LABELS, VALUES)
def majority(problem: Problem) -> Predictions:
    """The same for every node: each class or label as often as in training, or the mean of the training values."""
    truth = problem.parts["train"].truth
    if problem.task.kind == CLASSES:
        constant = torch.bincount(truth, minlength=problem.task.outputs or 0).double().add(_TINY).log()
    elif problem.task.kind == LABELS:
        known = truth >= 0
        share = ((truth == 1) & known).double().sum(0) / known.double().sum(0).clamp_min(1)
        constant = torch.logit(share.clamp(1e-6, 1 - 1e-6))
    else:
        constant = torch.zeros(truth.shape[1], dtype=torch.float64)  # values are scaled to mean 0
    return {name: constant.expand(problem.parts[name].size, -1).clone() for name in HELD_OUT}


@baseline("label-propagation", CLASSES, VALUES)
def label_propagation(problem: Problem) -> Predictions:
    """Labels of training nodes spread along edges: ``F <- a S F + (1 - a) Y``, ``S = D^-1/2 A D^-1/2``, fifty times.

    ``a`` is the best of 0.5, 0.9 and 0.99 on the validation part. Cost ``50 E C`` for each. Zhou et al., Learning with
    local and global consistency, 2003.
    """
    import scipy.sparse as sp

    train = problem.parts["train"]
    adjacency = problem.graph.to_scipy().astype(np.float64) + sp.identity(problem.graph.num_nodes, format="csr")
    scale = sp.diags(1 / np.sqrt(np.asarray(adjacency.sum(1)).ravel()))
    spread = (scale @ adjacency @ scale).tocsr()
    start = _one_row_per_node(problem, train.items, train.truth)
    candidates = [_spread(spread, start, share, problem) for share in (0.5, 0.9, 0.99)]
    return _best_on_validation(problem, candidates)


def _one_row_per_node(problem: Problem, nodes: Tensor, truth: Tensor) -> Array:
    """One-hot classes, or values and a column that says which are known."""
    if problem.task.kind == CLASSES:
        start = np.zeros((problem.graph.num_nodes, problem.task.outputs or 0))
        start[nodes.cpu().numpy(), truth.cpu().numpy()] = 1
        return start
    values = truth.double().cpu().numpy()
    known = np.isfinite(values)
    start = np.zeros((problem.graph.num_nodes, 2 * values.shape[1]))
    start[nodes.cpu().numpy()] = np.concatenate([np.where(known, values, 0), known], axis=1)
    return start


def _spread(matrix: Any, start: Array, share: float, problem: Problem) -> Predictions:
    state = start
    for _ in range(50):
        state = share * (matrix @ state) + (1 - share) * start
    if problem.task.kind == CLASSES:
        # Where nothing arrives, the share of each class in training is all there is.
        prior = 1e-9 * start.sum(0) / max(start.sum(), 1)
        state = state + prior + 1e-15
        values = np.log(state / state.sum(1, keepdims=True))
    else:
        half = state.shape[1] // 2
        values = state[:, :half] / np.maximum(state[:, half:], _TINY)
    return _on_held_out(problem, values)


@baseline("logistic-regression", CLASSES, LABELS, VALUES)
def logistic_regression(problem: Problem) -> Predictions:
    """A linear model of the features alone (ridge regression for values), its penalty chosen on the validation part."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.preprocessing import MaxAbsScaler

    train = problem.parts["train"]
    nodes = train.items.cpu().numpy()
    x = feature_matrix(problem)
    x = MaxAbsScaler().fit(x[nodes]).transform(x)  # penalties mean the same whatever the features' unit
    truth = train.truth.cpu().numpy()
    candidates = []
    for strength in (0.1, 1.0, 10.0, 100.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if problem.task.kind == VALUES:
                known = np.isfinite(truth).all(1)
                values = Ridge(1 / strength).fit(x[nodes][known], truth[known]).predict(x).reshape(x.shape[0], -1)
            elif problem.task.kind == CLASSES:
                values = _class_logits(
                    LogisticRegression(C=strength, max_iter=200), x, nodes, truth, problem.task.outputs or 0
                )
            else:
                values = np.stack([_label_logits(x, nodes, column, strength) for column in truth.T], axis=1)
        candidates.append(_on_held_out(problem, values))
    return _best_on_validation(problem, candidates)


def _class_logits(model: Any, x: Any, nodes: Array, truth: Array, classes: int) -> Array:
    present = np.unique(truth)
    logits = np.full((x.shape[0], classes), np.log(_TINY))
    if present.size < 2:
        logits[:, present] = 0
        return logits
    model.fit(x[nodes], truth)
    logits[:, model.classes_] = np.log(model.predict_proba(x) + _TINY)
    return logits


def _label_logits(x: Any, nodes: Array, column: Array, strength: float) -> Array:
    from sklearn.linear_model import LogisticRegression

    known = column >= 0
    if np.unique(column[known]).size < 2:
        return np.full(x.shape[0], 20.0 if column[known].any() else -20.0)
    model = LogisticRegression(C=strength, max_iter=200).fit(x[nodes[known]], column[known])
    values: Array = model.decision_function(x)
    return values


def feature_matrix(problem: Problem) -> Any:
    """The input features as scipy or numpy has them."""
    features = problem.inputs
    return features.to_scipy().tocsr() if isinstance(features, SparseFeatures) else features.double().cpu().numpy()


def _on_held_out(problem: Problem, values: Array) -> Predictions:
    return {name: torch.from_numpy(values[problem.parts[name].items.cpu().numpy()]) for name in HELD_OUT}


def _best_on_validation(problem: Problem, candidates: list[Predictions]) -> Predictions:
    task, truth = problem.task, problem.parts["val"].truth

    def gain(predictions: Predictions) -> tuple[float, float]:
        scores = task.scores(predictions["val"], truth, names=())
        return task.metric.gain(scores[task.metric.name]), -scores["loss"]

    return max(candidates, key=gain)
