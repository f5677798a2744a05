"""The page of a comparison, from the plain record that ``hgde compare`` writes (``table.json``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hgde.report.contents import ComparisonReport, System


def report_of_comparison(record: Mapping[str, Any], reproduce: Sequence[str] = ()) -> ComparisonReport:
    """The :class:`ComparisonReport` of a record; systems without a score are named among the warnings.

    >>> row = {"system": "gcn", "metric": "accuracy", "scores": [{"split": 0, "seed": 0, "score": 81.0}]}
    >>> report_of_comparison({"facts": {"data": "cora"}, "rows": [row]}).systems[0].mean
    81.0
    """
    rows = record.get("rows") or []
    facts = dict(record.get("facts") or {})
    metric = str(rows[0]["metric"]).replace("_", " ") if rows else "score"
    systems, warnings = [], list(record.get("notes") or [])
    for row in rows:
        scores = [one["score"] for one in row.get("scores") or []]
        if scores:
            cost = row.get("parameters") or None, _finite(row.get("seconds"))
            systems.append(System(row["system"], scores, _interval(row), *cost))
        for failure in row.get("failures") or []:
            warnings.append(f"{row['system']} failed: {failure}")
        expected = row.get("expected")
        if scores and expected and len(scores) < expected:
            warnings.append(f"{row['system']}: {len(scores)} of {expected} runs were finished.")
    changed = {f"{row['system']}: {name}": value for row in rows for name, value in (row.get("changes") or {}).items()}
    trials, seconds = record.get("trials"), _finite(record.get("seconds"))
    summary = f"{len(systems)} systems on the same splits and seeds"
    if trials == 1:
        summary += ", each with its preset"
    elif trials:
        summary += f", up to {trials} settings tried for each, scored on validation alone"
    return ComparisonReport(
        title=f"Comparison on {facts.get('data', 'a graph')}",
        systems=systems,
        score_name=f"test {metric}",
        advice=str(record.get("advice") or ""),
        summary=summary + (f"; {seconds:.0f} s in all." if seconds else "."),
        data={name.replace("_", " "): value for name, value in facts.items()} | changed,
        warnings=warnings,
        versions=record.get("versions") or {},
        reproduce=reproduce,
    )


def _interval(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Difference to the best system with the half width of its 95 % interval."""
    against = row.get("against_best")
    if not against:
        return None
    error, count = _finite(against.get("error")), int(against.get("count") or 0)
    if error is None or count < 2:
        return float(against["difference"]), math.nan
    from scipy.special import stdtrit

    return float(against["difference"]), float(stdtrit(count - 1, 0.975) * error)


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
