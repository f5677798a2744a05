"""``hgde reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgde.cli.errors import friendly
from hgde.cli.use import AsJson, print_json
from hgde.cli.workers import Slurm, Workers, chosen_workers

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from hgde.experiments.following import BarFollower
    from hgde.experiments.jobs import Crew
    from hgde.experiments.reproduce import Check
    from hgde.experiments.tables import Table as Definition


@friendly
def reproduce(
    table: Annotated[
        str,
        typer.Argument(help="nodes, links, depth, hetero, few-labels, cost, peers, defaults, curvature, or figures."),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="Only cells of this data set, system or protocol (repeat it to narrow down), or this figure."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Repeat a few stored runs and check that they agree; fails if not.")
    ] = False,
    minutes: Annotated[float | None, typer.Option("--minutes", min=0.1, help="Stop after so long.")] = None,
    workers: Workers = None,
    slurm: Slurm = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat trials and runs that are recorded as failed.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Run nothing, rewrite the page or the figures.")] = False,
    results: Annotated[Path, typer.Option("--results", help="Folder of pages and records.")] = Path("results"),
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the result only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the missing cells of a table, cheap ones first, and write its page: measured, published, verdict.

    Every finished run is saved at once; run the same command again to continue.

    [bold]Examples[/bold]

      hgde reproduce nodes --only cora               all systems on Cora
      hgde reproduce hetero --only texas --only hgde-e
      hgde reproduce defaults --minutes 60
      hgde reproduce nodes --quick                   repeat stored runs: equal, within the spread, or different
      hgde reproduce figures                         the paper's figures, from stored runs
    """
    from rich.console import Console

    from hgde.experiments.following import BarFollower
    from hgde.experiments.reproduce import count_missing, reproduce, write_index, write_page
    from hgde.experiments.store import Store
    from hgde.experiments.tables import load_table
    from hgde.progress import Stages

    console = Console(highlight=False)
    crew = chosen_workers(workers, slurm, results)
    wanted = tuple(only or ())
    with Stages(quiet=quiet or as_json) as stages:
        follower = BarFollower(stages)
        if table == "figures":
            _say_written(_figures(wanted, quick, minutes, crew, retry, page, results, follower), as_json, console)
            return
        definition = load_table(table)
        if quick:
            checks = _done_again(definition, results, wanted, crew)
        elif page:
            written = write_page(definition, results, Store(results))
        else:
            heard = follower.stage(f"{table}: runs", count_missing(definition, results, wanted))
            reproduce(
                definition, results, only=wanted, workers=crew, minutes=minutes, retry=retry, on_done=heard,
                say=follower.say,
            )  # fmt: skip
            written = results / f"{table}.md"
    if quick:
        _show_checks(checks, definition.name, as_json, console)
        return
    write_index(results)
    _say_written([str(written)], as_json, console)


def _figures(
    only: tuple[str, ...],
    quick: bool,
    minutes: float | None,
    crew: int | Crew,
    retry: bool,
    page: bool,
    results: Path,
    follower: BarFollower,
) -> list[str]:
    from hgde.experiments.figures import FIGURES, draw_figures, draw_stored

    if quick:
        raise typer.BadParameter("figures have no runs to compare; use --quick with a table")
    unknown = [name for name in only if name not in FIGURES]
    if unknown:
        raise typer.BadParameter(f"there is no figure {unknown[0]!r}; there are {', '.join(FIGURES)}")
    if page:
        return [str(file) for file in draw_stored(results, Path("docs"), only)]
    heard = follower.stage("figures", None)
    drawn = draw_figures(results, Path("docs"), only, crew, minutes, retry, heard, follower.say)
    return [str(file) for file in drawn]


def _say_written(files: list[str], as_json: bool, console: Console) -> None:
    if as_json:
        print_json({"files": files})
        return
    for file in files:
        console.print(f"wrote {file}", soft_wrap=True)


def _done_again(definition: Definition, results: Path, only: tuple[str, ...], workers: int | Crew) -> list[Check]:
    from tempfile import TemporaryDirectory

    from hgde.experiments.reproduce import check_again

    with TemporaryDirectory() as scratch:
        return check_again(definition, results, Path(scratch), only=only, workers=workers)


def _show_checks(checks: list[Check], name: str, as_json: bool, console: Console) -> None:
    from hgde.experiments.stats import DIFFERENT

    if not checks:
        typer.secho(f"no stored run of {name} to do again; run hgde reproduce {name}", err=True)
        raise typer.Exit(2)
    if as_json:
        print_json({"checks": [_plain(check) for check in checks]})
    else:
        console.print(_table(checks))
    if any(check.verdict == DIFFERENT for check in checks):
        raise typer.Exit(1)


def _plain(check: Check) -> dict[str, Any]:
    kept = {"stored": check.stored, "again": check.again, "verdict": check.verdict, "failure": check.failure}
    return {"cell": check.cell.path, "interval": list(check.interval), **kept}


def _table(checks: list[Check]) -> Table:
    """Numbers whole, names and words folded where the terminal is narrow."""
    from rich.table import Table

    shown = Table(box=None, pad_edge=False)
    shown.add_column("cell", overflow="fold")
    for head in ("stored", "again", "95 % interval"):
        shown.add_column(head, justify="right", no_wrap=True)
    shown.add_column("verdict", overflow="fold")
    for check in checks:
        again = "failed" if check.again is None else f"{check.again:.2f}"
        interval = f"{check.interval[0]:.2f} to {check.interval[1]:.2f}"
        words = check.verdict + (f": {check.failure}" if check.failure else "")
        shown.add_row(check.cell.path.partition("/")[2], f"{check.stored:.2f}", again, interval, words)
    return shown
