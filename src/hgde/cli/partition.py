"""``hgde partition``, and what the other commands do on a partition."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgde.cli.errors import friendly
from hgde.cli.options import with_settings
from hgde.cli.use import AsJson, print_json
from hgde.pipeline import RunError, RunFolder, Settings, Summary

if TYPE_CHECKING:
    from torch import Tensor

    from hgde.distributed import Partition, Ranks
    from hgde.distributed.predicting import Predictor


def _partition(
    settings: Settings,
    given: dict[str, Any],
    out: Annotated[Path, typer.Option("--out", help="Folder to write the partition to.")],
    pieces: Annotated[
        int | None,
        typer.Option(
            "--pieces", min=1, help="Number of pieces (default: 12 or more), which limits the number of ranks."
        ),
    ] = None,
    method: Annotated[str, typer.Option("--method", help="Partitioning method: metis, contiguous, random.")] = "metis",
    ricci: Annotated[
        float | None,
        typer.Option("--ricci", help="Also store Ricci curvatures with this alpha, for the diffusivity ricci."),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Read the tables in chunks: for graphs larger than memory.")
    ] = False,
    width: Annotated[int, typer.Option("--for-width", min=1, help="Width that costs are printed for.")] = 16,
    evaluations: Annotated[
        int, typer.Option("--for-time", min=1, help="Evaluations of the flow per epoch that costs are printed for.")
    ] = 8,
    as_json: AsJson = False,
) -> None:
    """Partition a graph into pieces on disk, for training on several ranks or beyond memory.

    Data, preprocessing and task are fixed here; model and training are chosen when a run starts on the folder.

    [bold]Examples[/bold]

      hgde partition --data pubmed --out parts/pubmed
      hgde partition --edges e.parquet --nodes n.parquet --pieces 48 --out parts/mine
      hgde train --partitioned parts/pubmed --ranks 4
      torchrun --nproc-per-node 4 -m hgde train --partitioned parts/pubmed
    """
    from hgde.distributed import make_partition
    from hgde.pipeline import prepare

    if stream:
        from hgde.distributed.streaming import stream_partition

        if ricci is not None:
            raise RunError("--ricci needs the whole graph in memory; leave out --stream")
        partition = stream_partition(out, settings, pieces, method)
    else:
        partition = make_partition(out, prepare(settings), settings, pieces, method, ricci)
    show_partition(partition, width, evaluations, as_json)


partition = friendly(with_settings(_partition, sections=("data", "preprocessing", "task", "run")))


def show_partition(partition: Partition, width: int, evaluations: int, as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from hgde.distributed.costs import costs_of

    rows = costs_of(partition, width, evaluations)
    if as_json:
        print_json({"folder": str(partition.path), "hash": partition.hash, "costs": rows})
        return
    console = Console(highlight=False)
    console.print(
        f"{partition.num_nodes:,} nodes, {partition.num_edges:,} directed edges in {partition.num_pieces} pieces "
        f"({partition.facts['method']})"
    )
    table = Table("ranks", "H/N", "balance", "bytes per epoch", "memory per rank")
    for row in rows:
        table.add_row(
            str(row["ranks"]),
            f"{row['ratio']:.2f}",
            f"{row['balance']:.2f}",
            size_in_words(row["bytes_per_epoch"]),
            size_in_words(row["memory_per_rank"]),
        )
    console.print(table)
    console.print(
        f"for width {width} and {evaluations} evaluations of the flow; balance is the largest rank's work over the mean"
    )
    console.print(f"use it: hgde train --partitioned {partition.path} --ranks 2", soft_wrap=True, markup=False)


def size_in_words(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1024
    return f"{size:.3g} TiB"


def train_on_partition(
    given: dict[str, Any],
    folder: Path,
    partitioned: Path | None,
    ranks: int | None,
    memory: str | None,
    raised: dict[str, Any] | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """``hgde train`` on a partition: start the ranks, or be one of them. ``raised``: what a resumed run changes."""
    from hgde import distributed
    from hgde.distributed.memory import parse_size
    from hgde.pipeline.progress import TrainingBar

    if start_ranks(ranks):
        return
    limit = None if memory is None else parse_size(memory)
    group = distributed.join()
    with TrainingBar(quiet=quiet or as_json or not group.is_first) as bar:
        if raised is not None:
            run = distributed.resumed_run(folder, group, raised, bar, partitioned, limit)
        else:
            assert partitioned is not None
            run = distributed.start_run(distributed.Partition.open(partitioned), given, group, folder, bar, limit)
        if group.is_first and not quiet:
            typer.echo(run.way.words, err=True)
        summary = run.train(resume=raised is not None)
    if group.is_first:
        _print_summary(summary, folder, run.partition, group, as_json)
    group.close()


def start_ranks(ranks: int | None) -> bool:
    """Start this command as several processes and wait for them; ``False`` where this process is one of them."""
    from hgde.distributed.launch import die_with_parent, is_launched, launch

    if ranks is not None and ranks > 1 and not is_launched():
        launch(without_option(sys.argv[1:], "--ranks"), ranks)
        return True
    die_with_parent()
    return False


def chosen_partition(run: Path, partitioned: Path | None, edges: Path | None) -> Path | None:
    """The partition to use a run on: the one named, or the run's own unless another graph is named."""
    if partitioned is not None and edges is not None:
        raise RunError("--partitioned and --edges name two graphs; give one of them")
    return partitioned if partitioned is not None or edges is not None else partition_of_run(run)


