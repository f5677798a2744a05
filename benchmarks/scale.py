"""Partitions at size: how long an epoch takes, what it holds and what it sends, and what more ranks would do.

python benchmarks/scale.py large FOLDER                       100 million edges by hgde's own commands, 6 GiB included
python benchmarks/scale.py speedup FOLDER                     two ranks against one process, by turns
python benchmarks/scale.py make FOLDER --nodes 1e6            a graph with a power law, about ten edges per node
python benchmarks/scale.py epochs FOLDER                      one process
torchrun --nproc-per-node 2 benchmarks/scale.py epochs FOLDER two ranks
python benchmarks/scale.py epochs FOLDER --disk               out of core
python benchmarks/scale.py whole FOLDER                       the same graph, not cut, for comparison
python benchmarks/scale.py simulate figure.png --ns-per-edge 130
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from measuring import hgde, run_measured

from hgde import make_settings, randomness
from hgde.distributed import Partition, join
from hgde.distributed.crew import Crew
from hgde.distributed.fit import stored_inputs
from hgde.distributed.flow import embed, scale_encoder
from hgde.distributed.scratch import Scratch
from hgde.distributed.trainer import PartitionedTrainer
from hgde.graph import Graph
from hgde.models.base import Shape
from hgde.pipeline.prepare import build_learner
from hgde.tasks import Part, Problem
from hgde.training.trainer import Trainer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
CHUNK = 500_000
Folder = Annotated[Path, typer.Argument(help="Folder of the partition.")]


def settings():
    model = {"name": "hgde", "width": 16, "time": 4.0}
    return make_settings({"model": model, "training": {"epochs": 1000}, "preset": "none"})


def power_law_chunks(nodes: int, per_node: float, seed: int):
    """Edges on a ring: node degrees by a power law (exponent 2.5), the farther the larger the degree."""
    random = np.random.default_rng(seed)
    for first in range(0, nodes, CHUNK):
        count = min(CHUNK, nodes - first)
        stubs = np.minimum(random.pareto(1.5, count) * per_node / 4 + 1, nodes // 50).astype(np.int64)
        source = np.repeat(np.arange(first, first + count), stubs)
        reach = np.minimum(40.0 * np.repeat(stubs, stubs), nodes // 2)
        jump = np.ceil(np.exp(random.random(len(source)) * np.log(reach))).astype(np.int64)
        jump *= random.integers(0, 2, len(jump)) * 2 - 1
        yield source, (source + jump) % nodes


def write_tables(folder: Path, nodes: int, degree: float, seed: int) -> tuple[Path, Path]:
    """A generated graph as Parquet tables of edges and nodes, written in chunks: four classes, sixteen features."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    random, parts = np.random.default_rng(seed), np.array(["train", "val", "test"])
    edge_type = pa.schema([("source", pa.int32()), ("target", pa.int32())])
    with pq.ParquetWriter(folder / "edges.parquet", edge_type) as out:
        for source, target in power_law_chunks(nodes, degree, seed):
            out.write_table(pa.table([source.astype(np.int32), target.astype(np.int32)], schema=edge_type))
    columns = [("id", pa.int32()), ("label", pa.string()), ("split", pa.string())]
    node_type = pa.schema(columns + [(f"x{k}", pa.float32()) for k in range(16)])
    with pq.ParquetWriter(folder / "nodes.parquet", node_type) as out:
        for first in range(0, nodes, CHUNK):
            ids = np.arange(first, min(first + CHUNK, nodes))
            label = ids * 4 // nodes
            features = random.standard_normal((len(ids), 16), dtype=np.float32)
            features[:, :4] += np.eye(4, dtype=np.float32)[label]
            part = parts[(ids % 10 > 5).astype(int) + (ids % 10 > 7)]
            columns = [ids.astype(np.int32), np.array(list("abcd"))[label], part, *features.T]
            out.write_table(pa.table(list(map(pa.array, columns)), schema=node_type))
    return folder / "edges.parquet", folder / "nodes.parquet"


@app.command()
def make(
    folder: Folder, nodes: float = 1e6, degree: float = 10.0, method: str = "contiguous", seed: int = 0
) -> dict[str, Any]:
    """Generate a graph as tables and cut it in chunks; nodes lie on a ring, so contiguous pieces are good ones."""
    work = folder.with_name(f"{folder.name}-tables")
    began = time.perf_counter()
    edges, table = write_tables(work, int(nodes), degree, seed)
    generated = time.perf_counter() - began
    given = ("--edges", edges, "--nodes", table, "--split-column", "split", "--method", method)
    taken = run_measured(hgde("partition", "--stream", *given, "--out", folder))
    shutil.rmtree(work)
    print(taken.pop("said"))
    print(
        f"cut in {taken['seconds']:.0f} s ({taken['cpu_seconds']:.0f} s of CPU), {taken['resident'][0] / 2**30:.2g} GiB"
    )
    return taken | {"generating_seconds": generated}


