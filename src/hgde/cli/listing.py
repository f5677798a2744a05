"""``hgde list``: what there is by name, built in or brought by plug-ins."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hgde.cli.errors import friendly

KINDS = {
    "models": "hgde.models.base:MODELS",
    "diffusivities": "hgde.diffusion:DIFFUSIVITIES",
    "solvers": "hgde.solvers:SOLVERS",
    "spaces": "hgde.geometry:SPACES",
    "tasks": "hgde.tasks:TASKS",
    "metrics": "hgde.tasks:METRICS",
    "decoders": "hgde.tasks.decoders:DECODERS",
    "heuristics": "hgde.tasks.heuristics:HEURISTICS",
    "datasets": "hgde.data:DATASETS",
    "steps": "hgde.data.steps:STEPS",
    "baselines": "hgde.tasks.baselines:BASELINES",
}
PRESETS = "presets"


@friendly
def list_entries(
    kind: Annotated[str, typer.Argument(metavar="|".join((*KINDS, PRESETS)), help="Kind of entry.")],
    settings: Annotated[bool, typer.Option("--settings", help="Also show the settings of each entry.")] = False,
) -> None:
    """List the entries of a kind, with a description and their origin."""
    from importlib import import_module

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from hgde.registry import RegistryError
    from hgde.sections import leaves, settings_of

    if kind == PRESETS:
        _list_presets()
        return
    if kind not in KINDS:
        raise RegistryError(f"unknown kind {kind!r}; choose one of {', '.join((*KINDS, PRESETS))}")
    module, _, name = KINDS[kind].partition(":")
    registry: Any = getattr(import_module(module), name)
    table = Table("name", "what", "from", title=kind)
    table.columns[1].overflow = "fold"
    for entry_name, entry in registry.items():
        table.add_row(entry_name, _described(entry), registry.origin(entry_name))
        if settings:
            for leaf in leaves(settings_of(entry), lambda *_: []):
                table.add_row("", f"[dim]{escape(f'{leaf.path} = {leaf.default}: {leaf.help}')}[/dim]", "")
    Console(highlight=False).print(table)


def _list_presets() -> None:
    """The presets of every model that has some, with what they set."""
    from rich.console import Console
    from rich.table import Table

    from hgde.models.base import MODELS

    table = Table("model", "preset", "sets", title=PRESETS)
    table.columns[2].overflow = "fold"
    for model, entry in MODELS.items():
        for number, (name, sections) in enumerate(entry.presets.items()):
            values = [f"{section}.{key}={value}" for section, inner in sections.items() for key, value in inner.items()]
            table.add_row("" if number else model, name, ", ".join(values))
    Console(highlight=False, markup=False).print(table)


def _described(entry: Any) -> str:
    """The first line of an entry's documentation without its markup, and what to cite."""
    from rich.markup import escape

    text = getattr(entry, "title", None) or (entry.__doc__ or "").strip().partition("\n")[0].replace("``", "")
    paper = getattr(entry, "paper", "")
    return f"{escape(text)} [dim]{escape(paper)}[/dim]" if paper else escape(text)
