"""What is done with a trained run: evaluate, predict, embed, energy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgde.cli.errors import friendly, on_a_run

if TYPE_CHECKING:
    from torch import Tensor

    from hgde.data import Dataset
    from hgde.pipeline import Fitted

Run = Annotated[Path, typer.Argument(help="Folder of a run made by `hgde train`.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Which seed of the run (default: its first).")]
Edges = Annotated[Path | None, typer.Option("--edges", help="Another graph: its table of edges.")]
Disk = Annotated[
    str | None,
    typer.Option(
        "--to-disk",
        metavar="METHOD",
        help="Projection of more than two dimensions to the disk: principal, horopca, stress, cosne.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for scripts.")]
Nodes = Annotated[Path | None, typer.Option("--nodes", help="Another graph: its table of nodes.")]
Partitioned = Annotated[
    Path | None, typer.Option("--partitioned", metavar="FOLDER", help="A graph partitioned by `hgde partition`.")
]
RankCount = Annotated[
    int | None, typer.Option("--ranks", min=1, help="Number of processes on this machine for a partition.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory", metavar="SIZE", help="On a partition: memory per rank, such as 8GiB (default: out of core)."
    ),
]


@friendly
@on_a_run
def evaluate(run: Run, seed: Seed = None, as_json: AsJson = False) -> None:
    """Score a trained run again on the parts of its own data."""
    from rich.console import Console
    from rich.table import Table

    fitted = _load(run, seed)
    parts = fitted.evaluate()
    problem = fitted.training_data().problem
    if as_json:
        print_json({"run": str(run), "split_hash": problem.split_hash, "scores": parts})
        return
    table = Table("score", *parts, title=f"{fitted.training_data().dataset.name}, split {problem.split_hash[:12]}")
    for name in next(iter(parts.values())):
        table.add_row(name, *(f"{scores[name]:.4f}" for scores in parts.values()))
    Console().print(table)


@friendly
@on_a_run
def predict(
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="Table to write: .csv, .tsv, .parquet or .npz.")] = Path(
        "predictions.csv"
    ),
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="For a run on links: table of node pairs (source,target) to score.")
    ] = None,
    edges: Edges = None,
    nodes: Nodes = None,
    partitioned: Partitioned = None,
    ranks: RankCount = None,
    memory: Memory = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Predict every node (or given links) and write a table, with a JSON file next to it that records its origin.

    Without [bold]--edges[/bold] the graph is the run's own copy, and each row has its truth and part. Columns of
    another table of nodes are matched by name.
    """
    from hgde.cli.partition import chosen_partition, use_partition
    from hgde.pipeline import write_table

    folder = chosen_partition(run, partitioned, edges)
    if folder is not None:
        use_partition(run, seed, folder, ranks, memory, out, "predictions", pairs, as_json)
        return
    fitted = _load(run, seed)
    dataset = _other_graph(fitted, edges, nodes)
    wanted = None if pairs is None else _read_pairs(pairs, dataset or fitted.training_data().dataset)
    table = fitted.predict(dataset, wanted)
    beside = write_table(out, table, _about(fitted, run, dataset))
    rows = len(next(iter(table.values())))
    if as_json:
        print_json({"rows": rows, "columns": list(table), "out": str(out), "about": str(beside)})
        return
    typer.echo(f"wrote {rows} rows to {out} (about them: {beside})")


@friendly
@on_a_run
def embed(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Table (.csv, .tsv, .parquet, .npz; default embedding.npz), or a graph with disk coordinates "
            "(.graphml, .gexf).",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="ball|lorentz|klein|half-space", help="Model of hyperbolic space for the coordinates."
        ),
    ] = None,
    to_disk: Disk = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            help="Also export for other programs: .graphml or .gexf (Gephi), or a folder for TensorBoard's projector.",
        ),
    ] = None,
    edges: Edges = None,
    nodes: Nodes = None,
    partitioned: Partitioned = None,
    ranks: RankCount = None,
    memory: Memory = None,
    seed: Seed = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Also draw it in the disk (.png, .svg, .pdf).")] = None,
) -> None:
    """Export the points of the embedding, with the space and its curvature.

    [bold]Examples[/bold]

      hgde embed RUN --to lorentz --out points.csv
      hgde embed RUN --to-disk stress --out disk.csv      two coordinates; prints the distortion
      hgde embed RUN --export graph.gexf                  for Gephi, with disk coordinates
      hgde embed RUN --export projector/                  for TensorBoard
    """
    from hgde.cli.embedding import embed_run
    from hgde.cli.partition import chosen_partition, use_partition

    folder = chosen_partition(run, partitioned, edges)
    if folder is not None:
        use_partition(run, seed, folder, ranks, memory, out or Path("embedding.parquet"), "points", None, False)
        return
    fitted = _load(run, seed)
    dataset = _other_graph(fitted, edges, nodes)
    check_method(to_disk)
    for line in embed_run(fitted, dataset, out, to, to_disk, export, plot, _about(fitted, run, dataset)):
        typer.echo(line)


