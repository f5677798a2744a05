"""``hgde compare``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from hgde.cli.errors import friendly
from hgde.cli.options import with_settings
from hgde.cli.use import AsJson, print_json
from hgde.cli.workers import Slurm, Workers, chosen_workers
from hgde.pipeline import Settings


@friendly
@partial(with_settings, sections=("data", "preprocessing", "task"))
def compare(
    settings: Settings,
    given: dict[str, Any],
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            help="Systems to compare, such as hgde,gcn,label-propagation (default: a small selection). "
            "gcn+: a GCN trained with what HGDE's presets add to training.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Settings tried per system; 1: presets only.")] = 8,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.1, help="Time limit for everything together, shared evenly.")
    ] = None,
    splits: Annotated[int | None, typer.Option("--splits", min=1, help="Number of splits (default: five).")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Seeds per split (default: five runs).")] = None,
    workers: Workers = None,
    slurm: Slurm = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the results (default: compare/DATA-TASK).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the table only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare models on a graph, and measure whether curvature helps.

    Same splits, same inputs, the same tuning budget for every system, scored on validation alone; then several runs and
    a paired test. Run the same command again to continue.

    [bold]Examples[/bold]

      hgde compare --edges edges.csv --nodes nodes.csv --minutes 5
      hgde compare --data cora --models hgde,hgde-flat,gcn --trials 1 --seeds 10
      hgde compare --data airport --task links
    """
    from rich.console import Console

    from hgde.cli.train import default_folder
    from hgde.experiments.compare import Request, compare
    from hgde.experiments.compare_report import fact_lines, footnotes, terminal, write_comparison
    from hgde.experiments.following import BarFollower
    from hgde.progress import Stages
    from hgde.report.command import command_of

    names = tuple(name.strip() for name in models.split(",") if name.strip()) if models else ()
    folder = out or Path("compare") / default_folder(settings).name
    crew = chosen_workers(workers, slurm, folder)
    request = Request(given, names, trials, minutes, splits, seeds, crew)
    with Stages(quiet=quiet or as_json) as stages:
        comparison = compare(request, folder, BarFollower(stages))
    more = {"models": ",".join(names) or None, "trials": trials, "minutes": minutes, "splits": splits, "seeds": seeds}
    files = write_comparison(comparison, folder, [command_of("compare", settings, more)])
    if as_json:
        print_json({"folder": str(folder), **comparison.to_dict()})
        return
    console = Console(highlight=False)
    for line in fact_lines(comparison.facts):
        console.print(line)
    console.print(terminal(comparison))
    for line in footnotes(comparison):
        console.print(f"- {line}", style="dim")
    console.print(f"\n[bold]{comparison.advice}[/bold]")
    console.print(f"the page: {files[-1]} (tables in the same folder)", soft_wrap=True)
    if not any(row.scores for row in comparison.rows):
        raise typer.Exit(1)
