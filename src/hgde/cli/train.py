"""``hgde train`` and what is done with a trained run: evaluate, predict, embed, energy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgde.cli.errors import friendly
from hgde.cli.options import with_settings
from hgde.settings import Settings

if TYPE_CHECKING:
    from hgde.data import Dataset
    from hgde.training.run import TrainedModel

Run = Annotated[Path, typer.Argument(help="Folder of a run made by `hgde train`.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Which seed of the run (default: its first).")]
Edges = Annotated[Path | None, typer.Option("--edges", help="Another graph: its table of edges.")]
Nodes = Annotated[Path | None, typer.Option("--nodes", help="Another graph: its table of nodes.")]


@friendly
@with_settings
def train(
    settings: Settings,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to keep the run in (default: runs/DATA-TASK).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the result only.")] = False,
) -> None:
    """Train HGDE on a registered data set or on your own graph, and score it on the test part.

    [bold]Examples[/bold]

      hgde train                                             a simulated epidemic, nothing to download
      hgde train --data cora --seeds 10                      mean and spread over ten seeds
      hgde train --edges edges.csv --nodes nodes.csv         your own graph
      hgde train --data pubmed --task links --width 16       predict links
      hgde train --data texas --split 3 --diffusivity local-global
    """
    from rich.console import Console

    from hgde.cli.progress import TrainingBar
    from hgde.training.run import train as train_run

    folder = out or default_folder(settings)
    with TrainingBar(quiet=quiet) as bar:
        summary = train_run(settings, folder, resume=resume, reporter=bar)
    spread = f" ± {100 * summary.std():.1f}" if len(summary.outcomes) > 1 else ""
    console = Console(highlight=False)
    console.print(f"test {summary.metric}: [bold]{100 * summary.mean():.1f}{spread} %[/bold]")
    console.print(f"kept in {folder} (settings.json, summary.json, seed-*/model.safetensors)")


def default_folder(settings: Settings) -> Path:
    name = Path(settings.edges).stem if settings.edges is not None else settings.data
    return Path("runs") / f"{name}-{settings.task}"


@friendly
def evaluate(run: Run, seed: Seed = None) -> None:
    """Score a trained run again on the validation and test part it was made with."""
    import torch
    from rich.console import Console
    from rich.table import Table

    from hgde.training.prepare import load_dataset, make_task
    from hgde.training.run import load_model

    trained = load_model(run, seed)
    dataset = load_dataset(trained.settings)
    task = make_task(dataset, trained.settings)
    task.to(torch.device("cpu"), getattr(torch, trained.settings.dtype))
    with torch.no_grad():
        outputs = task.outputs(trained.model)
        parts = {
            "validation": task.judge(task.validation_predictions(trained.model, outputs), task.val_labels),
            "test": task.test_scores(trained.model, outputs),
        }
    table = Table("part", "score", "value", title=f"{trained.meta['data']}, split {task.split_hash[:12]}")
    for part, scores in parts.items():
        for name, value in scores.items():
            table.add_row(part, name, f"{value:.4f}")
    Console().print(table)
    if dataset.hash != trained.meta["data_hash"]:
        typer.secho("warning: the data has changed since the run was trained", fg="yellow", err=True)


@friendly
def predict(
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="Table to write: .csv, .parquet or .npz.")] = Path(
        "predictions.csv"
    ),
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="For a run on links: table of node pairs (source,target) to score.")
    ] = None,
    edges: Edges = None,
    nodes: Nodes = None,
    seed: Seed = None,
) -> None:
    """Predict the class of every node (or the probability of given links) and write a table.

    Without [bold]--edges[/bold] the graph is the one of the run, unlabelled nodes included.
    """
    from hgde.training.export import predict_links, predict_nodes, write_table
    from hgde.training.run import RunError, load_model

    trained = load_model(run, seed)
    dataset = _dataset(trained, edges, nodes)
    if trained.meta["num_classes"] is None:
        if pairs is None:
            raise RunError("this run predicts links: name the pairs to score with --pairs FILE (source,target)")
        table = predict_links(trained, dataset, pairs)
    else:
        table = predict_nodes(trained, dataset)
    write_table(out, table, {"data": dataset.name, "model": trained.meta})
    typer.echo(f"wrote {len(next(iter(table.values())))} rows to {out}")


@friendly
def embed(
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv, .parquet or .npz.")] = Path("embedding.npz"),
    edges: Edges = None,
    nodes: Nodes = None,
    seed: Seed = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Also draw it in the disk (.png, .svg, .pdf).")] = None,
) -> None:
    """Export the points of the Poincaré ball, with curvature and model in the header."""
    from hgde.training.export import embed_nodes, write_table
    from hgde.training.run import load_model

    trained = load_model(run, seed)
    dataset = _dataset(trained, edges, nodes)
    z, table = embed_nodes(trained, dataset)
    c = trained.meta["curvatures"]["diffusion"]
    write_table(out, table, {"data": dataset.name, "space": "Poincaré ball", "curvature": -c, "model": trained.meta})
    typer.echo(f"wrote {z.shape[0]} points of the {z.shape[1]}-dimensional ball (curvature {-c:.4g}) to {out}")
    if plot is not None:
        from hgde.report.disk import draw_disk

        draw_disk(plot, z, c, dataset.graph, dataset.labels, dataset.class_names, title=f"{dataset.name}")
        typer.echo(f"drew {plot}")


@friendly
def energy(
    run: Run,
    seed: Seed = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Also draw it (.png, .svg, .pdf).")] = None,
) -> None:
    """Print the hyperbolic Dirichlet energy along the diffusion of a trained run."""
    import torch
    from rich.console import Console
    from rich.table import Table

    from hgde.diffusion import dirichlet_energy
    from hgde.training.prepare import load_dataset, make_task
    from hgde.training.run import load_model

    trained = load_model(run, seed)
    task = make_task(load_dataset(trained.settings), trained.settings)
    task.to(torch.device("cpu"), getattr(torch, trained.settings.dtype))
    model = trained.model
    with torch.no_grad():
        times, states = model.block.trajectory(model.encoder(task.features), task.graph)
        values = dirichlet_energy(states, task.graph, model.manifold.c).tolist()
    table = Table("t", "energy", "", title=f"Dirichlet energy, {trained.meta['data']}")
    largest = max(*values, 1e-300)
    for t, value in zip(times, values, strict=True):
        table.add_row(f"{t:g}", f"{value:.6g}", "█" * round(40 * value / largest))
    Console().print(table)
    if plot is not None:
        from hgde.report.energy import draw_energy

        draw_energy(plot, times, {trained.settings.method: values})
        typer.echo(f"drew {plot}")


def _dataset(trained: TrainedModel, edges: Path | None, nodes: Path | None) -> Dataset:
    from hgde.training.prepare import load_dataset

    settings = trained.settings
    if edges is not None:
        settings = settings.replace(edges=str(edges), nodes=None if nodes is None else str(nodes))
    return load_dataset(settings)


def register(app: typer.Typer) -> None:
    for command in (train, evaluate, predict, embed, energy):
        app.command()(command)
