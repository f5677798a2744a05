"""``hgde tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hgde.cli.errors import friendly
from hgde.cli.options import with_settings
from hgde.cli.use import AsJson, print_json
from hgde.cli.workers import Slurm, Workers, chosen_workers
from hgde.pipeline import Settings


@friendly
@with_settings
def tune(
    settings: Settings,
    given: dict[str, Any],
    trials: Annotated[int | None, typer.Option("--trials", min=1, help="Number of settings to try.")] = None,
    minutes: Annotated[float | None, typer.Option("--minutes", min=0.1, help="How long to search.")] = None,
    folds: Annotated[
        int, typer.Option("--folds", min=1, help="Number of splits or seeds that a trial is averaged over.")
    ] = 2,
    workers: Workers = None,
    slurm: Slurm = None,
    search_space: Annotated[
        Path | None, typer.Option("--search-space", help="A search space of your own (TOML) instead of the model's.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the results (default: tune/DATA-TASK).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the result only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search for the best settings on your data, scored on the validation part alone, and write them to a file.

    Settings given as options are fixed; the others are searched. Run the same command again to continue.

    [bold]Examples[/bold]

      hgde tune --edges edges.csv --nodes nodes.csv --minutes 10
      hgde tune --data cora --model gcn --trials 30
      hgde train --settings tune/cora-nodes/settings.toml
    """
    import shlex

    from rich.console import Console
    from rich.table import Table

    from hgde.cli.train import default_folder
    from hgde.experiments.following import BarFollower
    from hgde.experiments.tune import tune
    from hgde.progress import Stages
    from hgde.report.command import command_of

    console = Console(highlight=False)
    folder = out or Path("tune") / default_folder(settings).name
    wanted = trials if trials is not None or minutes is not None else 20
    more = {"trials": trials, "minutes": minutes, "folds": folds, "search_space": search_space}
    with Stages(quiet=quiet or as_json) as stages:
        tuned = tune(
            given,
            folder,
            trials=wanted,
            minutes=minutes,
            folds=folds,
            workers=chosen_workers(workers, slurm, folder),
            space=search_space,
            follower=BarFollower(stages),
            reproduce=[
                command_of("tune", settings, more),
                f"hgde train --settings {shlex.quote(str(folder / 'settings.toml'))}",
            ],
        )
    best = tuned.found.best
    assert best is not None
    files = [str(file) for file in tuned.files]
    if as_json:
        print_json({"metric": tuned.metric, "score": best.score, "trials": len(tuned.found.trials), "files": files})
        return
    if tuned.found.importances:
        table = Table(title="what mattered", box=None, title_justify="left")
        for name in ("setting", "importance", "best value"):
            table.add_column(name, overflow="fold", no_wrap=name == "importance")
        for name, share in tuned.found.importances.items():
            table.add_row(name, f"{share:.2f}", str(best.changes.get(name, "as at the start")))
        console.print(table)
    start = tuned.found.trials[0].score
    console.print(
        f"best of {len(tuned.found.trials)} trials: cross-fitted {tuned.metric} [bold]{best.score:.4f}[/bold]"
        + (f" (start: {start:.4f})" if start is not None else "")
    )
    console.print("wrote " + ", ".join(files), soft_wrap=True)
    console.print(f"use it: hgde train --settings {folder / 'settings.toml'}", soft_wrap=True)
