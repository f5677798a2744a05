"""``hgde orders``: declared and measured order of every solver."""

from __future__ import annotations

from typing import Annotated

import typer

from hgde.cli.errors import friendly


@friendly
def orders(
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Only this method; may be given several times.")
    ] = None,
) -> None:
    """Measure the order of every solver on several spaces and compare it with the declared one."""
    from rich.console import Console
    from rich.table import Table

    from hgde.progress import bar
    from hgde.solvers.orders import measure_order, standard_problems
    from hgde.solvers.registry import SOLVERS, resolve

    names = [resolve(name).name for name in method] if method else SOLVERS.names()
    problems = standard_problems()
    table = Table(title="order of convergence, measured by halving the step")
    table.add_column("method")
    table.add_column("declared", justify="right")
    for space in problems:
        table.add_column(space, justify="right")
    wrong: list[str] = []
    console = Console()
    with bar("measuring", len(names) * len(problems)) as advance:
        for name in names:
            row = []
            for space, problem in problems.items():
                measured = measure_order(name, problem, space)
                row.append(f"{measured.order:.2f}" if measured.agrees else f"[red]{measured.order:.2f}[/red]")
                if not measured.agrees:
                    wrong.append(f"{name} on {space}: declared {measured.declared}, measured {measured.order:.2f}")
                advance()
            table.add_row(name, str(resolve(name).order), *row)
    console.print(table)
    for line in wrong:
        console.print(f"[red]{line}[/red]")
    if wrong:
        raise typer.Exit(1)
    console.print("Every measured order is within 0.2 of the declared one.")
