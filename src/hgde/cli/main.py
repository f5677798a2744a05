"""The command line: each command parses, calls the library and prints. Heavy imports stay inside the commands."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="hgde",
    help="Graph diffusion in hyperbolic space: train, evaluate, embed, and take the solvers apart.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def run() -> None:
    app()
