"""The page of a search, from plain values: its trials, what mattered, and what was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hgde.report.contents import Trial, TuningReport


def report_of_tuning(record: Mapping[str, Any], reproduce: Sequence[str] = ()) -> TuningReport:
    """The :class:`TuningReport` of ``{"title", "metric", "trials", "importances", "best", "versions"}``.

    A trial is ``{"number", "changes", "score", "seconds", "stopped", "failure"}``, ``best`` the number of one.

    >>> trial = {"number": 0, "changes": {}, "score": 0.8, "seconds": 2.0}
    >>> report_of_tuning({"metric": "accuracy", "trials": [trial], "best": 0}).trials[0].score
    0.8
    """
    trials, failures = [], []
    for one in record.get("trials") or []:
        state = "failed" if one.get("failure") else "given up early" if one.get("stopped") else "complete"
        settings = one.get("changes") or {"settings": "as at the start"}
        trials.append(Trial(one["number"], settings, one.get("score"), one.get("seconds"), state))
        if one.get("failure"):
            failures.append(f"Trial {one['number']} failed: {one['failure']}")
    metric = str(record.get("metric", "score")).replace("_", " ")
    best = next((trial for trial in trials if trial.number == record.get("best")), None)
    return TuningReport(
        title=str(record.get("title", "Search for settings")),
        trials=trials,
        importances=record.get("importances") or {},
        best={} if best is None else best.settings,
        score_name=f"validation {metric}",
        advice=_advice(trials, best, metric),
        summary=f"{len(trials)} trials, scored by cross-fitting on the validation part; no test score was read.",
        warnings=failures,
        versions=record.get("versions") or {},
        reproduce=reproduce,
    )


def _advice(trials: Sequence[Trial], best: Trial | None, metric: str) -> str:
    if best is None or best.score is None or trials[0].score is None:
        return ""
    gain = best.score - trials[0].score
    if best.number == trials[0].number or gain <= 0:
        return "No trial was better than the start: keep the settings you had."
    return f"Trial {best.number} is ahead of the start by {gain:.4f} (validation {metric}): use settings.toml."
