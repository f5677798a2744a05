"""``hgde reproduce`` and ``hgde search``: the published tables, and how the settings were found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgde.cli.errors import friendly

if TYPE_CHECKING:
    from hgde.experiments.reproduce import ColumnResult, Job
    from hgde.experiments.rows import Row


@friendly
def reproduce(
    table: Annotated[str, typer.Argument(help="nodes, links, depth, hetero, few-labels, best, or all.")] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="One run of every row, compared with the stored run; stores nothing.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder of the results; what is in it is not run again.")] = Path(
        "results"
    ),
    only: Annotated[str, typer.Option("--only", help="Only rows whose name contains this.")] = "",
    column: Annotated[str, typer.Option("--column", help="Only this column, such as published or clean.")] = "",
    workers: Annotated[int, typer.Option("--workers", help="Runs side by side, one thread each.")] = 2,
) -> None:
    """Run a published table and print ours beside published.

    Data is looked for in [bold]$HGDE_DATA[/bold], then in the cache, then at its public address. Stop it at any time:
    finished runs are kept, and the next call goes on.
    """
    import tempfile
    from dataclasses import replace

    from rich.console import Console

    from hgde.experiments.reproduce import write_report
    from hgde.experiments.rows import RowError, read_rows
    from hgde.report.tables import terminal

    rows = [row for row in read_rows(None if table == "all" else table) if only in row.key]
    if column:
        rows = [replace(row, columns={column: row.columns[column]}) for row in rows if column in row.columns]
    console = Console(highlight=False)
    if not rows:
        raise RowError(f"no row of {table} matches --only {only!r} and --column {column!r}")
    if quick:
        with tempfile.TemporaryDirectory() as folder:
            _tell_duration(console, rows, Path(folder), out, workers)
            fresh = _run(console, rows, Path(folder), 1, workers)
        raise typer.Exit(_compare(console, fresh, out))
    results = _run(console, rows, out, None, workers)
    for name in dict.fromkeys(result.table for result in results):
        console.print(terminal(name, [r for r in results if r.table == name]))
    write_report(out)


def _tell_duration(console: Any, rows: list[Row], fresh: Path, stored: Path, workers: int) -> None:
    from hgde.experiments.reproduce import expected_minutes, pending

    jobs = list(pending(rows, fresh, 1))
    minutes = expected_minutes(jobs, stored, workers)
    about = "" if minutes is None else f", about {max(1, round(minutes))} minutes by the stored times"
    console.print(f"{len(jobs)} runs{about}")


def _run(console: Any, rows: list[Row], out: Path, runs: int | None, workers: int) -> list[ColumnResult]:
    from hgde.experiments.reproduce import reproduce as run_rows

    def tell(job: Job, outcome: dict[str, Any] | BaseException, count: int, total: int) -> None:
        if isinstance(outcome, BaseException):
            console.print(f"[{count}/{total}] {job.name} run {job.run}: failed: {outcome}", style="red", markup=False)
            return
        run = outcome["run"]
        told = f"{100 * run['test'][outcome['metric']]:.1f} ({run['seconds']:.0f} s)"
        console.print(f"[{count}/{total}] {job.name} run {job.run}: {told}", markup=False)

    return run_rows(rows, out, runs=runs, workers=workers, on_done=tell)


def _compare(console: Any, fresh: list[ColumnResult], out: Path) -> int:
    """Print each fresh run beside the stored one; 1 if any is off by more than four stored deviations."""
    from rich.table import Table

    from hgde.experiments.reproduce import load_result

    table = Table("row", "column", "now", "stored run", "stored mean ± std", "agrees")
    wrong = 0
    for result in fresh:
        path = out / result.table / f"{result.row}--{result.column}.json"
        stored = load_result(path)
        if stored is None:
            table.add_row(result.title, result.column, f"{result.mean:.1f}", "", "", "not stored")
            continue
        agrees = abs(result.mean - stored.mean) <= max(4 * stored.std, 1.0)
        wrong += not agrees
        table.add_row(
            result.title,
            result.column,
            f"{result.mean:.1f}",
            f"{stored.scores[0]:.1f}",
            f"{stored.mean:.1f} ± {stored.std:.1f}",
            "yes" if agrees else "no",
        )
    console.print(table)
    return 1 if wrong else 0


@friendly
def search(
    row: Annotated[str, typer.Argument(help="A row such as nodes/cora-e (files of the experiments folder).")],
    column: Annotated[str, typer.Option("--column", help="Whose split to use.")] = "clean",
    strategy: Annotated[
        str, typer.Option("--strategy", help="tpe (all settings at once) or greedy (one setting after the other).")
    ] = "greedy",
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            help="best-epoch (the validation score of the epoch that is kept) or cross-fitted (the epoch is chosen on "
            "half of the validation part and scored on the other half; better where that part is small).",
        ),
    ] = "best-epoch",
    trials: Annotated[
        int | None, typer.Option("--trials", help="Try at most so many settings (default: greedy all, tpe 30).")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Runs per trial.")] = 2,
    fix: Annotated[list[str] | None, typer.Option("--fix", help="Hold a setting: name=value (JSON).")] = None,
    space: Annotated[
        str, typer.Option("--space", help="What to try instead of the default: '{\"lr\": [0.01, 0.02], ...}'.")
    ] = "",
    out: Annotated[Path, typer.Option("--out", help="Folder for the record.")] = Path("results/search"),
) -> None:
    """Search for better settings of a row on validation scores alone, and record every trial.

    A record in the folder is continued, so a stopped search goes on where it was.
    """
    import json

    from rich.console import Console

    from hgde.experiments.objectives import OBJECTIVES
    from hgde.experiments.rows import RowError, read_rows
    from hgde.experiments.search import STRATEGIES
    from hgde.experiments.search import search as run_search
    from hgde.report.searches import write_search_report

    table, _, key = row.partition("/")
    found = [candidate for candidate in read_rows(table) if candidate.key == key]
    if not found:
        raise RowError(f"there is no row {row!r}; the rows of {table} are {', '.join(r.key for r in read_rows(table))}")
    if column not in found[0].columns:
        raise RowError(f"{row} has the columns {', '.join(found[0].columns)}, not {column!r}")
    if strategy not in STRATEGIES:
        raise RowError(f"unknown strategy {strategy!r}; there are {', '.join(STRATEGIES)}")
    if objective not in OBJECTIVES:
        raise RowError(f"unknown objective {objective!r}; there are {', '.join(OBJECTIVES)}")
    console = Console(highlight=False)
    try:
        fixed = {name: json.loads(value) for name, _, value in (item.partition("=") for item in fix or [])}
        wanted = json.loads(space) if space else None
    except json.JSONDecodeError as error:
        raise RowError(f"--space and --fix take JSON, such as '{{\"lr\": [0.01]}}' and lr=0.01: {error}") from None
    best = run_search(
        found[0],
        column,
        out,
        strategy=strategy,
        objective=objective,
        trials=trials,
        seeds=seeds,
        fixed=fixed,
        space=wanted,
        on_trial=lambda n, s, v: console.print(f"trial {n}: validation {100 * v:.2f}  {s}", markup=False),
    )
    write_search_report(out)
    console.print(f"best: {json.dumps(best)}", markup=False)
