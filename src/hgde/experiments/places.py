"""On which splits and seeds systems are compared."""

from __future__ import annotations

import warnings
from typing import Any

from hgde.data import Dataset, open_dataset
from hgde.experiments.extras import has_many_labels
from hgde.experiments.stats import Place
from hgde.pipeline.settings import Settings
from hgde.tasks import TASKS
from hgde.tasks.metrics import CLASSES, PAIRS

RUNS = 5


def splits_at_hand(dataset: Dataset, settings: Settings) -> int | None:
    """How many splits a task has on a data set: those that came with it, or ``None`` for as many as one likes."""
    options = settings.task.options
    if TASKS.get(settings.task.name).kind == PAIRS or getattr(options, "labels_per_class", None) is not None:
        return None
    if dataset.split_rule.kind != "stored":
        return None
    return max(1, len(next(iter(dataset.fixed_splits.values()), ())))


def choose_places(at_hand: int | None, splits: int | None = None, seeds: int | None = None) -> list[Place]:
    """Splits, each with so many seeds. By default five runs in all: on five splits, or five seeds on the only one.

    Seeds go on from split to split, so that no two runs start from the same weights.
    """
    count = min(splits or RUNS, at_hand or splits or RUNS)
    each = seeds or max(1, -(-RUNS // count) if splits is None else 1)
    return [(split, split * each + k) for split in range(count) for k in range(each)]


def open_for(settings: Settings) -> tuple[Dataset, int | None]:
    """The data set, and how many splits it has."""
    dataset = open_dataset(settings.data)
    return dataset, splits_at_hand(dataset, settings)


def labels_are_many(dataset: Dataset, settings: Settings) -> bool:
    """Whether the training part holds so many of the nodes that reading labels pays; of links, never."""
    if TASKS.get(settings.task.name).kind != CLASSES:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever trains is told
        problem = settings.task.entry.pose(dataset, settings.task.options, settings.data)
    return has_many_labels(problem.parts["train"].size, problem.graph.num_nodes)


def at_place(given: dict[str, Any], place: Place) -> dict[str, Any]:
    """Nested settings with the split and seed of a place."""
    data, run = dict(given.get("data", {})), dict(given.get("run", {}))
    return {**given, "data": {**data, "split": place[0]}, "run": {**run, "seed": place[1], "seeds": 1}}


def key_of(place: Place) -> str:
    return f"split-{place[0]:02d}/seed-{place[1]:02d}"
