"""``hgde demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hgde.cli.errors import friendly
from hgde.cli.loading import loading
from hgde.cli.use import AsJson, print_json


@friendly
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the page, tables and runs.")] = Path("hgde-demo"),
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Number of processes (default: number of cores).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the result only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train HGDE and simpler models on a simulated epidemic and a taxonomy, three seeds each, and write a page.

    Takes well under a minute. If it is interrupted, run the same command again to continue.
    """
    import os

    from rich.console import Console

    from hgde.experiments.demo_kernels import begin_to_compile
    from hgde.experiments.jobs import CAN_FORK, Crew, one_thread

    with one_thread(), Crew((workers or os.cpu_count() or 1) - 1) as crew:
        begin_to_compile()
        if not CAN_FORK:
            crew.begin()
        with loading():
            from hgde.experiments.demo import count_runs, load_libraries, run_demo
            from hgde.progress import bar

            load_libraries()
        crew.begin()
        with bar("demo: runs", count_runs(), quiet=quiet or as_json) as advance:
            result = run_demo(out, crew=crew, on_run=lambda done: advance())
    if as_json:
        print_json(result.to_dict())
        return
    from hgde.experiments.compare_report import fact_lines, terminal

    console = Console(highlight=False)
    for title, comparison in result.comparisons.items():
        facts = fact_lines(comparison.facts)
        console.print(f"[bold]{title}[/bold]: {facts[0].partition(': ')[2] if facts else ''}")
        console.print(terminal(comparison))
        console.print(f"{comparison.advice}\n")
    console.print("Few epochs, untuned settings; to choose a model for your own graph, use [bold]hgde compare[/bold].")
    console.print(f"Tables and data are in {out}, which was made in {result.seconds:.0f} s.", soft_wrap=True)
    console.print("Your own graph: hgde train --edges edges.csv --nodes nodes.csv", soft_wrap=True)
    console.print(
        f"The taxonomy in the disk, root at the centre, leaves near the boundary: open [bold]{result.page}[/bold]"
    )
