"""``hgde bench``: every speed and memory figure beside its bar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hgde.cli.errors import friendly


@friendly
def bench(
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="flow, epoch, memory, scaling, bandwidth, ricci, pairs, depth, hyperbolic, compiled, "
            "attention, solvers, pubmed, backward, linear, local-global or links; may be given several times.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="Small sizes, to check that everything runs; the figures mean little.")
    ] = False,
    threads: Annotated[int, typer.Option(help="Threads of torch and of the kernels.", min=1)] = 2,
    output: Annotated[Path, typer.Option(help="Where to write the figures as JSON.")] = Path("bench.json"),
    plots: Annotated[
        Path | None,
        typer.Option(help="Measure and plot cost and roofline into this folder instead."),
    ] = None,
    before: Annotated[
        Path | None, typer.Option(help="Figures of an earlier run; a row worse by more than a tenth is marked.")
    ] = None,
) -> None:
    """Measure speed and memory against other packages on this machine, and compare with the targets."""
    import json
    from dataclasses import asdict

    import torch
    from rich.console import Console

    from hgde.bench import compare, describe_machine, run

    console = Console()
    own_threads = torch.get_num_threads()
    torch.set_num_threads(threads)
    machine = describe_machine(threads)
    load = machine["load_average"]
    if load and load[0] > 0.5:
        console.print(f"[yellow]load average {load[0]:.1f}: other work is running, the figures will be noisy[/yellow]")
    if plots is not None:
        from hgde.bench.plots import draw

        try:
            for path in draw(plots, quick):
                console.print(f"wrote {path}", highlight=False)
        finally:
            torch.set_num_threads(own_threads)
        return
    rows = []
    known = {} if before is None else compare.stored(before)
    try:
        for row in run(only, quick):
            rows.append(row)
            mark = "-" if quick else {True: "[green]met[/green]", False: "[red]SHORT[/red]", None: "-"}[row.met]
            value = "-" if row.value is None else f"{row.value:.2f} {row.unit}"
            bar = "" if row.bar is None else f"({'aim' if row.sense == 'report' else row.sense} {row.bar:g})"
            console.print(f"{mark} {row.what}: [bold]{value}[/bold] {bar}", highlight=False, soft_wrap=True)
            if row.name in known:
                console.print(f"  {compare.words(row, known[row.name])}", highlight=False, soft_wrap=True)
            if row.detail:
                console.print(f"  {row.detail}", style="dim", highlight=False, soft_wrap=True)
    finally:
        torch.set_num_threads(own_threads)
    output.parent.mkdir(parents=True, exist_ok=True)
    content = {"quick": quick, "machine": machine, "rows": [{**asdict(row), "met": row.met} for row in rows]}
    output.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    short = [row.name for row in rows if row.met is False]
    if quick:
        console.print(f"Quick run: bars are not checked. Figures in {output}.")
    elif short:
        console.print(f"[red]Short of the bar: {', '.join(short)}.[/red] Figures in {output}.")
    else:
        console.print(f"[green]Every bar that could be checked is met.[/green] Figures in {output}.")