class _MallocInfo(ctypes.Structure):
    """``struct mallinfo2`` of the GNU C library."""

    names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = tuple((name, ctypes.c_size_t) for name in names)


def in_use() -> int:
    """Bytes that were allocated and not yet freed, 0 where the C library does not say."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return 0
    ask.restype = _MallocInfo
    said = ask()
    return int(said.uordblks + said.hblkhd)


class Peak:
    """The largest anonymous resident size, sampled: pages of mapped files are the system's to drop and not counted."""

    def __init__(self) -> None:
        self.anonymous = self.in_use = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            with open("/proc/self/status") as status:
                line = next((line for line in status if line.startswith("RssAnon")), "RssAnon: 0 kB")
            self.anonymous = max(self.anonymous, int(line.split()[1]) * 1024)
            self.in_use = max(self.in_use, in_use())
            time.sleep(0.05)


def busy_seconds() -> float:
    """Seconds that the processors of this machine have worked, for anyone; 0 where the system does not say."""
    try:
        user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    except OSError:
        return 0.0
    return float(sum(map(int, (user, nice, system, *interrupts)))) / os.sysconf("SC_CLK_TCK")


@app.command()
def epochs(folder: Folder, count: int = 2, disk: bool = False, predict: bool = True) -> None:
    """Time training epochs on a partition, after one that works out what is kept."""
    peak, chosen, ranks = Peak(), settings(), join()
    partition = Partition.open(folder)
    task, _ = stored_inputs(partition, chosen)
    shape = Shape(int(partition.facts["in_features"]), partition.num_nodes, task.outputs)
    learner = build_learner(chosen, task, shape, randomness.make_generator(0))
    scratch = Scratch(folder) if disk else None
    try:
        crew = Crew(partition, ranks, learner, torch.float32, scratch)
        scale_encoder(crew)
        trainer = PartitionedTrainer(crew, task, chosen.training, 0)
        began = time.perf_counter()
        trainer.start()
        trainer._train_epoch()
        first = time.perf_counter() - began
        sent, busy, spent, clock = ranks.sent, busy_seconds(), time.process_time(), time.perf_counter()
        losses = [trainer._train_epoch()[0] for _ in range(count)]
        clock, spent = (time.perf_counter() - clock) / count, (time.process_time() - spent) / count
        sent, busy = (ranks.sent - sent) / count, (busy_seconds() - busy) / count
        began = time.perf_counter()
        if predict:
            with torch.no_grad():
                crew.run(lambda piece: embed(piece).sum())
        forward = time.perf_counter() - began
    finally:
        if scratch is not None:
            scratch.close()
    mine = {
        "seconds": clock,
        "cpu_seconds": spent,
        "machine_cpu_seconds": busy,
        "first_epoch_seconds": first,
        "forward_seconds": forward,
        "bytes_sent": sent,
        "peak_anonymous": peak.anonymous,
        "peak_in_use": peak.in_use,
        "peak_resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "disk_bytes": 0 if scratch is None else scratch.written,
    }
    every = ranks.gather(mine)
    if ranks.is_first:
        edges = partition.num_edges
        about = {"nodes": partition.num_nodes, "edges": edges, "pieces": partition.num_pieces, "ranks": ranks.size}
        per_edge = 1e9 * max(row["seconds"] for row in every) / (4 * edges)
        cpu = 1e9 * sum(row["cpu_seconds"] for row in every) / (4 * edges)
        about |= {"threads": torch.get_num_threads(), "disk": disk, "losses": losses}
        print(json.dumps(about | {"ns_per_edge": per_edge, "cpu_ns_per_edge": cpu, "by_rank": every}, indent=1))
    ranks.close()


