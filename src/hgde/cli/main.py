"""The command line. Each command is a module that parses, calls the library and prints; it is imported when called."""

from __future__ import annotations

import inspect
import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from hgde.cli.loading import loading

COMMANDS = {
    "demo": ("hgde.cli.demo:demo", "HGDE and simpler models on two generated graphs."),
    "train": ("hgde.cli.train:train", "Train on a registered data set or your own graph."),
    "partition": ("hgde.cli.partition:partition", "Partition a graph for training on several ranks or beyond memory."),
    "evaluate": ("hgde.cli.use:evaluate", "Score a trained run again."),
    "predict": ("hgde.cli.use:predict", "Predict nodes or links and write a table."),
    "embed": ("hgde.cli.use:embed", "Export the embedding of a trained run."),
    "report": ("hgde.cli.report:report", "A page about a trained run: scores, figures, the disk."),
    "explore": ("hgde.cli.explore:explore", "An interactive disk of a trained run."),
    "energy": ("hgde.cli.use:energy", "Dirichlet energy along the diffusion of a trained run."),
    "info": ("hgde.cli.info:info", "Measure a graph: sizes, homophily, hyperbolicity."),
    "list": ("hgde.cli.listing:list_entries", "List the available models, diffusivities, solvers, metrics, ..."),
    "data": ("hgde.cli.data:data", "List, describe and fetch data sets."),
    "orders": ("hgde.cli.orders:orders", "Declared and measured order of every solver."),
    "compare": ("hgde.cli.compare:compare", "Compare several models on a graph."),
    "tune": ("hgde.cli.tune:tune", "Search for the best settings on your data."),
    "reproduce": ("hgde.cli.reproduce:reproduce", "Reproduce the published tables."),
    "bench": ("hgde.cli.bench:bench", "Speed and memory ratios against their targets."),
}


class _Lazy(TyperCommand):
    """Stands for a command until it is called; ``hgde --help`` therefore imports none of them."""

    def __init__(self, name: str, place: str, help: str) -> None:
        super().__init__(name, help=help, callback=None)
        self.place = place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        module, _, function = self.place.partition(":")
        with loading():
            target = getattr(import_module(module), function)
        if isinstance(target, typer.Typer):
            command = get_command(target)
        else:
            app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
            options = {"help_option_names": ["-h", "--help"]}
            app.command(self.name, help=_reflowed(target.__doc__ or ""), context_settings=options)(target)
            command = get_command(app)
        return command.make_context(info_name, args, parent=parent, **extra)


def _reflowed(text: str) -> str:
    """Each paragraph in one line, for the terminal to break; indented ones (examples) as they are written."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith(" ") else " ".join(part.split("\n")) for part in paragraphs)


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _Lazy(cmd_name, *COMMANDS[cmd_name]) if cmd_name in COMMANDS else None


app = typer.Typer(
    name="hgde",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from hgde import __version__

        typer.echo(f"hgde {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Graph diffusion in hyperbolic space: train on your own graph, embed, predict, and take the solvers apart.

    Start with [bold]hgde demo[/bold], then [bold]hgde train --help[/bold].
    """


def run() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows ASCII alone shows a question mark instead of what it lacks.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
