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
    "steps": "hgde.data.preprocessing:STEPS",
}


@friendly
def list_entries(
    kind: Annotated[str, typer.Argument(metavar="|".join(KINDS), help="Which kind of thing.")],
    settings: Annotated[bool, typer.Option("--settings", help="Also show the settings of each entry.")] = False,
) -> None:
    """Name the entries of a kind, what each is, and who brought it."""
    from importlib import import_module

    from rich.console import Console
    from rich.table import Table

    from hgde.registry import RegistryError
    from hgde.sections import leaves, settings_of

    if kind not in KINDS:
        raise RegistryError(f"there is no list of {kind!r}; there are lists of {', '.join(KINDS)}")
    module, _, name = KINDS[kind].partition(":")
    registry: Any = getattr(import_module(module), name)
    table = Table("name", "what", "from", title=kind)
    table.columns[1].overflow = "fold"
    for entry_name, entry in registry.items():
        table.add_row(entry_name, _described(entry), registry.origin(entry_name))
        if settings:
            for leaf in leaves(settings_of(entry), lambda *_: []):
                table.add_row("", f"[dim]{leaf.path} = {leaf.default}: {leaf.help}[/dim]", "")
    Console(highlight=False).print(table)


def _described(entry: Any) -> str:
    """The first line of an entry's documentation, and what to cite."""
    text = getattr(entry, "title", None) or (entry.__doc__ or "").strip().partition("\n")[0]
    paper = getattr(entry, "paper", "")
    return f"{text} [dim]{paper}[/dim]" if paper else str(text)
