"""Several systems on one graph: same splits, same inputs, the same tuning budget each, a paired test at the end."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hgde.experiments.following import Follower
from hgde.experiments.jobs import Crew, Job, hired, run_jobs
from hgde.experiments.places import at_place, choose_places, key_of, labels_are_many, open_for
from hgde.experiments.search import Found, Search, search_all
from hgde.experiments.space import space_for
from hgde.experiments.stats import Place
from hgde.experiments.store import Store
from hgde.experiments.systems import System, find_system, settings_of, usual_systems
from hgde.experiments.table import Comparison, Row, make_rows
from hgde.files import write_atomically
from hgde.pipeline.settings import make_settings

TRIALS = 8
FEWEST_EPOCHS = 50
CHANGED_AT_ONCE = 3
"""Settings of the best so far that a trial changes."""
SEARCH_SHARE = 0.5
"""Part of the time given that the searches may take; the rest is for the runs that are compared."""


class CompareError(RuntimeError):
    """A comparison that cannot be made or gone on with; the message says what to do."""


@dataclass(frozen=True)
class Request:
    """What to compare.

    Args:
        given: nested settings for every system: data, preprocessing, task, and training where someone asked for it.
        systems: names, see :mod:`hgde.experiments.systems`; none: the usual ones for the task.
        trials: settings tried per system, the preset being the first; 1 for presets alone.
        minutes: for everything together, shared evenly; ``None`` for as long as it takes.
        splits, seeds: how many of each; by default five runs in all.
        workers: processes, or a crew.
    """

    given: Mapping[str, Any]
    systems: tuple[str, ...] = ()
    trials: int = TRIALS
    minutes: float | None = None
    splits: int | None = None
    seeds: int | None = None
    workers: int | Crew = 2

    @property
    def count(self) -> int:
        """How many jobs run at a time."""
        return self.workers.count if isinstance(self.workers, Crew) else self.workers


def compare(request: Request, out: Path, follower: Follower | None = None) -> Comparison:
    """Compare, keeping every finished run in ``out``; the same call goes on where it was stopped."""
    follower = follower or Follower()
    began = time.monotonic()
    given = dict(request.given)
    if "model" in given:
        raise CompareError("settings of a model cannot be given to all systems; name systems with --models")
    settings = make_settings(given)
    task, data = settings.task.name, settings.data.name if settings.data.edges is None else ""
    systems = [find_system(name) for name in request.systems] or usual_systems(task)
    dataset, at_hand = open_for(settings)
    places = choose_places(at_hand, request.splits, request.seeds)
    _claim(out, given)
    store = Store(out / "runs")
    many = any(system.with_extras for system in systems) and labels_are_many(dataset, settings)
    base = {
        system.name: _with_few_threads(settings_of(system, given, data, task, many_labels=many)) for system in systems
    }

    with hired(request.workers) as crew:
        return _run(request, systems, base, places, store, out, crew, began, follower)


def _run(
    request: Request,
    systems: Sequence[System],
    base: Mapping[str, dict[str, Any]],
    places: Sequence[Place],
    store: Store,
    out: Path,
    crew: Crew,
    began: float,
    follower: Follower,
) -> Comparison:
    facts_job = Job("facts", "facts", "facts", at_place(base[systems[0].name], places[0]))
    (facts,) = run_jobs([facts_job], store, 0)
    found = _search(request, systems, base, places, store, crew, began, follower)
    chosen = {name: result.settings for name, result in found.items()}
    plan = _plan(request, out, found, places, began)
    jobs = []
    for system in systems:
        for place in places[: plan.runs]:
            nested = chosen.get(system.name, base[system.name])
            jobs.append(_final_job(system, nested, place, plan))
    left = None if request.minutes is None else request.minutes - (time.monotonic() - began) / 60
    missing = sum(store.find(job) is None for job in jobs)
    outcomes = run_jobs(jobs, store, crew, follower.stage(f"runs of {len(systems)} systems", missing), left)
    notes = [f"{name}: at most {epochs} epochs, for want of time" for name, epochs in plan.epochs.items()]
    rows = make_rows(systems, outcomes, plan.runs, found)
    result = facts.result or {}
    seconds = time.monotonic() - began
    return Comparison.of(rows, result, facts.failure, request.trials, seconds, notes)


def _search(
    request: Request,
    systems: Sequence[System],
    base: Mapping[str, dict[str, Any]],
    places: Sequence[Place],
    store: Store,
    crew: Crew,
    began: float,
    follower: Follower,
) -> dict[str, Found]:
    trained = [system for system in systems if system.model is not None]
    total = None
    if request.minutes is not None:
        # Each system has the same share of all processes' time; half of it at most for a single trial.
        seconds = 60 * request.minutes - (time.monotonic() - began)
        total = SEARCH_SHARE * seconds * request.count / max(1, len(trained))
    searches = [
        Search(
            cell=system.name,
            base=base[system.name],
            space=space_for(system.model or ""),
            trials=request.trials,
            folds=(places[0],),
            seconds=None if total is None else max(3.0, total / 2),
            total_seconds=total,
            at_once=CHANGED_AT_ONCE,
        )
        for system in trained
    ]
    minutes = None if request.minutes is None else SEARCH_SHARE * request.minutes
    heard = follower.stage(f"trials of {len(searches)} systems", request.trials * len(searches))
    return search_all(searches, store, crew, heard, minutes)


@dataclass(frozen=True)
class _Plan:
    """How many runs there is time for, and the epochs of systems that would take too long."""

    runs: int
    epochs: dict[str, int]
    seconds: dict[str, float]


def _plan(request: Request, out: Path, found: Mapping[str, Found], places: Sequence[Place], began: float) -> _Plan:
    """Fit the runs into the time that is left; kept on disk, so that a comparison gone on with has the same runs."""
    path = out / "plan.json"
    wanted = {"trials": request.trials, "places": [list(place) for place in places], "minutes": request.minutes}
    if path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["request"] == wanted and set(found) <= set(stored["systems"]):
            return _Plan(stored["runs"], stored["epochs"], stored["seconds"])
    runs, epochs, limits = len(places), {}, {}
    if request.minutes is not None:
        left = (60 * request.minutes - (time.monotonic() - began)) * request.count * 0.85
        expected = {name: _expected_seconds(result) for name, result in found.items()}
        while runs > 2 and runs * sum(expected.values()) > left:
            runs -= 1
        shares = share_out(max(left, 1.0) / runs, expected)
        for name, share in shares.items():
            best = found[name].best
            if expected[name] > share and best is not None and best.epoch_ms > 0:
                epochs[name] = max(FEWEST_EPOCHS, int(1000 * share / best.epoch_ms / 1.2))
            limits[name] = max(10.0, 2 * share)
    content = {"request": wanted, "systems": sorted(found), "runs": runs, "epochs": epochs, "seconds": limits}
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
    return _Plan(runs, epochs, limits)


def share_out(total: float, wanted: Mapping[str, float]) -> dict[str, float]:
    """Seconds for each: what it wants, as far as an even share goes; what some leave over is shared by the others."""
    shares: dict[str, float] = {}
    left = total
    for count, name in enumerate(sorted(wanted, key=wanted.__getitem__)):
        even = left / (len(wanted) - count)
        shares[name] = max(min(wanted[name], even), 0.0)
        left -= shares[name]
    return shares


def _expected_seconds(found: Found) -> float:
    """What a run of the chosen settings takes, by what its trial took."""
    best = found.best
    return 0.0 if best is None else 1.2 * best.epochs * best.epoch_ms / 1000 + 0.3


def _final_job(system: System, nested: dict[str, Any], place: Place, plan: _Plan) -> Job:
    settings = at_place(nested, place)
    if system.model is None:
        return Job(system.name, key_of(place), "free", settings, {"baseline": system.name}, cost=-1.0)
    if system.name in plan.epochs:
        training = dict(settings.get("training", {}))
        capped = min(plan.epochs[system.name], int(training.get("epochs", 10**9)))
        settings = {**settings, "training": {**training, "epochs": capped}}
    limit = plan.seconds.get(system.name)
    return Job(system.name, key_of(place), "train", settings, {}, limit, cost=place[0] + 0.01 * place[1])


def _with_few_threads(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "run": {**given.get("run", {}), "threads": 1}}


def _claim(out: Path, given: Mapping[str, Any]) -> None:
    """Refuse a folder that holds a comparison of something else."""
    path = out / "request.json"
    content = json.dumps({"given": given}, indent=1, sort_keys=True) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") != content:
        raise CompareError(f"{out} holds a comparison on other data or settings; choose another folder (--out)")
    write_atomically(path, content.encode())


__all__ = ["CompareError", "Comparison", "Request", "Row", "compare"]