def use_partition(
    run: Path, seed: int | None, folder: Path, ranks: int | None, memory: str | None, out: Path, what: str,
    pairs: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """``hgde predict`` and ``hgde embed`` on a partition."""
    from hgde import distributed
    from hgde.distributed.flow import hgde_of
    from hgde.distributed.memory import choose_way, parse_size
    from hgde.distributed.predicting import Predictor
    from hgde.pipeline import load

    if start_ranks(ranks):
        return
    group, fitted, partition = distributed.join(), load(run, seed), distributed.Partition.open(folder)
    limit = None if memory is None else parse_size(memory)
    way = choose_way(partition, group.size, hgde_of(fitted.learner), limit, learns=False)
    if group.is_first and memory is not None:
        typer.echo(way.words, err=True)
    with way.scratch(out.parent) as scratch:
        predictor = Predictor(fitted, partition, group, scratch)
        if what == "points":
            rows = predictor.write_points(out)
        elif pairs is not None:
            rows = predictor.write_pairs(out, _pairs_of(pairs, predictor))
        else:
            rows = predictor.write_predictions(out)
    if group.is_first and as_json:
        print_json({"rows": rows, "out": str(out), "about": str(out.with_suffix(".json"))})
    elif group.is_first:
        typer.echo(f"wrote {rows} rows to {out} (about them: {out.with_suffix('.json')})")
    group.close()


def _pairs_of(path: Path, predictor: Predictor) -> Tensor:
    import numpy as np
    import torch

    from hgde.data.io.tables import read_table

    table = read_table(path, headerless=("source", "target"))
    if len(table.columns) < 2:
        raise RunError(f"{path} needs two columns (source,target), it has {len(table.columns)}")
    ends = [predictor.numbers_of(np.asarray(table.columns[name])) for name in list(table.columns)[:2]]
    return torch.from_numpy(np.stack(ends))


def _print_summary(summary: Summary, folder: Path, partition: Partition, group: Ranks, as_json: bool) -> None:
    if as_json:
        print_json({"folder": str(folder), "ranks": group.size, **summary.to_dict()})
        return
    spread = f" ± {summary.std():.4f}" if len(summary.outcomes) > 1 else ""
    typer.echo(f"test {summary.metric.name}: {summary.mean():.4f}{spread}")
    many = "one rank" if group.size == 1 else f"{group.size} ranks"
    typer.echo(f"kept in {folder} ({many}; use it: hgde predict {folder} --partitioned {partition.path})")


def without_option(arguments: list[str], name: str) -> list[str]:
    """Arguments of the command line without an option and its value."""
    kept = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument == name:
            skip = True
        elif not argument.startswith(f"{name}="):
            kept.append(argument)
    return kept


def partition_of_run(folder: Path) -> Path | None:
    """The partition a run was trained on, ``None`` for a run on a whole graph."""
    run = RunFolder(folder)
    named = run.facts().get("partition") if run.exists else None
    return Path(named) if isinstance(named, str) else None