@friendly
@on_a_run
def energy(
    run: Run,
    seed: Seed = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Also draw it (.png, .svg, .pdf).")] = None,
) -> None:
    """Print the Dirichlet energies along the diffusion of a trained run."""
    import torch
    from rich.console import Console
    from rich.table import Table

    from hgde.diffusion import dirichlet_energy, edge_energy
    from hgde.models import HGDE
    from hgde.pipeline import RunError

    fitted = _load(run, seed)
    model = fitted.learner.model
    if not isinstance(model, HGDE):
        raise RunError(f"{run} holds a {fitted.settings.model.name} model; only diffusion has an energy along time")
    features, graph, known = fitted.inputs()
    with torch.no_grad():
        times, states = model.trajectory(features, graph)
        values = dirichlet_energy(states, graph, model.manifold).tolist()
        edges = edge_energy(states, graph, model.manifold).tolist()
    table = Table("t", "degree-normalised", "over edges", "", title=f"Dirichlet energy, {known.name}")
    largest = max(*values, 1e-300)
    for t, value, other in zip(times, values, edges, strict=True):
        table.add_row(f"{t:g}", f"{value:.6g}", f"{other:.6g}", "█" * round(30 * value / largest))
    Console().print(table)
    if plot is not None:
        from hgde.report.energy import draw_energy

        draw_energy(plot, times, {model.block.method.name: values})
        typer.echo(f"drew {plot}")


def check_method(name: str | None) -> None:
    """Refuse a way to the disk that there is not."""
    from hgde.pipeline import RunError
    from hgde.report.projection import METHODS

    if name is not None and name not in METHODS:
        raise RunError(f"--to-disk must be one of {', '.join(METHODS)}, got {name!r}")


def print_json(content: Any) -> None:
    """One JSON object on standard output, ``null`` for what is no number."""
    import json
    import math

    def clean(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if isinstance(value, dict):
            return {str(name): clean(inner) for name, inner in value.items()}
        return [clean(inner) for inner in value] if isinstance(value, list | tuple) else value

    typer.echo(json.dumps(clean(content), default=str))


def _load(run: Path, seed: int | None) -> Fitted:
    """The model, and a warning where the data that its settings name has changed since."""
    from hgde.pipeline import RunError, RunFolder, load
    from hgde.pipeline.fit import check_unchanged

    fitted = load(run, seed)
    if "partition" in RunFolder(run).facts():  # it has no data of its own
        return fitted
    own = fitted.training_data().dataset
    try:
        check_unchanged(RunFolder(run), fitted.settings, own)
    except RunError as error:
        typer.secho(f"warning: {error}; the run's own copy is used", fg="yellow", err=True)
    return fitted


def _other_graph(fitted: Fitted, edges: Path | None, nodes: Path | None) -> Dataset | None:
    from hgde.data import open_dataset
    from hgde.pipeline import RunError

    if edges is None:
        if nodes is not None:
            raise RunError("--nodes was given without --edges; give the other graph's table of edges too")
        return None
    changes: dict[str, Any] = {"edges": str(edges), "nodes": None if nodes is None else str(nodes)}
    return open_dataset(fitted.settings.data.for_files(**changes), read_split=False)


def _read_pairs(path: Path, dataset: Dataset) -> Tensor:
    import numpy as np
    import torch

    from hgde.data import DataError
    from hgde.data.io.tables import read_table
    from hgde.pipeline.fitted import node_ids

    table = read_table(path, headerless=("source", "target"))
    if len(table.columns) < 2:
        raise DataError(f"{path} needs two columns (source,target), it has {len(table.columns)}")
    position = {str(name): number for number, name in enumerate(node_ids(dataset).tolist())}
    ends = []
    for column in list(table.columns)[:2]:
        names = [str(name) for name in table.columns[column].tolist()]
        unknown = next((row for row, name in enumerate(names) if name not in position), None)
        if unknown is not None:
            raise table.error(f"no node is called {names[unknown][:60]!r}", unknown, column)
        ends.append(np.array([position[name] for name in names], dtype=np.int64))
    return torch.from_numpy(np.stack(ends))


def _about(fitted: Fitted, run: Path, dataset: Dataset | None) -> dict[str, Any]:
    from hgde.pipeline import versions

    data = dataset or fitted.training_data().dataset
    return {
        "run": run.name,
        "data": data.name,
        "data_hash": data.hash,
        "is_training_data": dataset is None,
        "settings": fitted.settings.to_dict(),
        "versions": versions(),
    }
