"""What is said at the end of a run: sizes, scores beside baselines that cost nothing, and warnings with what to try."""

from __future__ import annotations

import logging
import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from hgde.geometry import Curvature
from hgde.pipeline.fit import Result
from hgde.pipeline.fitted import Fitted
from hgde.tasks import Problem
from hgde.tasks.baselines import baseline_scores, baselines_for
from hgde.tasks.metrics import CLASSES, PAIRS, VALUES
from hgde.training.trainer import Outcome

logger = logging.getLogger(__name__)

FREE = ("majority", "label-propagation", "logistic-regression", "common-neighbours", "adamic-adar")
"""Baselines that are always run: their cost is nothing beside a training."""

NEAR_CHANCE, MOST_LUCK, FAR_ABOVE, PROJECTED = 0.02, 0.1, 0.2, 0.01


@dataclass
class Remarks:
    """Part sizes, classes, baselines beside the run's own score, and warnings."""

    parts: dict[str, int]
    classes: dict[str, int] = field(default_factory=dict)
    metric: str = ""
    baselines: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def remarks(result: Result) -> Remarks:
    """What there is to say about a finished run. Test truth is read for the baselines' final score alone."""
    fitted, outcome = result.models[0], result.summary.outcomes[0]
    problem, metric = fitted.training_data().problem, result.summary.metric
    made = Remarks({name: part.size for name, part in problem.parts.items()}, _classes(problem), metric.name)
    names = [name for name in FREE if name in baselines_for(problem.task.kind)]
    try:
        scores = baseline_scores(problem, names)
        made.baselines = {name: parts["test"][metric.name] for name, parts in scores.items()}
    except (ValueError, ArithmeticError) as error:  # a baseline that cannot be fitted must not spoil a finished run
        logger.warning("the baselines could not be run: %s", error)
    made.warnings = warnings_of(fitted, outcome, made.baselines)
    return made


def warnings_of(fitted: Fitted, outcome: Outcome, baselines: dict[str, float]) -> list[str]:
    """Each thing that looks wrong in one sentence, with what to try."""
    problem = fitted.training_data().problem
    checks = (
        _near_chance(fitted, outcome, baselines),
        _all_equal(fitted, problem),
        _projected(outcome, problem),
        _far_above(fitted, outcome),
        _curvature_at_limit(fitted),
    )
    return [warning for warning in checks if warning is not None]


def _classes(problem: Problem) -> dict[str, int]:
    """Training nodes per class."""
    classes = getattr(problem.task, "classes", None)
    if classes is None:
        return {}
    counts = torch.bincount(problem.parts["train"].truth.cpu(), minlength=len(classes)).tolist()
    return dict(zip(classes, counts, strict=True))


def _near_chance(fitted: Fitted, outcome: Outcome, baselines: dict[str, float]) -> str | None:
    kind, metric = fitted.task.kind, fitted.task.metric
    score = outcome.validation[metric.name]
    if kind == PAIRS and metric.name in ("roc_auc", "accuracy"):
        chance = 0.5
    elif kind == VALUES and metric.name == "r2":
        chance = 0.0
    elif kind == CLASSES and metric.name in ("accuracy", "micro_f1"):
        chance = baselines.get("majority", math.nan)
    else:
        return None
    if not score <= chance + _margin(fitted.training_data().problem, chance):
        return None
    return (
        f"the validation {metric.name} ({score:.3f}) is close to guessing ({chance:.3f}): check that labels, "
        "ids and edges belong together, compare with other models (hgde compare), or train longer"
    )


def _margin(problem: Problem, chance: float) -> float:
    """How far above chance a score may be by luck: two standard errors of guessing on the validation part."""
    part = problem.parts["val"]
    if problem.task.kind == PAIRS:
        linked = max(1, int((part.truth == 1).sum()))
        others = max(1, part.size - linked)
        error = math.sqrt((linked + others + 1) / (12 * linked * others))
    else:
        share = min(max(chance, 0.0), 1.0) if math.isfinite(chance) else 0.5
        error = math.sqrt(share * (1 - share) / max(1, part.size))
    return min(MOST_LUCK, max(NEAR_CHANCE, 2 * error))


@torch.no_grad()
def _all_equal(fitted: Fitted, problem: Problem) -> str | None:
    if fitted.task.kind != CLASSES:
        return None
    outputs, _ = fitted.outputs()
    items = torch.cat([problem.parts[name].items for name in ("val", "test")]).to(outputs.device)
    chosen = outputs.index_select(0, items).argmax(-1).unique()
    if chosen.numel() != 1 or items.numel() < 2:
        return None
    name = fitted.task.classes[int(chosen)]  # type: ignore[attr-defined]  # tasks on classes have them
    return (
        f"every node is predicted to be {name!r}: try --class-weight balanced, a larger learning rate, or features "
        "that tell the classes apart"
    )


def _projected(outcome: Outcome, problem: Problem) -> str | None:
    share = outcome.projected / max(1, problem.graph.num_nodes * outcome.epochs)
    if share <= PROJECTED:
        return None
    return (
        f"{100 * share:.0f} % of the points were projected back from the boundary each epoch, where their gradient is "
        "lost: try --dtype float64, a smaller --curvature or --start-distance, or a smaller --lr"
    )


def _far_above(fitted: Fitted, outcome: Outcome) -> str | None:
    metric = fitted.task.metric
    if fitted.task.outputs is None or not metric.larger_is_better:
        return None
    trained = fitted.evaluate()["train"][metric.name]
    held_out = outcome.validation[metric.name]
    if not trained - held_out > FAR_ABOVE:
        return None
    return (
        f"the training part scores {trained:.3f}, the validation part {held_out:.3f}: the model overfits; try "
        "more --dropout or --weight-decay, a smaller --width, or more labels"
    )


def _curvature_at_limit(fitted: Fitted) -> str | None:
    if not any(part.at_limit for part in fitted.learner.modules() if isinstance(part, Curvature)):
        return None
    return (
        "training drove a curvature to the limit of its range: try --no-learn-curvature with a value of your own, or "
        "--space euclidean if it went to zero"
    )
