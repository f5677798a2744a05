"""Tables of results against published figures, as Markdown and for the terminal. Reads result files only."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.table import Table


class Result(Protocol):
    """What a table needs to know of a result."""

    title: str
    column: str
    published: tuple[float, float] | None
    metric: str
    runs: list[dict[str, Any]]
    baselines: dict[str, list[float]]
    leak_free: bool

    @property
    def mean(self) -> float: ...
    @property
    def std(self) -> float: ...


HEADER = ("row", "column", "ours", "published", "difference", "reached", "trivial baselines", "runs", "s a run", "MiB")


def verdict(result: Result) -> str:
    """Whether our mean is within one published standard deviation below the published mean, or above."""
    if result.published is None:
        return ""
    mean, std = result.published
    return "yes" if result.mean >= mean - std else f"no ({result.mean - (mean - std):+.2f})"


def cells(result: Result) -> tuple[str, ...]:
    published = "" if result.published is None else f"{result.published[0]:.1f} ± {result.published[1]:.1f}"
    difference = "" if result.published is None else f"{result.mean - result.published[0]:+.1f}"
    baselines = ", ".join(
        f"{name} {100 * statistics.fmean(scores):.1f}" for name, scores in result.baselines.items() if scores
    )
    return (
        result.title,
        "published = clean" if result.leak_free and result.column == "published" else result.column,
        f"{result.mean:.1f} ± {result.std:.1f}",
        published,
        difference,
        verdict(result),
        baselines,
        str(len(result.runs)),
        f"{statistics.fmean(run['seconds'] for run in result.runs):.1f}",
        f"{max(run['peak_mib'] for run in result.runs):.0f}",
    )


def markdown(title: str, results: Sequence[Result]) -> str:
    """A section with one line per column of each row."""
    lines = [f"## {title}", "", "| " + " | ".join(HEADER) + " |", "| " + " | ".join("---" for _ in HEADER) + " |"]
    lines += ["| " + " | ".join(cells(result)) + " |" for result in results]
    return "\n".join([*lines, ""])


def terminal(title: str, results: Sequence[Result]) -> Table:
    from rich.table import Table

    table = Table(*HEADER, title=title)
    for result in results:
        shown = cells(result)
        table.add_row(*shown, style="" if not shown[5].startswith("no") else "yellow")
    return table
