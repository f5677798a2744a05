"""The numbers of a report from labels, predictions and confidences. Labels of -1 are unknown and do not count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hgde.report.contents import CalibrationBins, ClassScores, Mistake, NodeWeights

Array = npt.NDArray[Any]


def confusion_matrix(labels: Array, predictions: Array, classes: int) -> Array:
    """Counts ``[classes, classes]``: true class by row, predicted class by column."""
    known = np.asarray(labels) >= 0
    places = np.asarray(labels)[known].astype(np.int64) * classes + np.asarray(predictions)[known]
    return np.bincount(places, minlength=classes * classes).reshape(classes, classes)


def class_scores(confusion: Array, names: Sequence[str] = ()) -> list[ClassScores]:
    """Precision, recall and F1 of each class; 0 where a class was never predicted or never occurs."""
    hits = np.diag(confusion).astype(float)
    predicted, true = confusion.sum(0), confusion.sum(1)
    precision = hits / np.maximum(predicted, 1)
    recall = hits / np.maximum(true, 1)
    f1 = 2 * hits / np.maximum(predicted + true, 1)
    return [
        ClassScores(class_name(k, names), float(precision[k]), float(recall[k]), float(f1[k]), int(true[k]))
        for k in range(len(confusion))
    ]


def calibration_bins(confidences: Array, correct: Array, bins: int = 10) -> CalibrationBins:
    """Mean confidence and accuracy in equal bins of confidence, and ``ECE = sum n_b/n |acc_b - conf_b|``."""
    confidences, correct = np.asarray(confidences, float), np.asarray(correct, float)
    places = np.clip((confidences * bins).astype(int), 0, bins - 1)
    counts = np.bincount(places, minlength=bins)
    used = np.flatnonzero(counts)
    confidence = np.bincount(places, confidences, bins)[used] / counts[used]
    accuracy = np.bincount(places, correct, bins)[used] / counts[used]
    error = float((counts[used] * np.abs(accuracy - confidence)).sum() / max(len(confidences), 1))
    return CalibrationBins(confidence.tolist(), accuracy.tolist(), counts[used].tolist(), error)


def worst_mistakes(
    labels: Array,
    predictions: Array,
    confidences: Array,
    *,
    ids: Sequence[str] | None = None,
    edges: Array | None = None,
    class_names: Sequence[str] = (),
    among: Array | None = None,
    most: int = 10,
    most_neighbours: int = 8,
) -> list[Mistake]:
    """The wrong predictions made with most confidence, with their neighbours; ``among`` masks the test part, say."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    wrong = (labels >= 0) & (labels != predictions)
    if among is not None:
        wrong &= np.asarray(among, bool)
    places = np.flatnonzero(wrong)
    order = places[np.argsort(-np.asarray(confidences)[places], kind="stable")][:most]

    def name(i: int) -> str:
        return str(i) if ids is None else str(ids[i])

    def of_class(k: int) -> str:
        return class_name(int(k), class_names)

    result = []
    for i in order.tolist():
        around = _neighbours(edges, i)
        shown = [(name(j), of_class(labels[j]), of_class(predictions[j])) for j in around[:most_neighbours].tolist()]
        result.append(
            Mistake(
                name(i), of_class(labels[i]), of_class(predictions[i]), float(confidences[i]), shown, degree=len(around)
            )
        )
    return result


def prediction_parts(
    labels: Array,
    predictions: Array,
    confidences: Array | None = None,
    *,
    class_names: Sequence[str] = (),
    among: Array | None = None,
    ids: Sequence[str] | None = None,
    edges: Array | None = None,
) -> dict[str, Any]:
    """The fields of a :class:`~hgde.report.contents.RunReport` that follow from predictions: ``RunReport(**parts)``.

    Confusion matrix, class table and, with confidences, calibration and mistakes, over the labelled nodes of the mask
    ``among`` (all by default).
    """
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    counted = labels >= 0
    if among is not None:
        counted = counted & np.asarray(among, bool)
    classes = max(len(class_names), 1 + int(max(labels.max(initial=0), predictions.max(initial=0))))
    confusion = confusion_matrix(labels[counted], predictions[counted], classes)
    parts: dict[str, Any] = {
        "confusion": confusion,
        "class_names": [class_name(k, class_names) for k in range(classes)],
        "classes": class_scores(confusion, class_names),
    }
    if confidences is not None:
        confidences = np.asarray(confidences)
        parts["calibration"] = calibration_bins(confidences[counted], labels[counted] == predictions[counted])
        parts["mistakes"] = worst_mistakes(
            labels, predictions, confidences, ids=ids, edges=edges, class_names=class_names, among=counted
        )
    return parts


def paired_difference(scores: Sequence[float], reference: Sequence[float]) -> tuple[float, float]:
    """Mean of ``scores - reference`` over the same seeds, and the half width of its 95 % interval (Student's t)."""
    from scipy.special import stdtrit

    if len(scores) != len(reference):
        raise ValueError(f"expected scores of the same seeds, got {len(scores)} and {len(reference)}")
    differences = np.asarray(scores, float) - np.asarray(reference, float)
    if len(differences) < 2:
        return float(differences.mean()), float("nan")
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean()), float(stdtrit(len(differences) - 1, 0.975) * error)


def top_weights(rows: Array, columns: Array, values: Array, count: int, k: int = 10) -> NodeWeights:
    """For each row of a sparse matrix its ``k`` largest entries, ``[count, k]``, -1 where there are fewer."""
    order = np.lexsort((-np.asarray(values), np.asarray(rows)))
    sorted_rows = np.asarray(rows)[order]
    starts = np.searchsorted(sorted_rows, np.arange(count))
    place = np.arange(len(order)) - starts[sorted_rows]
    kept = place < k
    nodes = np.full((count, k), -1, dtype=np.int64)
    weights = np.zeros((count, k))
    nodes[sorted_rows[kept], place[kept]] = np.asarray(columns)[order][kept]
    weights[sorted_rows[kept], place[kept]] = np.asarray(values)[order][kept]
    return NodeWeights(nodes, weights)


def class_name(k: int, names: Sequence[str]) -> str:
    """The name of class ``k``, or a plain one where none is given."""
    if k < 0:
        return "unlabelled"
    return str(names[k]) if k < len(names) else f"class {k}"


def _neighbours(edges: Array | None, i: int) -> Array:
    if edges is None:
        return np.empty(0, dtype=np.int64)
    source, target = np.asarray(edges)
    return np.unique(np.concatenate([target[source == i], source[target == i]]))
