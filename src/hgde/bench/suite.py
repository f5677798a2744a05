"""The measurements, each with the bar it is held to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from hgde.bench import modes, networks, pairs, peers, problems
from hgde.bench.measure import Row, medians, peak_bytes
from hgde.bench.problems import Problem
from hgde.kernels import Backend, diffuse, diffuse_steps

ETA = (1.0, 0.6, 0.1)


def _curvature() -> Tensor:
    return torch.tensor(1.0, requires_grad=True)


def _flow(problem: Problem, backend: Backend) -> Callable[[], None]:
    c, arriving = _curvature(), torch.ones_like(problem.z)

    def call() -> None:
        out = diffuse(problem.z, problem.graph, problem.edge_weights, c, problem.z, ETA, backend=backend)
        torch.autograd.grad(out, (problem.z, problem.weights, c), arriving)

    return call


def _textbook(problem: Problem) -> Callable[[], None]:
    flow = peers.textbook_flow(problem, _curvature(), ETA)

    def call() -> None:
        out = flow()
        torch.autograd.grad(out, (problem.z, problem.weights), torch.ones_like(out))

    return call


def _milliseconds(taken: dict[str, float]) -> str:
    return ", ".join(f"{name} {1000 * value:.3g} ms" for name, value in taken.items())


def flow(quick: bool) -> Iterator[Row]:
    """One flow evaluation, forward and backward: fused against torch and against the textbook."""
    edges = 20_000 if quick else 1_000_000
    problem = problems.random_problem(edges, 64)
    calls = {"fused": _flow(problem, "fused"), "reference": _flow(problem, "reference")}
    taken = medians({**calls, "textbook": _textbook(problem)}, 0.2 if quick else 10)
    size = f"{problem.graph.num_edges:,} edges, width 64"
    detail = _milliseconds(taken)
    yield Row(
        "flow-large",
        f"flow, {size}: fused against reference",
        taken["reference"] / taken["fused"],
        8,
        "at least",
        detail=detail,
    )
    yield Row(
        "flow-textbook",
        f"flow, {size}: fused against textbook",
        taken["textbook"] / taken["fused"],
        20,
        "at least",
        detail=detail,
    )
    cora = problems.citations("cora")
    small = problems.problem_on(cora.graph, 16)
    taken = medians({"fused": _flow(small, "fused"), "reference": _flow(small, "reference")}, 0.2 if quick else 3)
    yield Row(
        "flow-cora",
        "flow on Cora, width 16: fused against reference",
        taken["reference"] / taken["fused"],
        5,
        "at least",
        detail=_milliseconds(taken) + _data_note(cora.real),
    )


def _data_note(real: bool) -> str:
    return "" if real else "; random data of the same size (set HGDE_DATA for the real one)"


def epoch(quick: bool) -> Iterator[Row]:
    """One training epoch on Cora against a PyG GCN of as many layers."""
    data = problems.citations("cora")
    for depth in (2,) if quick else (2, 4, 8, 16):
        what = f"training epoch on Cora, width 16, T = {depth}: PyG GCN / HGDE"
        calls = {"HGDE": networks.hgde_epoch(data, 16, float(depth))}
        try:
            calls["PyG"] = networks.pyg_epoch(data, 16, depth)
        except ImportError:
            yield Row(f"epoch-{depth}", what, None, 1, "at least", detail="torch_geometric is not installed")
            continue
        taken = medians(calls, 0.2 if quick else 4)
        detail = _milliseconds(taken) + _data_note(data.real)
        yield Row(f"epoch-{depth}", what, taken["PyG"] / taken["HGDE"], 1, "at least", detail=detail)


def memory(quick: bool) -> Iterator[Row]:
    """What one more evaluation adds to the memory of a training step."""
    problem = problems.random_problem(50_000 if quick else 1_000_000, 64)
    c = _curvature()

    def train(steps: int) -> Callable[[], None]:
        def call() -> None:
            out = diffuse_steps(
                problem.z, problem.graph, problem.edge_weights, c, steps, problem.z, ETA, backend="fused"
            )
            torch.autograd.grad(out, (problem.z, problem.weights, c), torch.ones_like(out))

        return call

    train(1)()
    few, many = peak_bytes(train(8)), peak_bytes(train(16))
    what = f"states of memory added per evaluation, T = 8 to 16, {problem.graph.num_edges:,} edges, width 64"
    if few is None or many is None:
        yield Row("memory", what, None, 1.0, "at most", "states", "this system does not report peak memory")
        return
    state = problem.z.numel() * problem.z.element_size()
    detail = f"peak {few / 2**20:.0f} and {many / 2**20:.0f} MiB"
    yield Row("memory", what, (many - few) / 8 / state, 1.0, "at most", "states", detail)


def scaling(quick: bool) -> Iterator[Row]:
    """Time per edge, forward and backward, over two decades."""
    sizes = (10_000, 100_000) if quick else (100_000, 1_000_000, 10_000_000)
    per_edge = {}
    for size in sizes:
        problem = problems.random_problem(size, 16)
        taken = medians({"fused": _flow(problem, "fused")}, 0.1 if quick else 3)["fused"]
        per_edge[size] = 1e9 * taken / problem.graph.num_edges
    detail = ", ".join(f"{size:.0e}: {value:.1f} ns" for size, value in per_edge.items())
    value = max(per_edge.values()) / min(per_edge.values())
    yield Row(
        "scaling",
        f"time per edge, {sizes[0]:.0e} to {sizes[-1]:.0e} edges, width 16",
        value,
        1.3,
        "at most",
        detail=detail,
    )


def bandwidth(quick: bool) -> Iterator[Row]:
    """Bytes the forward pass must touch, per second, against a copy of memory."""
    problem = problems.random_problem(50_000 if quick else 1_000_000, 64)
    graph, z, c = problem.graph, problem.z.detach(), torch.tensor(1.0)
    weights = problem.edge_weights
    source = torch.ones(10_000_000 if quick else 64_000_000)
    target = torch.empty_like(source)

    def forward() -> None:
        with torch.no_grad():
            diffuse(z, graph, weights, c, z, ETA, backend="fused")

    taken = medians({"forward": forward, "copy": lambda: target.copy_(source)}, 0.2 if quick else 3)
    touched = graph.num_edges * (4 * z.shape[1] + 8) + 3 * 4 * z.numel()
    ours, copy = touched / taken["forward"] / 1e9, 8 * source.numel() / taken["copy"] / 1e9
    detail = f"forward {ours:.1f} GB/s, copy {copy:.1f} GB/s"
    yield Row(
        "bandwidth",
        "bytes per second of the fused forward, share of a copy loop",
        ours / copy,
        0.5,
        "report",
        "",
        detail,
    )


def ricci(quick: bool) -> Iterator[Row]:
    """Ollivier-Ricci curvature against GraphRicciCurvature."""
    from hgde.graph.measures.ricci import ollivier_ricci

    for name in ("cora",) if quick else ("cora", "pubmed"):
        data = problems.citations(name)
        what = f"Ollivier-Ricci curvature on {name}: GraphRicciCurvature / ours"
        ollivier_ricci(data.graph, cache=False, progress=False)
        taken = medians({"ours": lambda g=data.graph: ollivier_ricci(g, cache=False, progress=False)}, 1)["ours"]  # type: ignore[misc]  # a lambda's default
        if quick:
            yield Row(
                f"ricci-{name}",
                what,
                None,
                10,
                "at least",
                detail=f"ours {taken:.3f} s; peer left out of the quick run",
            )
            continue
        try:
            _, compute = peers.ricci_package(data, torch.get_num_threads())
        except ImportError:
            yield Row(
                f"ricci-{name}",
                what,
                None,
                10,
                "at least",
                detail=f"ours {taken:.3f} s; GraphRicciCurvature is not installed",
            )
            continue
        start = time.perf_counter()
        theirs = compute()
        peer = time.perf_counter() - start
        ours = ollivier_ricci(data.graph, cache=False, progress=False)
        table = {
            (i, j): k
            for i, j, k in zip(data.graph.rows.tolist(), data.graph.indices.tolist(), ours.tolist(), strict=True)
        }
        gap = max(abs(table[u, v] - theirs[u][v]["ricciCurvature"]) for u, v in theirs.edges)
        detail = (
            f"ours {taken:.3f} s (whole graph), peer {peer:.2f} s (largest component), largest difference {gap:.1e}"
        )
        yield Row(f"ricci-{name}", what, peer / taken, 10, "at least", detail=detail + _data_note(data.real))


MEASUREMENTS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "flow": flow,
    "epoch": epoch,
    "memory": memory,
    "scaling": scaling,
    "bandwidth": bandwidth,
    "ricci": ricci,
    "depth": modes.depth,
    "hyperbolic": modes.hyperbolic,
    "compiled": modes.compiled,
    "attention": modes.attention,
    "solvers": modes.solvers,
    "pubmed": modes.pubmed,
    "backward": modes.backward,
    **pairs.MEASUREMENTS,
}


def run(names: list[str] | None = None, quick: bool = False) -> Iterator[Row]:
    """The rows of the named measurements (all by default), as they are taken.

    >>> list(run(["gravity"]))
    Traceback (most recent call last):
    hgde.bench.suite.BenchError: unknown measurement 'gravity': choose from ...
    """
    unknown = [name for name in names or [] if name not in MEASUREMENTS]
    if unknown:
        raise BenchError(f"unknown measurement {unknown[0]!r}: choose from {', '.join(MEASUREMENTS)}")
    for name in names or MEASUREMENTS:
        yield from MEASUREMENTS[name](quick)


class BenchError(ValueError):
    """A measurement that does not exist."""
