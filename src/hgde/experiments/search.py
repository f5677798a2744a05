"""Search for settings on validation scores alone, in rounds, so that a search is the same on any number of processes.

optuna proposes a round of trials, all are run, then it hears of all, in order. A search that was stopped proposes the
same trials again and finds those that were done on disk. The first trial is what the search starts from.

Proposals come of sums of logarithms, whose last digit is the processor's, and of ties that it breaks. So a search that
goes on elsewhere follows what was proposed before, as far as it might have proposed that itself.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hgde.experiments.jobs import Crew, Done, Job, OnDone, Rounds, run_rounds
from hgde.experiments.space import Dimension, exists, lookup
from hgde.experiments.store import Store
from hgde.experiments.work import CHECKPOINTS, Length
from hgde.pipeline.presets import AUTO, NONE, with_preset
from hgde.pipeline.settings import make_settings
from hgde.sections import SettingsError, nested, overlay

ROUND = 4
ROUND_AROUND = 2
"""Trials of a round; fewer where trials are made of the best before them, which should be a good one soon."""
_ENOUGH_FOR_A_MEDIAN = 4
MOST_ATTEMPTS = 20
"""So often a proposal is made anew that was tried before."""


class SearchError(RuntimeError):
    """A search that cannot be made; the message says what to do."""


@dataclass(frozen=True)
class Search:
    """What to search for.

    Args:
        cell: where records go.
        base: nested settings to start from; the first trial is these.
        space: what may be changed.
        trials: how many settings to try in all.
        folds: split and seed of the runs that a trial is the mean of.
        seed: of the proposals.
        seconds: how long one trial may take.
        total_seconds: no new round begins after trials that took so long together.
        starts: further settings (nested and whole, not laid over ``base``) tried before anything is proposed.
        length: epochs and patience that a trial has at most; the settings that are found keep their own.
        at_once: how many settings a trial changes in the best of the trials before its round, drawn by chance; None
            for all of them. A search of a few trials in many dimensions does better near what is known to work.
        prune: give up trials that are behind the median of the finished ones at some epochs.
    """

    cell: str
    base: Mapping[str, Any]
    space: tuple[Dimension, ...]
    trials: int
    folds: tuple[tuple[int, int], ...] = ((0, 0),)
    seed: int = 0
    seconds: float | None = None
    total_seconds: float | None = None
    starts: tuple[Mapping[str, Any], ...] = ()
    prune: bool = True
    length: Length | None = None
    at_once: int | None = None
    cost: float = 0.0


@dataclass(frozen=True)
class Trial:
    """Settings that were tried. ``score`` is what is maximised; ``None`` where the trial failed."""

    number: int
    changes: dict[str, Any]
    settings: dict[str, Any]
    score: float | None
    seconds: float
    stopped: str | None = None
    failure: str | None = None
    epoch_ms: float = 0.0
    epochs: int = 0
    reached: Mapping[str, float] = field(default_factory=dict)
    is_pruned: bool = False

    @property
    def training_seconds(self) -> float:
        """Of one of its runs, by the usual epoch: a machine that was suspended for a while does not count."""
        return self.epochs * self.epoch_ms / 1000


@dataclass(frozen=True)
class Found:
    """What a search found: the best settings, and every trial."""

    settings: dict[str, Any]
    trials: list[Trial]
    best: Trial | None
    importances: dict[str, float] = field(default_factory=dict)

    @property
    def failure(self) -> str | None:
        """Why there is no best trial."""
        if self.best is not None:
            return None
        return next((trial.failure for trial in self.trials if trial.failure), "no trial was finished")


class Searcher:
    """One search, step by step: :meth:`next_jobs`, then :meth:`tell` what came of them, until there are none.

    Args:
        search: what to search for.
        proposed: what trials of this search changed that are on disk, by their key (:func:`proposed_before`).
    """

    def __init__(self, search: Search, proposed: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.search, self._proposed_before = search, proposed or {}
        self.trials: list[Trial] = []
        self._asked: list[tuple[Job, dict[str, Any], Any]] = []
        self._tried: list[Mapping[str, Any]] = []
        self._around: Trial | None = None
        self._is_over = False
        self._known = resolved(search.base)
        self._study = _make_study(search) if search.trials > 1 and search.space else None
        if self._study is not None:
            self._study.enqueue_trial(self._start())

    def next_jobs(self) -> list[Job]:
        """The next round; empty when the search is over."""
        spent = sum(trial.seconds for trial in self.trials)
        too_long = self.search.total_seconds is not None and spent >= self.search.total_seconds
        wanted = self.search.trials if self._study is not None else 1
        # The first round is what is given alone: its time tells how many others there is time for.
        later = ROUND if self.search.at_once is None else ROUND_AROUND
        size = later if self.trials else 1 + len(self.search.starts)
        count = 0 if self._is_over or too_long else min(size, wanted - len(self.trials))
        self._around = self._best() if self.search.at_once is not None else None
        self._asked = [self._ask(len(self.trials) + k) for k in range(count)]
        return [job for job, _, _ in self._asked]

    def tell(self, outcomes: Iterable[Done]) -> None:
        """Hear what came of the round; a job without an outcome ends the search (time is up)."""
        by_key = {done.job.key: done for done in outcomes}
        for job, changes, asked in self._asked:
            done = by_key.get(job.key)
            if done is None:
                self._is_over = True
                break
            trial = _trial(len(self.trials), changes, done)
            self.trials.append(trial)
            self._tried.append(_resolved_or_given(trial.settings))  # a preset that won its race has a name now
            if self._study is not None and asked is not None:
                if trial.score is None:
                    self._forget(asked)
                else:
                    self._study.tell(asked, trial.score)
        self._asked = []

    def found(self) -> Found:
        best = self._best()
        settings = best.settings if best is not None else dict(self.search.base)
        return Found(settings, self.trials, best, self._importances())

    def _best(self) -> Trial | None:
        whole = [trial for trial in self.trials if trial.score is not None and not trial.is_pruned]
        return max(whole, key=lambda trial: (trial.score or 0.0, -trial.number), default=None)

    def _ask(self, number: int) -> tuple[Job, dict[str, Any], Any]:
        search = self.search
        changes: dict[str, Any] = {}
        asked = None
        if 0 < number <= len(search.starts):
            settings = dict(search.starts[number - 1])
            changes = {"preset": settings.get("preset")}
        else:
            settings, changes, asked = self._propose(number)
        self._tried.append(_resolved_or_given(settings))
        more: dict[str, Any] = {"folds": [list(fold) for fold in self.search.folds], "changes": changes}
        bars = self._bars()
        if bars:
            more["bars"] = bars
        if search.length is not None:
            more["length"] = list(search.length)
        job = Job(search.cell, _key(number), "trial", settings, more, search.seconds, search.cost)
        return job, changes, asked

    def _propose(self, number: int) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Settings that were not tried yet, what they change, and optuna's trial; few choices may come to an end."""
        settings, changes, asked = self._propose_anew(number)
        before = self._proposed_before.get(_key(number), changes)
        if number and asked is not None and changes != before:
            again = self._propose_again(number, before)
            if again is not None and _resolved_or_given(again[0]) not in self._tried:
                self._forget(asked)
                return again
        return settings, changes, asked

    def _propose_anew(self, number: int) -> tuple[dict[str, Any], dict[str, Any], Any]:
        for attempt in range(MOST_ATTEMPTS):
            settings, changes, asked = self._proposed(number, attempt)
            if asked is None or _resolved_or_given(settings) not in self._tried:
                break
            if attempt < MOST_ATTEMPTS - 1:
                self._forget(asked)
        return settings, changes, asked

    def _propose_again(
        self, number: int, changes: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], Any] | None:
        """The trial with these changes, which was proposed before; None where this search cannot have proposed it."""
        assert self._study is not None
        around = self._around
        kept = {} if around is None else around.changes
        own = {path: value for path, value in changes.items() if path not in kept or kept[path] != value}
        if any(path not in changes for path in kept):
            return None
        known = self._known if around is None else resolved(around.settings)
        for attempt in range(MOST_ATTEMPTS):
            space = self.search.space if around is None else self._drawn(number, attempt)
            wanted = self._as_optuna_has_it(own, known, space)
            if wanted is not None:
                self._study.enqueue_trial(wanted)
                settings, proposed, asked = self._proposed(number, attempt)
                if proposed == changes:
                    return settings, proposed, asked
                self._forget(asked)
            if around is None:
                break  # every attempt has the same space
        return None

    def _as_optuna_has_it(
        self, changes: Mapping[str, Any], known: Mapping[str, Any], space: Iterable[Dimension]
    ) -> dict[str, Any] | None:
        """A value for every setting of a space, changed or as known; None where changes are not of this space."""
        wanted: dict[str, Any] = {}
        left = dict(changes)
        for dimension in space:
            value = left.pop(dimension.path, lookup(known, dimension.path))
            if dimension.low is not None and dimension.high is not None:
                if isinstance(value, int | float):
                    wanted[dimension.path] = min(max(float(value), dimension.low), dimension.high)
            elif json.dumps(value) in self._choices(dimension):
                wanted[dimension.path] = json.dumps(value)
        return None if left else wanted

    def _proposed(self, number: int, attempt: int) -> tuple[dict[str, Any], dict[str, Any], Any]:
        changes: dict[str, Any] = {}
        asked = None
        around, base = self._around, self.search.base
        known, space = self._known, self.search.space
        if around is not None:
            base = around.settings
            known, space = resolved(base), self._drawn(number, attempt)
        if self._study is not None:
            asked = self._study.ask()
            suggested = self._suggest(asked, known, base, space)
            changes = suggested if number else {}
        settings = overlay(base, nested(changes))
        if number and settings.get("preset") == "auto":
            settings["preset"] = "none"  # what is proposed is meant as it stands
        if around is not None:
            changes = {**around.changes, **changes}
        return settings, changes, asked

    def _forget(self, asked: Any) -> None:
        """Let optuna know that a proposal was not tried."""
        import optuna

        assert self._study is not None
        self._study.tell(asked, state=optuna.trial.TrialState.FAIL)

    def _drawn(self, number: int, attempt: int) -> tuple[Dimension, ...]:
        """The settings that a trial changes, in the order of the space."""
        space, count = self.search.space, self.search.at_once or 0
        draws = random.Random(f"{self.search.seed}/{number}" + (f"/{attempt}" if attempt else ""))
        chosen = draws.sample(range(len(space)), min(count, len(space)))
        return tuple(space[k] for k in sorted(chosen))

    def _suggest(
        self, asked: Any, known: Mapping[str, Any], base: Mapping[str, Any], space: Iterable[Dimension]
    ) -> dict[str, Any]:
        """Values for every setting that exists, given the ones before it. Only what differs from the base is named."""
        changes: dict[str, Any] = {}
        for dimension in space:
            chosen = _chosen(known, base, changes)
            if not dimension.exists_in(chosen) or not exists(chosen, dimension.path):
                continue
            if dimension.low is not None and dimension.high is not None:
                value: Any = asked.suggest_float(dimension.path, dimension.low, dimension.high, log=dimension.log)
                value = float(f"{value:.3g}")
            else:
                value = json.loads(asked.suggest_categorical(dimension.path, self._choices(dimension)))
            if value != lookup(known, dimension.path):
                changes[dimension.path] = value
        return changes

    def _choices(self, dimension: Dimension) -> list[str]:
        """The values as text; what the search starts from is always among them."""
        values = list(dimension.values)
        own = lookup(self._known, dimension.path)
        if own is not None and own not in values:
            values.append(own)
        return [json.dumps(value) for value in values]

    def _start(self) -> dict[str, Any]:
        start: dict[str, Any] = {}
        for dimension in self.search.space:
            own = lookup(self._known, dimension.path)
            if own is None or not dimension.exists_in(self._known) or not exists(self._known, dimension.path):
                continue
            if dimension.low is not None and dimension.high is not None:
                start[dimension.path] = min(max(float(own), dimension.low), dimension.high)
            else:
                start[dimension.path] = json.dumps(own)
        return start

    def _bars(self) -> dict[str, float]:
        whole = [trial for trial in self.trials if trial.score is not None and not trial.is_pruned]
        if not self.search.prune or len(whole) < _ENOUGH_FOR_A_MEDIAN:
            return {}
        bars = {}
        for epoch in CHECKPOINTS:
            values = [trial.reached[str(epoch)] for trial in whole if str(epoch) in trial.reached]
            if len(values) >= _ENOUGH_FOR_A_MEDIAN:
                bars[str(epoch)] = statistics.median(values)
        return bars

    def _importances(self) -> dict[str, float]:
        """Share of the variance of the scores that each setting accounts for; empty where that cannot be said."""
        if self._study is None or sum(trial.score is not None for trial in self.trials) < _ENOUGH_FOR_A_MEDIAN:
            return {}
        import optuna

        try:
            evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
            found = optuna.importance.get_param_importances(self._study, evaluator=evaluator)
        except (RuntimeError, ValueError, ZeroDivisionError):  # all scores alike
            return {}
        return {name: float(value) for name, value in found.items()}


