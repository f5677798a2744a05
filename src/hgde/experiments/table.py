"""A comparison as rows: means, paired tests against the best, cost, failures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hgde.experiments.extras import OF_EDGES, extras_of
from hgde.experiments.jobs import Done
from hgde.experiments.search import Found
from hgde.experiments.stats import Paired, Place, Spread, holm, paired_test
from hgde.experiments.systems import System
from hgde.tasks import METRICS

_PLAIN = ("rmse", "mae", "log_loss", "loss")
"""Metrics that are not shares, shown as they are; all others in per cent."""


def unit_of(metric: str) -> float:
    return 1.0 if metric in _PLAIN else 100.0


@dataclass
class Row:
    """One system: its scores by place, in the unit shown, and what they took."""

    system: System
    metric: str
    scores: dict[Place, float]
    expected: int
    failures: list[str] = field(default_factory=list)
    parameters: int = 0
    epoch_ms: float = math.nan
    seconds: float = math.nan
    peak_mib: float = math.nan
    distortion: float = math.nan
    trials: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    extras: list[str] = field(default_factory=list)
    """What it was trained with besides its loss (:mod:`hgde.experiments.extras`)."""
    test_per_train: float = 0.0
    tested: int = 0
    """How many nodes or pairs a run is tested on."""
    also: dict[str, float] = field(default_factory=dict)
    """Means of the other metrics of the test part, as they are."""
    against_best: Paired | None = None
    p: float = math.nan

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def sees_edges(self) -> bool:
        """Whether the graph had any part in it, be it by an extra."""
        return self.system.uses_graph or not OF_EDGES.isdisjoint(self.extras)

    @property
    def spread(self) -> Spread:
        return Spread.of(self.scores)

    @property
    def gain(self) -> float:
        """The mean as something to be maximised."""
        return METRICS.get(self.metric).gain(self.spread.mean)

    def to_dict(self) -> dict[str, Any]:
        spread = self.spread
        against = None if self.against_best is None else asdict(self.against_best)
        return {
            "system": self.name,
            "model": self.system.model,
            "metric": self.metric,
            "runs": spread.count,
            "expected": self.expected,
            "mean": spread.mean,
            "std": spread.std,
            "also": self.also,
            "standard_error": spread.error,
            "against_best": against,
            "p_adjusted": self.p,
            "parameters": self.parameters,
            "epoch_ms": self.epoch_ms,
            "seconds": self.seconds,
            "peak_mib": self.peak_mib,
            "distortion": self.distortion,
            "trials": self.trials,
            "changes": self.changes,
            "extras": self.extras,
            "failures": self.failures,
            "scores": [{"split": s, "seed": k, "score": v} for (s, k), v in self.scores.items()],
        }


@dataclass
class Comparison:
    """The outcome of a comparison, best first, systems that failed last."""

    rows: list[Row]
    facts: dict[str, Any]
    facts_failure: str | None
    trials: int
    seconds: float
    notes: list[str]
    advice: str = ""

    @classmethod
    def of(
        cls,
        rows: Sequence[Row],
        facts: dict[str, Any],
        facts_failure: str | None,
        trials: int,
        seconds: float,
        notes: list[str],
    ) -> Comparison:
        from hgde.experiments.advice import advise

        ranked = rank_rows(rows)
        return cls(ranked, facts, facts_failure, trials, seconds, notes, advise(ranked))

    @property
    def best(self) -> Row | None:
        return self.rows[0] if self.rows and self.rows[0].scores else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "facts": {name: value for name, value in self.facts.items() if name != "versions"},
            "versions": self.facts.get("versions", {}),
            "trials": self.trials,
            "seconds": self.seconds,
            "notes": self.notes,
            "advice": self.advice,
            "rows": [row.to_dict() for row in self.rows],
        }


def make_rows(
    systems: Sequence[System], outcomes: Iterable[Done], expected: int, found: Mapping[str, Found]
) -> list[Row]:
    """One row per system out of the finished runs."""
    by_system: dict[str, list[Done]] = {system.name: [] for system in systems}
    for done in outcomes:
        by_system[done.job.cell.rpartition("/")[2]].append(done)
    return [make_row(system, by_system[system.name], expected, found.get(system.name)) for system in systems]


def make_row(system: System, outcomes: Sequence[Done], expected: int, found: Found | None = None) -> Row:
    results = [(done, done.result) for done in outcomes if done.result is not None]
    failures = [done.failure for done in outcomes if done.failure is not None]
    if found is not None and found.failure is not None and not results:
        failures = [found.failure]
    row = Row(system, "accuracy", {}, expected, list(dict.fromkeys(failures)))
    for done, result in results:
        row.metric = result["metric"]
        data, run = done.job.settings.get("data", {}), done.job.settings.get("run", {})
        score = result["test"][row.metric]
        row.scores[data.get("split", 0), run.get("seed", 0)] = unit_of(row.metric) * score
    if results:
        values = [result for _, result in results]
        row.parameters = max(int(v["parameters"]) for v in values)
        row.epoch_ms, row.seconds, row.peak_mib = (
            statistics.median(float(v[name]) for v in values) for name in ("epoch_ms", "seconds", "peak_mib")
        )
        known = [v["distortion"] for v in values if v.get("distortion") is not None]
        row.distortion = statistics.fmean(known) if known else math.nan
        # A score that only some runs have (of two classes, where a split happens to hold two) has no mean.
        common = set.intersection(*(set(v["test"]) for v in values))
        others = [name for name in values[0]["test"] if name in common and name not in (row.metric, "loss")]
        row.also = {name: statistics.fmean(float(v["test"][name]) for v in values) for name in others}
        sizes = values[0]["sizes"]
        row.test_per_train, row.tested = sizes["test"] / max(1, sizes["train"]), int(sizes["test"])
        row.settings = dict(results[0][0].job.settings)
        if system.is_trained:
            row.extras = extras_of(row.settings, {v.get("preset") for v in values})
    if found is not None:
        row.trials = len(found.trials)
        row.changes = dict(found.best.changes) if found.best is not None else {}
    return row


def rank_rows(rows: Sequence[Row]) -> list[Row]:
    """Best first, each tested against the best on the same splits and seeds; p-values adjusted for their number."""
    done = [row for row in rows if row.scores]
    done.sort(key=lambda row: -row.gain if not math.isnan(row.gain) else math.inf)
    if done:
        best = done[0]
        for row in done[1:]:
            row.against_best = paired_test(row.scores, best.scores, row.test_per_train)
        tested = done[1:]
        adjusted = holm([row.against_best.p if row.against_best else math.nan for row in tested])
        for row, p in zip(tested, adjusted, strict=True):
            row.p = p
    return done + [row for row in rows if not row.scores]
