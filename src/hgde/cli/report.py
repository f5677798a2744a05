"""``hgde report``: a page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hgde.cli.errors import friendly, on_a_run
from hgde.cli.use import Disk, Run, Seed, check_method

FORMATS = {
    "html": ("html", "figures"),
    "md": ("md", "figures"),
    "json": ("json",),
    "all": ("html", "md", "json", "figures"),
}


@friendly
@on_a_run
def report(
    run: Run,
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write it to (default: RUN/report).")] = None,
    form: Annotated[str, typer.Option("--format", metavar="html|md|json|all", help="Output format.")] = "all",
    seed: Seed = None,
    to_disk: Disk = None,
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines/--no-baselines", help="Also score baselines that need no training on the same split."
        ),
    ] = True,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
) -> None:
    """Write a page about a trained run: one HTML file that works offline, and the same contents as Markdown and JSON.

    It shows settings, data, scores next to baselines that need no training, curves, confusion matrix, calibration,
    energy, the interactive disk, the worst mistakes, warnings, and the command that repeats the run.
    """
    from hgde.pipeline import RunError
    from hgde.progress import working
    from hgde.report.from_run import report_of_run
    from hgde.report.page import write_report

    if form not in FORMATS:
        raise RunError(f"--format must be one of {', '.join(FORMATS)}, got {form!r}")
    check_method(to_disk)
    with working("looking at the run"):
        made = report_of_run(run, seed=seed, method=to_disk, baselines=baselines)
    with working("drawing"):
        files = write_report(made, out or run / "report", forms=FORMATS[form])
    typer.echo(made.summary)
    for warning in made.warnings:
        typer.secho(f"warning: {warning}", fg="yellow", err=True)
    for path in (files.html, files.markdown, files.json):
        if path.suffix[1:] in FORMATS[form]:
            typer.echo(f"wrote {path}")
    if open_it and "html" in FORMATS[form]:
        import webbrowser

        webbrowser.open(files.html.resolve().as_uri())
