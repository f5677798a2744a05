"""Pictures of the cost: against edges, width, depth and threads, and beside what the machine can do (a roofline)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hgde.bench import networks, problems
from hgde.bench.measure import medians
from hgde.kernels import EdgeWeights, diffuse

ETA = (1.0, 0.6, 0.1)
SCALARS = {"forward": 90, "backward": 230}
"""Operations on an edge's scalars, whatever the width: divisions, a root and a logarithm written out."""


@dataclass(frozen=True)
class Pass:
    """A pass over the edges: what it must read and do for each, and the seconds it took."""

    name: str
    edges: int
    bytes_per_edge: float
    flops_per_edge: float
    seconds: float

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops_per_edge / self.bytes_per_edge

    @property
    def speed(self) -> float:
        """Operations per second, in billions."""
        return 1e-9 * self.edges * self.flops_per_edge / self.seconds


def flow_calls(edges: int, width: int) -> tuple[int, dict[str, Callable[[], Any]]]:
    """One evaluation with constant weights on a random graph: forward, and with its gradient."""
    problem = problems.random_problem(edges, width)
    graph, c, points = problem.graph, torch.tensor(1.0, requires_grad=True), problem.z.detach()
    weights = EdgeWeights(problem.weights.detach())

    def forward() -> None:
        with torch.no_grad():
            diffuse(points, graph, weights, c, points, ETA)

    def both() -> None:
        out = diffuse(problem.z, graph, weights, c, problem.z, ETA)
        torch.autograd.grad(out, (problem.z, c), torch.ones_like(out))

    return graph.num_edges, {"forward": forward, "both": both}


def passes(edges: int, width: int, seconds: float) -> list[Pass]:
    """Forward and backward of one evaluation. Forward reads a neighbour's row, its index, weight and factor; backward
    three rows, and four numbers for each edge written and read again."""
    count, calls = flow_calls(edges, width)
    taken = medians(calls, seconds)
    backward = max(taken["both"] - taken["forward"], 1e-9)
    return [
        Pass(f"forward, width {width}", count, 4 * width + 16, 6 * width + SCALARS["forward"], taken["forward"]),
        Pass(f"backward, width {width}", count, 12 * width + 60, 18 * width + SCALARS["backward"], backward),
    ]


def machine(quick: bool) -> tuple[float, float]:
    """Gigabytes per second of a copy, and billions of operations per second of a matrix product in single precision."""
    source, size = torch.ones(2_000_000 if quick else 64_000_000), 256 if quick else 2048
    target, square = torch.empty_like(source), torch.rand(size, size)
    calls: dict[str, Callable[[], Any]] = {"copy": lambda: target.copy_(source), "product": lambda: square @ square}
    taken = medians(calls, 0.1 if quick else 2)
    return 8e-9 * source.numel() / taken["copy"], 2e-9 * size**3 / taken["product"]


def _roofline(figure: Any, quick: bool) -> None:
    axis = figure.subplots()
    bandwidth, peak = machine(quick)
    found = [p for width in (16, 64) for p in passes(20_000 if quick else 1_000_000, width, 0.1 if quick else 2)]
    low, high = 0.5, 200.0
    ridge = peak / bandwidth
    axis.plot([low, ridge, high], [low * bandwidth, peak, peak], color="black")
    axis.annotate(f"{bandwidth:.0f} GB/s ", (low * 1.6, low * 1.6 * bandwidth), ha="right", va="bottom")
    axis.annotate(f"{peak:.0f} Gflop/s", (high / 8, peak * 1.1))
    for entry in found:
        axis.plot(entry.intensity, entry.speed, "o", label=f"{entry.name}: {entry.speed:.1f} Gflop/s")
    axis.set(xscale="log", yscale="log", xlabel="operations per byte", ylabel="billions of operations per second")
    axis.set(xlim=(low / 2, high), ylim=(None, peak * 1.5))
    axis.legend(loc="lower right")


def _per_edge(axis: Any, quick: bool) -> None:
    sizes = (10_000, 30_000) if quick else (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    lines: dict[str, list[float]] = {"forward": [], "both": []}
    for size in sizes:
        count, calls = flow_calls(size, 16)
        for name, value in medians(calls, 0.05 if quick else 1).items():
            lines[name].append(1e9 * value / count)
    for name, values in lines.items():
        axis.plot(sizes, values, "o-", label="forward and backward" if name == "both" else name)
    axis.set(xscale="log", xlabel="edges", ylabel="ns per edge", title="one evaluation, width 16", ylim=(0, None))
    axis.legend()


def _by_width(axis: Any, quick: bool) -> None:
    widths = (8, 16) if quick else (8, 16, 32, 64, 128)
    lines: dict[str, list[float]] = {"forward": [], "both": []}
    for width in widths:
        count, calls = flow_calls(10_000 if quick else 300_000, width)
        for name, value in medians(calls, 0.05 if quick else 1).items():
            lines[name].append(1e9 * value / count)
    for name, values in lines.items():
        axis.plot(widths, values, "o-", label="forward and backward" if name == "both" else name)
    axis.set(xlabel="width", ylabel="ns per edge", title="one evaluation, 300,000 edges", ylim=(0, None))
    axis.legend()


def _by_depth(axis: Any, quick: bool) -> None:
    data, depths = problems.citations("cora"), (1, 2) if quick else (2, 4, 8, 16)
    lines: dict[str, list[float]] = {"HGDE": [], "CSR GCN": []}
    for depth in depths:
        calls = {
            "HGDE": networks.hgde_epoch(data, 16, float(depth)),
            "CSR GCN": networks.csr_gcn_epoch(data, 16, depth),
        }
        for name, value in medians(calls, 0.05 if quick else 2).items():
            lines[name].append(1e3 * value)
    for name, values in lines.items():
        axis.plot(depths, values, "o-", label=name)
    axis.set(xlabel="steps, or layers", ylabel="ms", title="training epoch, Cora's size, width 16", ylim=(0, None))
    axis.legend()


def _by_threads(axis: Any, quick: bool) -> None:
    before = torch.get_num_threads()
    _, calls = flow_calls(10_000 if quick else 1_000_000, 64)
    counts, speeds = list(range(1, before + 1)), []
    try:
        for count in counts:
            torch.set_num_threads(count)
            speeds.append(medians({"both": calls["both"]}, 0.05 if quick else 2)["both"])
    finally:
        torch.set_num_threads(before)
    axis.plot(counts, [speeds[0] / value for value in speeds], "o-")
    axis.plot(counts, counts, ":", color="grey")
    axis.set(xlabel="threads", ylabel="times as fast as one", title="forward and backward, width 64", xticks=counts)


def draw(folder: Path, quick: bool = False) -> list[Path]:
    """Write ``roofline.png`` and ``cost.png``; every point is measured now, with torch's number of threads."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    roofline = Figure(figsize=(7, 5), layout="constrained")
    _roofline(roofline, quick)
    cost = Figure(figsize=(10, 7), layout="constrained")
    for axis, measure in zip(cost.subplots(2, 2).flat, (_per_edge, _by_width, _by_depth, _by_threads), strict=True):
        measure(axis, quick)
    paths = [folder / "roofline.png", folder / "cost.png"]
    for figure, path in zip((roofline, cost), paths, strict=True):
        figure.savefig(path, dpi=110)
    return paths
