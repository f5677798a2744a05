"""``hgde info``: measure a graph."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from hgde.cli.errors import friendly
from hgde.cli.options import with_settings
from hgde.pipeline import Settings


@friendly
@partial(with_settings, sections=("data",), without=("protocol", "split"))
def info(
    settings: Settings,
    given: dict[str, Any],
    samples: Annotated[int, typer.Option("--samples", min=2, help="4-tuples drawn for the hyperbolicity.")] = 50_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the draw.")] = 0,
) -> None:
    """Measure a graph: counts, components, degrees, homophily, Gromov hyperbolicity.

    [bold]Examples[/bold]

      hgde info --data cora
      hgde info --edges edges.csv --nodes nodes.csv --label-column species
    """
    from rich.console import Console
    from rich.table import Table

    from hgde.data import DataError, open_dataset
    from hgde.graph.measures.hyperbolicity import hyperbolicity
    from hgde.graph.measures.statistics import graph_statistics

    if len({"name", "edges"} & set(given.get("data", {}))) != 1:
        raise DataError("name a data set with --data NAME, or your own graph with --edges FILE [--nodes FILE]")
    dataset = open_dataset(settings.data)
    measured = graph_statistics(dataset.graph, dataset.labels)
    delta = hyperbolicity(dataset.graph, samples, seed)
    labelled = 0 if dataset.labels is None else int((dataset.labels >= 0).sum())
    homophily = "-" if measured.edge_homophily is None else f"{measured.edge_homophily:.3f}"
    degrees = f"{measured.min_degree} to {measured.max_degree}, mean {measured.mean_degree:.2f}, median "
    how = "every" if delta.exact else f"{delta.samples:,} random"
    spread = "" if delta.exact else f" ({delta.low:.4f} to {delta.high:.4f} with 95 % confidence)"
    features = f"{dataset.num_features:,}"
    if dataset.meta.get("features") == "identity":
        features = "none (one-hot node numbers are used)"
    rows = {
        "nodes": f"{measured.num_nodes:,}",
        "edges (undirected, without loops)": f"{measured.num_edges:,}",
        "features": features,
        "classes": f"{dataset.num_classes} ({labelled:,} nodes labelled)",
        "components": f"{measured.num_components:,}, largest {measured.largest_component:,}",
        "isolated nodes": f"{measured.num_isolated:,}",
        "degrees": f"{degrees}{measured.median_degree:g}",
        "edge homophily": homophily,
        "Gromov delta": f"{'' if delta.exact else 'at least '}{delta.maximum:g}",
        "mean over 4-tuples": f"{delta.mean:.4f}{spread}, {how} 4-tuple{'' if delta.exact else 's'}",
    }
    if "graph" in dataset.meta:
        rows["graph"] = str(dataset.meta["graph"])
    if dataset.meta.get("unused_columns"):
        rows["columns not used"] = ", ".join(dataset.meta["unused_columns"])
    rows["hash"] = dataset.hash[:16]
    table = Table(show_header=False, title=dataset.name)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in rows.items():
        table.add_row(key, value)
    Console(highlight=False).print(table)
