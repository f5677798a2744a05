"""Who does the work of commands that run many jobs: processes of this machine, or a Slurm cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hgde.experiments.jobs import Crew

Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Number of processes (default: number of cores), or of Slurm jobs."),
]
Slurm = Annotated[
    str | None,
    typer.Option(
        "--slurm", metavar="OPTIONS", help="Run on a Slurm cluster, with options such as partition=cpu,mem_gb=8."
    ),
]


def chosen_workers(workers: int | None, slurm: str | None, folder: Path) -> int | Crew:
    """How many processes, or a crew on a cluster whose files lie in ``folder``."""
    count = workers or os.cpu_count() or 1
    if slurm is None:
        return count
    from hgde.experiments.cluster import ClusterCrew, parse_options

    return ClusterCrew(count, folder / "slurm", parse_options(slurm))
