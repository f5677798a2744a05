"""Comparisons, searches and the demonstration's run as pages of :mod:`hgde.report`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgde.experiments.compare_report import fact_lines, footnotes
from hgde.experiments.table import Comparison, Row
from hgde.report.contents import ComparisonReport, System, Trial, TuningReport
from hgde.report.page import write_report

if TYPE_CHECKING:
    from hgde.experiments.tune import Tuned


def comparison_page(comparison: Comparison, folder: Path) -> Path:
    """``report.html``: the table, a picture and the sentence of advice."""
    rows = [row for row in comparison.rows if row.scores]
    metric = rows[0].metric.replace("_", " ") if rows else "score"
    data = {f"fact {number}": line for number, line in enumerate(fact_lines(comparison.facts), 1)}
    report = ComparisonReport(
        title=f"Comparison on {comparison.facts.get('data', 'a graph')}",
        systems=[_system(row) for row in rows],
        score_name=f"test {metric}",
        advice=comparison.advice,
        data=data,
        warnings=footnotes(comparison),
        versions=comparison.facts.get("versions", {}),
    )
    return write_report(report, folder, forms=("html",)).html


def _system(row: Row) -> System:
    against = row.against_best
    difference = None
    if against is not None and not math.isnan(against.error):
        from scipy.stats import t as student

        difference = (against.difference, float(student.ppf(0.975, against.count - 1)) * against.error)
    return System(row.name, list(row.scores.values()), difference, row.parameters or None, row.seconds)


def tuning_page(tuned: Tuned, folder: Path) -> Path:
    """``report.html``: every trial, what mattered, and what was chosen."""
    best = tuned.found.best
    states = {True: "pruned", False: "complete"}
    trials = [
        Trial(t.number, t.changes, t.score, t.seconds, "failed" if t.failure else states[t.is_pruned])
        for t in tuned.found.trials
    ]
    report = TuningReport(
        title="Search for settings",
        trials=trials,
        importances=tuned.found.importances,
        best={} if best is None else best.changes,
        score_name=f"validation {tuned.metric}, cross-fitted",
        warnings=[f"trial {t.number} failed: {t.failure}" for t in tuned.found.trials if t.failure],
        reproduce=[f"hgde train --settings {folder / 'settings.toml'}"],
    )
    return write_report(report, folder, forms=("html",)).html


def run_page(run: Path, out: Path, settings: Mapping[str, Any]) -> list[Path]:
    """Train one model into a run folder, where there is none yet, and write its page."""
    from hgde.pipeline import fit, make_settings
    from hgde.report.from_run import report_of_run

    if not (run / "summary.json").exists():
        fit(make_settings(settings), run)
    return [write_report(report_of_run(run), out, forms=("html",)).html, run]
