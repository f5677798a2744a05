"""``hgde train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hgde.cli.errors import friendly
from hgde.cli.options import with_settings
from hgde.cli.use import AsJson, print_json
from hgde.pipeline import RunFolder, Settings, Summary
from hgde.pipeline.folder import RunError
from hgde.pipeline.remarks import Remarks, remarks
from hgde.sections import overlay


@friendly
@with_settings
def train(
    settings: Settings,
    given: dict[str, Any],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the run (default: runs/DATA-TASK).")] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="RUN", help="Resume the run in this folder; --epochs and --seeds may be raised."
        ),
    ] = None,
    partitioned: Annotated[
        Path | None,
        typer.Option("--partitioned", metavar="FOLDER", help="Train on a graph partitioned by `hgde partition`."),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", min=1, help="Number of processes on this machine for a partition.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Memory per rank on a partition, such as 8GiB; decides whether to work out of core.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the result only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on a registered data set or on your own graph, and score it on the test part.

    [bold]Examples[/bold]

      hgde train                                       a simulated epidemic
      hgde train --data cora --seeds 10                mean and spread of ten seeds
      hgde train --edges edges.csv --nodes nodes.csv   your own graph
      hgde train --data pubmed --task links            predict links
      hgde train --edges e.csv --nodes n.csv --task regression --label-column income
      hgde train --model gcn --data cora               another model, same split
      hgde train --resume runs/cora-nodes              resume an interrupted run
      hgde train --partitioned parts/big --ranks 4     a partitioned graph, on four processes
    """
    from hgde import pipeline
    from hgde.cli.partition import partition_of_run, train_on_partition
    from hgde.pipeline.progress import TrainingBar

    folder = resume or out or default_folder(settings)
    if partitioned is not None or (resume is not None and partition_of_run(resume) is not None):
        if resume is None and out is None:
            assert partitioned is not None
            folder = Path("runs") / partitioned.resolve().name
        raised = None if resume is None else _changes(_raised(given, out))
        train_on_partition(given, folder, partitioned, ranks, memory, raised, quiet, as_json)
        return
    if ranks is not None or memory is not None:
        named = "--ranks" if ranks is not None else "--memory"
        raise RunError(
            f"{named} is for partitions: make one first (hgde partition), then pass its folder (--partitioned)"
        )
    try:
        with TrainingBar(quiet=quiet or as_json) as bar:
            if resume is not None:
                result = pipeline.resume(folder, **_raised(given, out), reporter=bar)
            else:
                result = pipeline.fit(settings, folder, reporter=bar)
    except KeyboardInterrupt:
        typer.secho(f"resume with: hgde train --resume {folder}", fg="yellow", err=True)
        raise
    about = remarks(result)
    RunFolder(folder).write("remarks.json", about.to_dict())
    if as_json:
        print_json({"folder": str(folder), **result.summary.to_dict(), "remarks": about.to_dict()})
        return
    _print_result(result.summary, about, folder)


def _print_result(summary: Summary, about: Remarks, folder: Path) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    metric, scores = summary.metric.name, [summary.mean(), summary.std()]
    is_share = metric not in ("rmse", "mae", "log_loss")
    mean, deviation = (f"{100 * score:.1f}" if is_share else f"{score:.4g}" for score in scores)
    spread = f" ± {deviation}" if len(summary.outcomes) > 1 else ""
    sizes = ", ".join(f"{size:,} {_PARTS[name]}" for name, size in about.parts.items())
    classes = f"; {len(about.classes)} classes" if about.classes else ""
    console.print(f"{sizes}{classes}", style="dim", soft_wrap=True)
    console.print(f"test {metric}: [bold]{mean}{spread}{' %' if is_share else ''}[/bold]")
    if about.baselines:
        shown = {name: f"{100 * score:.1f}" if is_share else f"{score:.4g}" for name, score in about.baselines.items()}
        beside = ", ".join(f"{name} {score}" for name, score in shown.items())
        console.print(f"baselines: {beside}", style="dim", soft_wrap=True)
    for warning in about.warnings:
        console.print(f"warning: {warning}", style="yellow", soft_wrap=True, markup=False)
    console.print(
        f"kept in {folder} (use it: hgde predict {folder}; look at it: hgde report {folder})",
        soft_wrap=True,
        markup=False,
    )


_PARTS = {"train": "for training", "val": "for validation", "test": "for testing"}


def _raised(given: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """What may be given besides ``--resume``; everything else is refused, since the folder decides it."""
    allowed = {"epochs": ("training", "epochs"), "seeds": ("run", "seeds")}
    raised = {name: given.get(part, {}).get(key) for name, (part, key) in allowed.items()}
    rest = overlay({}, given)
    for part, key in allowed.values():
        if isinstance(rest.get(part), dict):
            rest[part] = {name: value for name, value in rest[part].items() if name != key}
    others = [f"{part}.{key}" for part, keys in rest.items() for key in (keys if isinstance(keys, dict) else ["name"])]
    if others or out is not None:
        named = ", ".join(others + (["--out"] if out is not None else []))
        raise RunError(f"a resumed run has the settings of its folder; leave out {named}")
    return raised


def _changes(raised: dict[str, Any]) -> dict[str, Any]:
    """What a resumed run may raise, by its path among the settings."""
    paths = {"epochs": "training.epochs", "seeds": "run.seeds"}
    return {paths[name]: value for name, value in raised.items() if value is not None}


def default_folder(settings: Settings) -> Path:
    data = settings.data
    name = Path(data.edges).name.partition(".")[0] if data.edges is not None else data.name
    model = "" if settings.model.name == "hgde" else f"-{settings.model.name}"
    return Path("runs") / f"{name}-{settings.task.name}{model}".replace(":", "-")
