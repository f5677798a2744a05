"""What a search tried and what came of it, as Markdown. Reads the records of ``hgde search`` only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_search_report(folder: Path) -> None:
    """``README.md`` with every record of the folder."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    sections = [_section(record) for record in records if record["trials"]]
    (folder / "README.md").write_text("\n".join([_HEAD, *sections]), encoding="utf-8")


def _section(record: dict[str, Any]) -> str:
    trials = record["trials"]
    minutes = sum(trial["seconds"] for trial in trials) / 60
    best = max(trials, key=lambda trial: float(trial["score"]))
    runs = f"up to {record['seeds']} runs each" if record["seeds"] > 1 else "one run each"
    lines = [
        f"## {record['row']}, {record['column']}",
        "",
        f"{len(trials)} trials ({record['strategy']}, {record['objective']}), {runs}, {minutes:.0f} minutes. "
        f"Best: {_percent(best['scores'])}. Started from {_told(trials[0]['settings'])}"
        + (f"; held: {_told(record['fixed'])}." if record["fixed"] else "."),
        "",
        "| change | validation | best before | kept |",
        "| --- | --- | --- | --- |",
        f"| none: the start | {_percent(trials[0]['scores'])} | | |",
    ]
    leader = trials[0]
    for trial in trials[1:]:
        changed = {name: value for name, value in trial["settings"].items() if leader["settings"][name] != value}
        kept = trial["score"] > leader["score"]
        cells = (_told(changed), _percent(trial["scores"]), f"{100 * leader['score']:.1f}", "yes" if kept else "")
        lines.append("| " + " | ".join(cells) + " |")
        leader = trial if kept else leader
    return "\n".join([*lines, ""])


def _told(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in settings.items()) or "nothing"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "/".join(f"{item:g}" for item in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _percent(scores: list[float]) -> str:
    mean = 100 * sum(scores) / len(scores)
    return f"{mean:.1f} ({len(scores)} run{'s' if len(scores) > 1 else ''})"


_HEAD = """# Searches

Validation scores in %; no test score was read. `hgde search` wrote the records and this page; a record holds everything
needed to repeat it. The score is that of the best epoch or, where it says *cross-fitted*, that of epochs chosen on one
half of the validation part and scored on the other. A greedy search changes one setting at a time and keeps what is
better; a trial that is clearly behind after its first run is not run again. Differences of a point or less are within
the spread over seeds.
"""