@app.command()
def whole(folder: Folder, count: int = 2) -> None:
    """The same graph put together again and trained as one."""
    chosen, partition = settings(), Partition.open(folder)
    task, _ = stored_inputs(partition, chosen)
    indptr, indices, features, items, truth = [np.zeros(1, np.int64)], [], [], [], []
    for piece, low in enumerate(partition.starts[:-1]):
        own = partition.starts[piece + 1] - low
        local, halo = partition.piece_array(piece, "indices"), partition.piece_array(piece, "halo")
        pointers = partition.piece_array(piece, "indptr")[: own + 1]
        columns = np.where(local < own, local + low, halo[np.maximum(local - own, 0)] if len(halo) else 0)
        rows = np.repeat(np.arange(own), np.diff(pointers))
        indices.append(columns[np.lexsort((columns, rows))])
        indptr.append(pointers[1:] + indptr[-1][-1])
        features.append(partition.piece_array(piece, "features"))
        items.append(partition.piece_array(piece, "train_items") + low)
        truth.append(partition.piece_array(piece, "train_truth"))
    graph = Graph(torch.from_numpy(np.concatenate(indptr)), torch.from_numpy(np.concatenate(indices)))
    part = Part(torch.from_numpy(np.concatenate(items)), torch.from_numpy(np.concatenate(truth)))
    parts = {"train": part, "val": part, "test": part}
    problem = Problem(task, graph, parts, "", "").with_features(torch.from_numpy(np.concatenate(features)))
    shape = Shape(int(partition.facts["in_features"]), partition.num_nodes, task.outputs)
    learner = build_learner(chosen, task, shape, randomness.make_generator(0))
    learner.model.begin(problem.inputs, graph)
    trainer = Trainer(learner, problem, chosen.training, 0, randomness.make_generator(0))
    trainer.start()
    trainer._train_epoch()
    spent, clock = time.process_time(), time.perf_counter()
    losses = [trainer._train_epoch()[0] for _ in range(count)]
    clock, spent = (time.perf_counter() - clock) / count, (time.process_time() - spent) / count
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    about = {"edges": graph.num_edges, "seconds": clock, "cpu_seconds": spent, "losses": losses}
    per_edge = {"ns_per_edge": 1e9 * clock / (4 * graph.num_edges), "peak_resident": resident}
    print(json.dumps(about | per_edge, indent=1))


TRAIN = ("--width", "16", "--time", "4", "--preset", "none", "--json")
Results = Annotated[Path, typer.Option("--results", help="JSON file that the figures are put into.")]


def note(results: Path, **figures: Any) -> None:
    """Put figures into the file of results, beside what is there."""
    results.write_text(json.dumps(noted(results) | figures, indent=1) + "\n")


def noted(results: Path) -> dict[str, Any]:
    known: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    return known


