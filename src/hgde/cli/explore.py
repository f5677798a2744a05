"""``hgde explore``: the disk of a run as a page of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hgde.cli.errors import friendly, on_a_run
from hgde.cli.use import Disk, Run, Seed, check_method


@friendly
@on_a_run
def explore(
    run: Run,
    out: Annotated[Path | None, typer.Option("--out", help="Page to write (default: RUN/explore.html).")] = None,
    seed: Seed = None,
    to_disk: Disk = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
) -> None:
    """Write the embedding as an interactive page: drag, zoom, search, select, play the diffusion.

    It is one file that needs no network.
    """
    from hgde.files import write_atomically
    from hgde.progress import working
    from hgde.report.from_run import explorer_of_run
    from hgde.report.page import render_explorer

    check_method(to_disk)
    with working("looking at the run"):
        title, view, energy = explorer_of_run(run, seed=seed, method=to_disk)
    path = out or run / "explore.html"
    write_atomically(path, render_explorer(title, view, energy).encode(errors="replace"))
    typer.echo(f"{view.positions.shape[1]:,} nodes, {view.method}" + _quality(dict(view.quality)))
    typer.echo(f"wrote {path}" + ("" if open_it else " (open it in a browser, or add --open)"))
    if open_it:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())


def _quality(measured: dict[str, float]) -> str:
    return "".join(f"; {name} {value:.3f}" for name, value in measured.items())
