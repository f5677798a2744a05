"""The page of the demonstration's run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hgde.report.page import write_report


def run_page(run: Path, out: Path, settings: Mapping[str, Any]) -> list[Path]:
    """Train one model into a run folder, where there is none yet, and write its page."""
    from hgde.experiments.work import settings_for
    from hgde.pipeline import fit
    from hgde.report.from_run import report_of_run

    if not (run / "summary.json").exists():
        fit(settings_for(settings), run)
    return [write_report(report_of_run(run), out, forms=("html",)).html, run]
