"""``hgde demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hgde.cli.errors import friendly


@friendly
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for tables, pictures and the run.")] = Path("hgde-demo"),
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes (default: the cores).")] = None,
) -> None:
    """A simulated epidemic and a taxonomy, made on the spot: HGDE beside simpler models, three seeds, in a minute."""
    import os

    from rich.console import Console

    from hgde.experiments.compare_report import fact_lines, terminal
    from hgde.experiments.demo import run_demo

    console, progress = Console(highlight=False), Console(stderr=True, highlight=False)
    result = run_demo(out, workers=workers or os.cpu_count() or 1, say=lambda words: progress.print(words))
    for title, comparison in result.comparisons.items():
        console.print(f"\n[bold]{title}[/bold]: {fact_lines(comparison.facts)[0] if comparison.facts else ''}")
        console.print(terminal(comparison))
        console.print(comparison.advice)
    console.print(f"\n{result.seconds:.0f} s. Wrote:")
    for file in result.files:
        console.print(f"  {file}", soft_wrap=True)
    console.print("Next: hgde train --edges edges.csv --nodes nodes.csv, then hgde compare on the same files.")
