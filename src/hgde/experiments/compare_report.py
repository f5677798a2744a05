"""A comparison written down: Markdown, JSON, CSV, a picture, and a table of 80 columns for the terminal."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgde.experiments.extras import with_legend
from hgde.experiments.table import Comparison, Row
from hgde.files import write_atomically
from hgde.report.from_comparison import report_of_comparison
from hgde.report.page import write_report

if TYPE_CHECKING:
    from rich.table import Table


def write_comparison(comparison: Comparison, out: Path, reproduce: Sequence[str] = ()) -> list[Path]:
    """Write ``table.md``, ``.json``, ``.csv``, ``.png`` and the page ``report.html``; returns their paths.

    ``reproduce`` are the commands that make it again, for the page."""
    paths = [out / f"table.{suffix}" for suffix in ("md", "json", "csv", "png")]
    write_atomically(paths[0], markdown(comparison).encode())
    write_atomically(paths[1], (json.dumps(_clean(comparison.to_dict()), indent=1) + "\n").encode())
    write_atomically(paths[2], _csv(comparison).encode())
    draw(comparison, paths[3])
    page = write_report(report_of_comparison(_clean(comparison.to_dict()), reproduce), out, forms=("html",))
    return [*paths, page.html]


def fact_lines(facts: dict[str, Any]) -> list[str]:
    """What the graph itself says, a line each."""
    if not facts:
        return []
    homophily = facts.get("homophily")
    parts = facts.get("parts", {})
    return [
        f"{facts['data']}: {facts['nodes']:,} nodes, {facts['edges']:,} edges, mean degree {facts['mean_degree']:g}, "
        f"largest {facts['max_degree']:,}, {facts['components']:,} components",
        f"features: {facts['features']}; classes: {facts['classes']}; homophily: "
        + ("-" if homophily is None else f"{homophily:.2f}"),
        f"hyperbolicity: delta at least {facts['delta_max']:g}, mean {facts['delta_mean']:g} over "
        f"{facts['delta_samples']:,} four-tuples (0 for a tree)",
        f"split {facts['split']}: " + ", ".join(f"{name} {size:,}" for name, size in parts.items()),
    ]


def cells(row: Row) -> list[str]:
    """System, score, standard error, gap to the best with p, parameters, ms per epoch, MiB, runs."""
    spread = row.spread
    if spread.count == 0:
        return [row.name, "failed" if row.failures else "not run", "", "", "", "", "", f"0/{row.expected}"]
    against = row.against_best
    gap = "best" if against is None else f"{against.difference:+.2f}"
    if against is not None and not math.isnan(row.p):
        gap += f" ({row.p:.2g})" if row.p >= 0.001 else " (<.001)"
    return [
        row.name,
        f"{spread.mean:.2f} ± {spread.std:.2f}",
        "" if math.isnan(spread.error) else f"{spread.error:.2f}",
        gap,
        count(row.parameters),
        _short(row.epoch_ms, 1) if row.epoch_ms > 0 else "-",
        "-" if math.isnan(row.peak_mib) else _short(row.peak_mib, 0),
        f"{spread.count}/{row.expected}",
    ]


HEAD = ("system", "{metric}", "s.e.", "to best (p)", "param.", "ms/ep.", "MiB", "runs")


def _heads(comparison: Comparison) -> list[str]:
    metric = comparison.rows[0].metric if comparison.rows else "score"
    return [name.format(metric=metric.replace("_", " ")) for name in HEAD]


def markdown(comparison: Comparison) -> str:
    heads = _heads(comparison)
    lines = ["# Comparison", "", comparison.advice, ""]
    lines += [f"- {line}" for line in fact_lines(comparison.facts)]
    lines += ["", "| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in comparison.rows]
    lines += ["", *(f"- {line}" for line in footnotes(comparison)), ""]
    return "\n".join(lines)


def footnotes(comparison: Comparison) -> list[str]:
    """How the numbers were made, what was cut short, and what failed."""
    lines = [
        f"Test scores: mean ± standard deviation over runs, standard error of the mean. Up to {comparison.trials} "
        f"trials for each trained system, scored on the validation part alone; {comparison.seconds:.0f} s in all.",
        "To the best: mean difference on the same splits and seeds; p of a paired t-test (corrected for overlapping "
        "training parts where splits were drawn at random), adjusted by Holm's rule.",
    ]
    for row in comparison.rows:
        if row.changes:
            chosen = ", ".join(f"{path}={value}" for path, value in row.changes.items())
            lines.append(f"{row.name}, chosen in {row.trials} trials: {chosen}")
        if row.extras:
            lines.append(f"{row.name}, trained with: {', '.join(row.extras)}")
    lines += with_legend(words for row in comparison.rows for words in row.extras)
    lines += comparison.notes
    for row in comparison.rows:
        lines += [f"{row.name} failed: {words}" for words in row.failures]
    return lines


def terminal(comparison: Comparison) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for number, name in enumerate(_heads(comparison)):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for row in comparison.rows:
        table.add_row(*cells(row), style="bold" if row is comparison.best else None)
    return table


def _csv(comparison: Comparison) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    names = (
        "system", "metric", "mean", "std", "standard_error", "difference", "p_adjusted", "parameters", "epoch_ms",
        "seconds", "peak_mib", "runs", "expected", "failure",
    )  # fmt: skip
    writer.writerow(names)
    for row in comparison.rows:
        stored = row.to_dict()
        stored["difference"] = row.against_best.difference if row.against_best else ""
        stored["failure"] = "; ".join(row.failures)
        writer.writerow([_blank(stored[name]) for name in names])
    return buffer.getvalue()


def draw(comparison: Comparison, path: Path) -> None:
    """Every run as a dot, means with two standard errors, best first."""
    from matplotlib.figure import Figure

    rows = [row for row in comparison.rows if row.scores]
    figure = Figure(figsize=(7.0, 0.9 + 0.36 * max(2, len(rows))), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    for place, row in enumerate(rows):
        spread = row.spread
        colour = "#d55e00" if row.name == "hgde" else "#e69f00" if row.name == "hgde-flat" else "#0072b2"
        axes.plot(list(row.scores.values()), [place] * spread.count, "o", color=colour, alpha=0.3, markersize=4)
        width = 0.0 if math.isnan(spread.error) else 2 * spread.error
        axes.errorbar(spread.mean, place, xerr=width, fmt="D", color=colour, capsize=3, markersize=5)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.invert_yaxis()
    metric = rows[0].metric.replace("_", " ") if rows else "score"
    axes.set_xlabel(f"test {metric} (bars: two standard errors; dots: runs)")
    axes.set_title(str(comparison.facts.get("data", "")))
    axes.grid(axis="x", alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.removeprefix("."))
    write_atomically(path, buffer.getvalue())


def count(number: int) -> str:
    if number == 0:
        return "-"
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}"
    return str(number)


def _short(number: float, digits: int) -> str:
    return f"{number:.{digits}f}" if number < 1000 else f"{number:.0f}"


def _blank(value: Any) -> Any:
    return "" if isinstance(value, float) and math.isnan(value) else value


def _clean(value: Any) -> Any:
    """Plain values with ``null`` for what is not a number, so that every JSON reader takes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: _clean(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value
