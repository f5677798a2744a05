"""``hgde reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgde.cli.errors import friendly

if TYPE_CHECKING:
    from rich.console import Console

    from hgde.experiments.tables import Table as Definition


@friendly
def reproduce(
    table: Annotated[
        str,
        typer.Argument(help="nodes, links, depth, hetero, few-labels, cost, defaults, curvature, or figures."),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only cells of this data, system or protocol; several narrow it down."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do a few stored runs again and say whether they agree; fails if not.")
    ] = False,
    minutes: Annotated[float | None, typer.Option("--minutes", min=0.1, help="Stop after so long.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes (default: the cores).")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Do runs again that are recorded as failed.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Run nothing, only write the page anew.")] = False,
    results: Annotated[Path, typer.Option("--results", help="Folder of pages and records.")] = Path("results"),
) -> None:
    """Run what is missing of a table, cheap cells first, and write its page: ours, published, verdict.

    Every finished run is on disk at once; stopped or not, the same command goes on.

    [bold]Examples[/bold]

      hgde reproduce nodes --only cora               all systems on Cora
      hgde reproduce hetero --only texas --only hgde-e
      hgde reproduce defaults --minutes 60
      hgde reproduce nodes --quick                   do stored runs again: equal, within the spread, or different
      hgde reproduce figures                         the paper's figures, from stored runs
    """
    import os

    from rich.console import Console

    from hgde.experiments.jobs import Done
    from hgde.experiments.reproduce import reproduce, write_index, write_page
    from hgde.experiments.store import Store
    from hgde.experiments.tables import load_table

    console, progress = Console(highlight=False), Console(stderr=True, highlight=False)
    count = workers or os.cpu_count() or 1

    def tell(done: Done, number: int, total: int) -> None:
        shown = done.failure or f"{done.seconds:.1f} s"
        progress.print(f"[{number}/{total}] {done.job.name}: {shown}", soft_wrap=True, markup=False)

    def say(words: str) -> None:
        progress.print(words, soft_wrap=True, markup=False)

    wanted = tuple(only or ())
    if table == "figures":
        from hgde.experiments.figures import draw_figures

        for file in draw_figures(results, Path("docs"), count, tell, say):
            console.print(f"drew {file}")
        return
    definition = load_table(table)
    if quick:
        _check(definition, results, wanted, count, console)
        return
    if page:
        written = write_page(definition, results, Store(results))
    else:
        reproduce(definition, results, only=wanted, workers=count, minutes=minutes, retry=retry, on_done=tell, say=say)
        written = results / f"{table}.md"
    write_index(results)
    console.print(f"wrote {written}")


def _check(definition: Definition, results: Path, only: tuple[str, ...], workers: int, console: Console) -> None:
    from tempfile import TemporaryDirectory

    from rich.table import Table

    from hgde.experiments.reproduce import check_again
    from hgde.experiments.stats import DIFFERENT

    with TemporaryDirectory() as scratch:
        checks = check_again(definition, results, Path(scratch), only=only, workers=workers)
    if not checks:
        typer.secho(f"no stored run of {definition.name} to do again; run hgde reproduce {definition.name}", err=True)
        raise typer.Exit(2)
    shown = Table("cell", "stored", "again", "95 % interval", "verdict", box=None)
    for check in checks:
        again = "failed" if check.again is None else f"{check.again:.2f}"
        interval = f"{check.interval[0]:.2f} to {check.interval[1]:.2f}"
        words = check.verdict + (f": {check.failure}" if check.failure else "")
        shown.add_row(check.cell.path.partition("/")[2], f"{check.stored:.2f}", again, interval, words)
    console.print(shown)
    if any(check.verdict == DIFFERENT for check in checks):
        raise typer.Exit(1)
