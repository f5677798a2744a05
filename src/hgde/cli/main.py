"""The command line: each command parses, calls the library and prints. Heavy imports stay inside the commands."""

from __future__ import annotations

import typer

from hgde.cli import bench, data, demo, info, orders, reproduce, train

app = typer.Typer(
    name="hgde",
    help="Graph diffusion in hyperbolic space: train on your own graph, embed, predict, and take the solvers apart.\n\n"
    "Start with [bold]hgde demo[/bold], then [bold]hgde train --help[/bold].",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (demo, train, info, data, orders, reproduce, bench):
    module.register(app)


def run() -> None:
    app()
