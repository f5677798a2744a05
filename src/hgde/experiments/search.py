"""Search for settings on validation scores alone, recorded so that anyone can repeat it.

The test score of a trial is never read: its score is a mean over a few seeds of what an objective makes of the
validation part (:mod:`hgde.experiments.objectives`), and the record holds nothing else.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from hgde.experiments.objectives import OBJECTIVES, Trajectory
from hgde.experiments.rows import Row, RowError
from hgde.settings import Settings, from_dict, reject_unknown
from hgde.training.checkpoint import write_atomically
from hgde.training.prepare import load_dataset, make_task
from hgde.training.run import train, versions

#: What is tried for each setting. Every list holds the paper's value or the one our first trials used.
SPACE: dict[str, list[Any]] = {
    "width": [16, 32, 64],
    "time": [2.0, 4.0, 8.0],
    "lr": [0.003, 0.01, 0.02],
    "weight_decay": [0.0, 5e-4, 5e-3, 1e-2, 3e-2],
    "weight_decay_rest": [0.0, 5e-4],
    "dropout": [0.0, 0.2, 0.5, 0.7],
    "state_dropout": [0.0, 0.3],
    "hidden_dropout": [0.0, 0.3],
    "encoder_layers": [1, 2],
    "curvature": [0.1, 0.5, 1.0],
    "learn_curvature": [True, False],
    "encoder_activation": ["identity", "relu", "tanh"],
    "activation": ["identity", "relu", "tanh"],
    "self_loops": [True, False],
    "normalise": ["none", "rows", "columns"],
    "diffusivity": ["isotropic", "attention", "ricci", "global", "local-global"],
    "eta": [[1.0, 0.6, 0.1], [1.0, 0.4, 0.1], [1.0, 0.1, 0.1], [1.0, 0.8, 0.8], [1.0, 0.6, 0.6], [0.5, 0.5, 1.0]],
}


def search(
    row: Row,
    column: str,
    out: Path,
    *,
    strategy: str = "greedy",
    objective: str = "best-epoch",
    trials: int | None = None,
    seeds: int = 2,
    fixed: dict[str, Any] | None = None,
    space: dict[str, list[Any]] | None = None,
    margin: float = 0.02,
    on_trial: Callable[[int, dict[str, Any], float], None] | None = None,
) -> dict[str, Any]:
    """Try settings around those of a row; the first trial is the row itself.

    Args:
        row, column: what to start from, and whose data and split are used.
        out: folder for the record, ``<row>--<column>.json``; a record there is continued.
        strategy: a name of :data:`STRATEGIES`.
        objective: a name of :data:`OBJECTIVES`, how a run is scored on its validation part.
        trials: how many settings to try in all, ``None`` for as many as the strategy proposes.
        seeds: runs per trial (the row's own seeds, or its first splits).
        fixed: settings held at a value during the search (such as a fast solver).
        space: what to try for each setting, instead of :data:`SPACE`.
        margin: a trial whose runs so far are this far below the same runs of the best trial is given up.

    Returns:
        The settings of the best trial.
    """
    fixed = fixed or {}
    reject_unknown({**fixed, **(space or {})}, "setting")
    start = row.settings_of(column, 0).to_dict() | fixed
    space = {name: _with(values, start[name]) for name, values in (space or SPACE).items() if name not in fixed}
    path = out / f"{row.table}-{row.key}--{column}.json"
    record = _load(path) or _new_record(row, column, space, seeds, strategy, objective, fixed, margin)
    proposals = STRATEGIES[strategy]({name: start[name] for name in space}, space)
    tried = next(proposals)
    best: dict[str, Any] = {"score": -math.inf, "scores": []}
    number = 0
    while trials is None or number < trials:
        if number == len(record["trials"]):
            entry = _run_trial(row, column, {**fixed, **tried}, seeds, objective, best["scores"], margin)
            record["trials"].append({"settings": tried, **entry})
            write_atomically(path, (json.dumps(record, indent=1) + "\n").encode())
        if record["trials"][number]["settings"] != tried or record["objective"] != objective:
            raise RowError(f"{path} holds another search; move it away or search into another folder (--out)")
        trial = record["trials"][number]
        best = max(best, trial, key=lambda entry: float(entry["score"]))
        if on_trial is not None:
            on_trial(number, tried, trial["score"])
        number += 1
        try:
            tried = proposals.send(trial["score"])
        except StopIteration:
            break
    return dict(best["settings"])


TPE_TRIALS = 30

Proposals = Generator[dict[str, Any], float, None]


def propose_by_tpe(start: dict[str, Any], space: dict[str, list[Any]]) -> Proposals:
    """All settings at once: optuna's tree-structured Parzen estimator, seed 0."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.enqueue_trial({name: values.index(start[name]) for name, values in space.items()})
    for _ in range(TPE_TRIALS):
        trial = study.ask()
        score = yield {name: values[trial.suggest_int(name, 0, len(values) - 1)] for name, values in space.items()}
        study.tell(trial, score)


def propose_greedily(start: dict[str, Any], space: dict[str, list[Any]]) -> Proposals:
    """One setting after the other, in the order of the space: every other value, all else as in the best so far."""
    best, best_score = start, (yield start)
    for name, values in space.items():
        base = best
        for value in values:
            if value != base[name]:
                score = yield {**base, name: value}
                if score > best_score:
                    best, best_score = {**base, name: value}, score


STRATEGIES: dict[str, Callable[[dict[str, Any], dict[str, list[Any]]], Proposals]] = {
    "tpe": propose_by_tpe,
    "greedy": propose_greedily,
}


def _run_trial(
    row: Row, column: str, settings: dict[str, Any], seeds: int, objective: str, best: list[float], margin: float
) -> dict[str, Any]:
    began = time.perf_counter()
    scores: list[float] = []
    for run in range(seeds):
        scores.append(_validation_score(row, column, run, settings, objective))
        if statistics.fmean(scores) < statistics.fmean(best[: run + 1] or [-math.inf]) - margin:
            break
    # A trial given up is scored as if its other runs were as far behind, so that it never passes for the best.
    score = statistics.fmean(scores)
    if len(scores) < len(best):
        score = statistics.fmean(best) + score - statistics.fmean(best[: len(scores)])
    return {"score": score, "scores": scores, "seconds": time.perf_counter() - began}


def _validation_score(row: Row, column: str, run: int, changes: dict[str, Any], objective: str) -> float:
    settings: Settings = from_dict({**row.settings_of(column, run).to_dict(), **changes})
    dataset = load_dataset(settings)
    task = make_task(dataset, settings)
    trajectory = Trajectory()
    try:
        train(settings, dataset=dataset, task=task, reporter=trajectory)
    except RuntimeError:  # a trial whose loss became NaN is a bad trial, not the end of the search
        return 0.0
    return OBJECTIVES[objective](task, trajectory.predictions, task.val_labels, settings.keep)


def _new_record(
    row: Row,
    column: str,
    space: dict[str, Any],
    seeds: int,
    strategy: str,
    objective: str,
    fixed: dict[str, Any],
    margin: float,
) -> dict[str, Any]:
    return {
        "row": f"{row.table}/{row.key}",
        "column": column,
        "objective": objective,
        "strategy": strategy,
        "seeds": seeds,
        "margin": margin,
        "fixed": fixed,
        "start": row.settings_of(column, 0).to_dict(),
        "space": space,
        "versions": versions(),
        "trials": [],
    }


def _load(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _with(values: list[Any], own: Any) -> list[Any]:
    return values if own in values else [*values, own]