def timed_epochs(folder: Path, *flags: str, ranks: int = 1, bind: bool = False) -> dict[str, Any]:
    """What ``epochs`` says, run in processes of its own with one thread each, each bound to a core if asked to."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    command = [sys.executable, *launcher, __file__, "epochs", folder, *flags]
    if bind and ranks == 1:
        command = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), *command]
    given = {"OMP_NUM_THREADS": "1", "HGDE_BIND": str(int(bind))}
    found: dict[str, Any] = json.loads(run_measured(command, given)["said"])
    return found


@app.command()
def large(
    folder: Folder, nodes: float = 1.04e7, small: float = 1.04e5, memory: str = "6GiB", method: str = "contiguous",
    results: Results = Path("results/scale.json"),
) -> None:  # fmt: skip
    """Cut, train an epoch and predict by ``hgde``, held and out of core; then time an edge, beside a small graph.

    Steps whose figures are in ``results`` are not done again.
    """
    parts, other = folder / "parts", folder / "small"
    ways: dict[str, tuple[str, ...]] = {"held": (), "out_of_core": ("--memory", memory)}
    steps: dict[str, Callable[[], dict[str, Any]]] = {"partition": lambda: make(parts, nodes=nodes, method=method)}
    for way, flags in ways.items():
        run = folder / f"run-{way}"
        train = hgde("train", "--partitioned", parts, "--out", run, "--epochs", "1", *TRAIN, *flags)
        predict = hgde("predict", run, "--partitioned", parts, "--out", folder / f"{way}.parquet", *flags)
        steps |= {f"train_{way}": partial(run_measured, train), f"predict_{way}": partial(run_measured, predict)}
    steps["small"] = lambda: make(other, nodes=small)
    for way, flag in (("held", "--no-disk"), ("out_of_core", "--disk")):
        steps[f"edge_{way}"] = partial(timed_epochs, parts, "--count", "1", flag)
        steps[f"edge_small_{way}"] = partial(timed_epochs, other, "--count", "10", flag)
    for name, work in steps.items():
        if name not in noted(results):
            note(results, **{name: {key: value for key, value in work().items() if key != "said"}})
    for what in ("run-{}/seed-0/model.safetensors", "{}.parquet"):
        one, two = ((folder / what.format(way)).read_bytes() for way in ways)
        print(what.format("*"), "has the same bytes" if one == two else "DIFFERS")


@app.command()
def speedup(
    folder: Folder, nodes: float = 1.04e6, turns: int = 3, count: int = 3, bind: bool = True,
    results: Results = Path("results/scale.json"),
) -> None:  # fmt: skip
    """Two ranks against one process, one thread each, by turns, each written as it comes; make the graph first.

    The machine should have nothing else to do: turns in which others had more than 5 % of its time do not count.
    """
    if not folder.exists():
        make(folder, nodes=nodes)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    others: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(turns):
        for ranks, known in seconds.items():
            rows = timed_epochs(folder, "--count", str(count), "--no-predict", ranks=ranks, bind=bind)["by_rank"]
            known.append(max(row["seconds"] for row in rows))
            own = sum(row["cpu_seconds"] for row in rows)
            others[ranks].append(max(0.0, rows[0]["machine_cpu_seconds"] - own) / (known[-1] * (os.cpu_count() or 1)))
            print(f"{ranks} ranks: {known[-1]:.2f} s per epoch, others had {others[ranks][-1]:.0%} of the machine")
        name = "speedup_bound" if bind else "speedup"
        note(results, **{name: _speedup(seconds, others) | {"edges": Partition.open(folder).num_edges}})
    print(json.dumps(noted(results)[name], indent=1))


def _speedup(seconds: dict[int, list[float]], others: dict[int, list[float]]) -> dict[str, Any]:
    """All turns, and the ratio of the medians over those in which the machine was ours."""
    calm = {
        ranks: [value for value, share in zip(seconds[ranks], others[ranks], strict=True) if share < 0.05]
        for ranks in (1, 2)
    }
    ratio = float(np.median(calm[1]) / np.median(calm[2])) if calm[1] and calm[2] else None
    return {"seconds": seconds, "others_share": others, "counted": calm, "ratio": ratio}


@app.command()
def simulate(
    out: Path,
    edges: float = 1e9,
    ns_per_edge: float = 130.0,
    width: int = 16,
    evaluations: int = 4,
    degree: float = 10.0,
    balance: float = 1.05,
    latency: float = 50e-6,
) -> None:
    """Seconds per epoch on 8 to 512 ranks by the cost model, drawn for 10 and 100 Gb/s.

    A rank computes its share of the edges at ``ns_per_edge`` per evaluation with gradient (measured, one thread), the
    largest share being ``balance`` times the mean, and exchanges its share of ``8 d H`` bytes per evaluation, nothing
    overlapped, plus two latencies. ``H/N`` grows as the square root of the ranks, from 0.05 at 8 (a graph with places,
    such as the one that ``make`` generates) or from 1.0 (Amazon Photo by METIS, a graph without).
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    counts = np.array([8, 16, 32, 64, 128, 256, 512])
    alone = evaluations * edges * ns_per_edge * 1e-9 / counts
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.0))
    left.loglog(counts, alone, color="0.5", linestyle=":", label="work divided evenly, nothing sent")
    kinds = ((0.05, "-", "o", "few edges cut"), (1.0, "--", "s", "many edges cut"))
    for halo, style, marker, words in kinds:
        boundary = halo * np.sqrt(counts / 8) * edges / degree
        for speed, colour in ((100, "tab:blue"), (10, "tab:orange")):
            moved = evaluations * (8 * width * boundary / counts / (speed * 1e9 / 8) + 2 * latency)
            total = alone * balance + moved
            look = {"linestyle": style, "color": colour, "marker": marker, "markersize": 4}
            left.loglog(counts, total, **look, label=f"{words}, {speed} Gb/s")
            right.semilogx(counts, 100 * alone / total, **look)
            for ranks, seconds, share in zip(counts, total, alone / total, strict=True):
                print(f"H/N {halo:g}, {speed} Gb/s, {ranks} ranks: {seconds:.2f} s per epoch, efficiency {share:.0%}")
    for axes in (left, right):
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
        axes.set_xlabel("ranks, one thread each")
        axes.grid(True, alpha=0.3)
    left.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.set_ylabel("seconds per epoch")
    left.legend(fontsize=8)
    right.set_ylabel("efficiency, %")
    right.set_ylim(0, 104)
    assumed = (
        f"Cost model, not measured: {edges / 1e9:g} billion directed edges, {edges / degree / 1e6:g} million nodes, "
        f"width {width}, {evaluations} evaluations; {ns_per_edge:g} ns per edge and\nevaluation with gradient "
        f"(measured); largest rank {balance - 1:.0%} above the mean; 8dH bytes and two latencies of "
        f"{latency * 1e6:g} µs per evaluation, nothing overlapped;\nH/N on 8 ranks 0.05 (few edges cut) or 1 (many), "
        "growing as the square root of the ranks."
    )
    figure.text(0.01, 0.01, assumed, fontsize=7.5, color="0.3", va="bottom")
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    figure.savefig(out, dpi=130)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    app()
