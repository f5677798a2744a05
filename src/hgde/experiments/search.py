"""Search for settings on validation scores alone, recorded so that anyone can repeat it.

The test score of a trial is never read: the objective is the mean validation score over a few seeds, and the record
holds nothing else.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hgde.experiments.rows import Row
from hgde.settings import Settings, from_dict
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
    trials: int = 30,
    seeds: int = 2,
    fixed: dict[str, Any] | None = None,
    space: dict[str, list[Any]] | None = None,
    sampler_seed: int = 0,
    on_trial: Callable[[int, dict[str, Any], float], None] | None = None,
) -> dict[str, Any]:
    """Try settings around those of a row; the first trial is the row itself.

    Args:
        row, column: what to start from, and whose data and split are used.
        out: folder for the record, ``<row>--<column>.json``; a record there is continued.
        trials: how many settings to try in all.
        seeds: runs per trial (the row's own seeds, or its first splits).
        fixed: settings held at a value during the search (such as a fast solver).
        space: what to try for each setting, instead of :data:`SPACE`.

    Returns:
        The settings of the best trial.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    start = row.settings_of(column, 0).to_dict() | (fixed or {})
    space = {name: _with(values, start[name]) for name, values in (space or SPACE).items() if name not in (fixed or {})}
    path = out / f"{row.table}-{row.key}--{column}.json"
    record = _load(path) or _new_record(row, column, space, seeds, sampler_seed, fixed or {})
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=sampler_seed))
    study.enqueue_trial({name: _index(space[name], start[name]) for name in space})
    for number in range(trials):
        trial = study.ask()
        tried = {name: values[trial.suggest_int(name, 0, len(values) - 1)] for name, values in space.items()}
        known = record["trials"][number]["score"] if number < len(record["trials"]) else None
        if known is None:
            began = time.perf_counter()
            scores = [_validation_score(row, column, run, {**(fixed or {}), **tried}) for run in range(seeds)]
            known = statistics.fmean(scores)
            entry = {"settings": tried, "score": known, "scores": scores, "seconds": time.perf_counter() - began}
            record["trials"].append(entry)
            write_atomically(path, (json.dumps(record, indent=1) + "\n").encode())
        study.tell(trial, known)
        if on_trial is not None:
            on_trial(number, tried, known)
    best = max(record["trials"], key=lambda entry: float(entry["score"]))
    return dict(best["settings"])


def _validation_score(row: Row, column: str, run: int, changes: dict[str, Any]) -> float:
    settings: Settings = from_dict({**row.settings_of(column, run).to_dict(), **changes})
    dataset = load_dataset(settings)
    task = make_task(dataset, settings)
    try:
        outcome = train(settings, dataset=dataset, task=task).outcomes[0]
    except RuntimeError:  # a trial whose loss became NaN is a bad trial, not the end of the search
        return 0.0
    return outcome.validation[task.metric]


def _new_record(
    row: Row, column: str, space: dict[str, Any], seeds: int, sampler_seed: int, fixed: dict[str, Any]
) -> dict[str, Any]:
    return {
        "row": f"{row.table}/{row.key}",
        "column": column,
        "objective": "mean validation score; test scores are not read",
        "sampler": f"optuna TPE, seed {sampler_seed}; the first trial is the row's own settings",
        "seeds": seeds,
        "fixed": fixed,
        "space": space,
        "versions": versions(),
        "trials": [],
    }


def _load(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _with(values: list[Any], own: Any) -> list[Any]:
    return values if own in values else [*values, own]


def _index(values: list[Any], own: Any) -> int:
    return values.index(own)
