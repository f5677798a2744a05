"""The parts of a report that follow from what a model predicts, for each kind of task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hgde.pipeline import Fitted
from hgde.report.contents import Mistake, ValuePairs
from hgde.report.measures import calibration_bins, class_scores, confusion_matrix, prediction_parts
from hgde.tasks import Problem
from hgde.tasks.metrics import CLASSES, LABELS, PAIRS, VALUES

Array = npt.NDArray[Any]
Made = tuple[dict[str, Any], dict[str, Any]]
"""Fields of the report, and fields of its view of the disk."""
_BINS = 5
_MOST = 10


@torch.no_grad()
def parts_of(fitted: Fitted, ids: Sequence[str]) -> Made:
    """Fields of a :class:`~hgde.report.contents.RunReport` over the test part (the validation part where there is
    none), and fields of its :class:`~hgde.report.contents.DiskView` over all nodes."""
    outputs, dataset = fitted.outputs()
    problem = fitted.training_data().problem
    made = _KINDS[fitted.task.kind](fitted, outputs.double().cpu(), problem, ids)
    if fitted.task.kind == PAIRS and dataset.labels is not None:
        names = dataset.class_names or [str(k) for k in range(dataset.num_classes)]
        made[1].update(labels=dataset.labels.cpu().numpy(), class_names=names)
    return made


def scored_part(problem: Problem) -> str:
    """The part that a report is about."""
    return "test" if problem.parts["test"].size else "val"


def _classes(fitted: Fitted, outputs: Tensor, problem: Problem, ids: Sequence[str]) -> Made:
    task: Any = fitted.task
    best = outputs.softmax(-1).max(-1)
    predictions, confidences = best.indices.numpy(), best.values.numpy()
    labels = _node_truth(problem)
    among = np.zeros(len(labels), bool)
    among[problem.parts[scored_part(problem)].items.cpu().numpy()] = True
    edges = problem.graph.undirected_edges.cpu().numpy()
    report = prediction_parts(
        labels, predictions, confidences, class_names=task.classes, among=among, ids=ids, edges=edges
    )
    view = {"labels": labels, "predictions": predictions, "confidences": confidences, "class_names": task.classes}
    return report, view


def _node_truth(problem: Problem) -> Array:
    labels = np.full(problem.graph.num_nodes, -1, dtype=np.int64)
    for part in problem.parts.values():
        labels[part.items.cpu().numpy()] = part.truth.cpu().numpy()
    return labels


def _pairs(fitted: Fitted, outputs: Tensor, problem: Problem, ids: Sequence[str]) -> Made:
    part = problem.parts[scored_part(problem)]
    points = outputs.to(fitted.device, next(fitted.learner.parameters()).dtype)
    odds = fitted.learner.predict(points, part.items.to(fitted.device), problem.graph)
    chance = torch.sigmoid(odds.double()).cpu().numpy()
    truth = part.truth.cpu().numpy().astype(np.int64)
    said = (chance > 0.5).astype(np.int64)
    confusion = confusion_matrix(truth, said, 2)
    names = ["no link", "link"]
    report = {
        "confusion": confusion,
        "class_names": names,
        "classes": class_scores(confusion, names),
        "calibration": calibration_bins(np.maximum(chance, 1 - chance), truth == said),
        "mistakes": _wrong_pairs(problem, part.items.cpu().numpy(), truth, said, chance, ids),
    }
    return report, {}


def _wrong_pairs(
    problem: Problem, pairs: Array, truth: Array, said: Array, chance: Array, ids: Sequence[str]
) -> list[Mistake]:
    names = ("no link", "link")
    confidence = np.maximum(chance, 1 - chance)
    wrong = np.flatnonzero(truth != said)
    edges = problem.graph.undirected_edges.cpu().numpy()
    result = []
    for i in wrong[np.argsort(-confidence[wrong], kind="stable")][:_MOST].tolist():
        u, v = pairs[:, i].tolist()
        shared = sorted(set(_around(edges, u)) & set(_around(edges, v)))
        shown = [(ids[j], "common neighbour", "common neighbour") for j in shared[:8]]
        between = f"{ids[u]} — {ids[v]}"
        made = Mistake(between, names[truth[i]], names[said[i]], float(confidence[i]), shown, degree=len(shared))
        result.append(made)
    return result


def _around(edges: Array, i: int) -> list[int]:
    return np.concatenate([edges[1][edges[0] == i], edges[0][edges[1] == i]]).tolist()


def _labels(fitted: Fitted, outputs: Tensor, problem: Problem, ids: Sequence[str]) -> Made:
    task: Any = fitted.task
    part = problem.parts[scored_part(problem)]
    nodes, truth = part.items.cpu().numpy(), part.truth.cpu().numpy().astype(np.int64)
    chance = torch.sigmoid(outputs).numpy()[nodes]
    said = (chance > 0.5).astype(np.int64)
    known = truth >= 0
    rows = []
    for k, name in enumerate(task.names):
        mine = class_scores(confusion_matrix(truth[:, k], said[:, k], 2), ("", name))
        rows.append(mine[1])
    confidence = np.maximum(chance, 1 - chance)
    wrong = np.argwhere(known & (truth != said))
    order = np.argsort(-confidence[tuple(wrong.T)], kind="stable")[:_MOST]
    mistakes = []
    for row, k in wrong[order].tolist():
        words = (f"not {task.names[k]}", task.names[k])
        mistakes.append(Mistake(ids[nodes[row]], words[truth[row, k]], words[said[row, k]], float(confidence[row, k])))
    report = {
        "classes": rows,
        "calibration": calibration_bins(confidence[known], (truth == said)[known]),
        "mistakes": mistakes,
    }
    likeliest = torch.sigmoid(outputs).max(-1)
    view = {
        "predictions": likeliest.indices.numpy(),
        "confidences": likeliest.values.numpy(),
        "class_names": list(task.names),
    }
    return report, view


def _values(fitted: Fitted, outputs: Tensor, problem: Problem, ids: Sequence[str]) -> Made:
    task: Any = fitted.task
    predicted = task.natural(outputs).numpy()
    truth = np.full(predicted.shape, np.nan)
    for part in problem.parts.values():
        truth[part.items.cpu().numpy()] = task.natural(part.truth.double().cpu()).numpy()
    nodes = problem.parts[scored_part(problem)].items.cpu().numpy()
    known = np.isfinite(truth[nodes]).all(1)
    nodes = nodes[known]
    series = {name: (truth[nodes, k], predicted[nodes, k]) for k, name in enumerate(task.names)}
    scale = np.nanstd(truth, axis=0)
    errors = np.abs(predicted[nodes] - truth[nodes]) / np.where(scale > 0, scale, 1)
    worst = np.argsort(-errors.max(1), kind="stable")[:_MOST]
    edges = problem.graph.undirected_edges.cpu().numpy()
    mistakes = []
    for row in worst.tolist():
        i, k = int(nodes[row]), int(errors[row].argmax())
        around = sorted(_around(edges, i))
        shown = [(ids[j], _number(truth[j, k]), _number(predicted[j, k])) for j in around[:8]]
        off = float(predicted[i, k] - truth[i, k])
        mistakes.append(
            Mistake(ids[i], _number(truth[i, k]), _number(predicted[i, k]), None, shown, len(around), error=off)
        )
    # The explorer colours by classes: values are shown by the fifth that they belong to.
    cuts = np.unique(np.nanquantile(truth[:, 0], np.linspace(0, 1, _BINS + 1)[1:-1]))
    labels = np.where(np.isfinite(truth[:, 0]), np.digitize(truth[:, 0], cuts), -1)
    bounds = ["", *(_number(cut) for cut in cuts), ""]
    names = [f"{low} … {high}".strip() for low, high in pairwise(bounds)]
    view = {"labels": labels, "predictions": np.digitize(predicted[:, 0], cuts), "class_names": names}
    return {"values": ValuePairs(series), "mistakes": mistakes}, view


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "unknown"


_Make = Callable[[Fitted, Tensor, Problem, Sequence[str]], Made]
_KINDS: dict[str, _Make] = {CLASSES: _classes, PAIRS: _pairs, LABELS: _labels, VALUES: _values}