def search_all(
    searches: Iterable[Search],
    store: Store,
    workers: int | Crew,
    on_done: OnDone | None = None,
    minutes: float | None = None,
    retry: bool = False,
) -> dict[str, Found]:
    """Several searches side by side; the results by cell."""
    distinct = {search.cell: search for search in searches}
    works = [search_in_rounds(search, store) for search in distinct.values()]
    found = run_rounds(works, store, workers, on_done, minutes, retry)
    return {cell: result for cell, result in zip(distinct, found, strict=True) if result is not None}


def search_in_rounds(search: Search, store: Store) -> Rounds[Found]:
    """A search for :func:`hgde.experiments.jobs.run_rounds`."""
    searcher = Searcher(search, proposed_before(search, store))
    while jobs := searcher.next_jobs():
        searcher.tell((yield jobs))
    return searcher.found()


def proposed_before(search: Search, store: Store) -> dict[str, Mapping[str, Any]]:
    """What the trials on disk changed, by their key: read as it stands, and followed only where it might be."""
    told = ((key, record["more"].get("changes")) for key, record in store.records(search.cell))
    return {key: changes for key, changes in told if isinstance(changes, dict)}


def _key(number: int) -> str:
    return f"trial-{number:03d}"


def _trial(number: int, changes: dict[str, Any], done: Done) -> Trial:
    result = done.result
    if result is None:
        return Trial(number, changes, dict(done.job.settings), None, done.seconds, failure=done.failure)
    settings, preset = dict(done.job.settings), result.get("preset")
    if preset is not None:
        # The presets have been raced for, on the same validation part: the one that won is what was found.
        settings["preset"] = preset
        changes = {**changes, "preset": preset} if "preset" in changes else changes
    return Trial(
        number, changes, settings, float(result["score"]), done.seconds, result["stopped"], None,
        result["epoch_ms"], max(result["epochs"], default=0), result["reached"], result["pruned"],
    )  # fmt: skip


def _chosen(known: Mapping[str, Any], base: Mapping[str, Any], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """All settings after some changes to a base, those that cannot act left out."""
    if not changes:
        return known
    try:
        return resolved(overlay(base, nested(changes)))
    except SearchError:  # the trial will say so itself
        return overlay(known, nested(changes))


def resolved(base: Mapping[str, Any]) -> dict[str, Any]:
    """All settings, those of a preset that is named included."""
    try:
        settings = make_settings(base, lenient=True)
        return (settings if settings.preset in (AUTO, NONE) else with_preset(settings, settings.preset)).to_dict()
    except SettingsError as error:
        raise SearchError(f"the settings to start from cannot be used: {error}") from None


def _resolved_or_given(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return resolved(settings)
    except SearchError:  # the trial will say so itself
        return settings


def _make_study(search: Search) -> Any:
    try:
        import optuna
    except ImportError:
        raise SearchError(
            "searching for settings needs optuna: pip install 'hgde[search]' (or --trials 1 for no search)"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    startup = max(2, min(8, search.trials // 2))
    sampler = optuna.samplers.TPESampler(seed=search.seed, n_startup_trials=startup, constant_liar=True)
    return optuna.create_study(direction="maximize", sampler=sampler)
