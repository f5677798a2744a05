"""Errors of float32 gradients of one evaluation of the flow, compiled and plain, on the very same points.

    python benchmarks/gradient_errors.py            # the table of docs/numerics.md
    python benchmarks/gradient_errors.py --check    # only what is asked of it; exit code 1 if it is not met

Points lie in random directions at one distance from the origin, so that neighbours are about twice as far apart: the
hardest case: at the last distance float64 itself has five digits left. So the truth is worked out in 80-bit arithmetic,
from the definitions (:mod:`extended`). The relative error is that of the whole gradient, ``|g32 - g| / |g|``, over all
seeds together. Sums over all pairs are compared with plain torch in float64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from extended import Number
from extended import gradients as gradients_of
from torch import Tensor

from hgde.graph import Graph
from hgde.kernels import (
    AttentionWeights,
    ChannelWeights,
    EdgeWeights,
    diffuse_steps,
    tangent_sum_global,
    tangent_sum_global_linear,
)
from hgde.kernels.weights import LocalWeights

DISTANCES = (0.1, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0)
#: Up to here gradients are held to :func:`allowed` besides plain torch.
FARTHEST = 8.0
#: Compiled gradients are no worse than plain ones but for the noise of rounding.
NOISE = 1.1
#: Rounding the result costs this much; below it, none is worse.
ROUNDING = 4 * torch.finfo(torch.float32).eps
#: Near the origin the curvature's gradient over all pairs is a small rest of many terms, in plain torch as well.
OF_PAIRS = 1e-5
NODES, EDGES, WIDTH, SEEDS = 300, 900, 16, 8
ETA = (1.0, 0.6, 0.1)
SLOPE = 0.2

Errors = dict[str, float]


def points(distance: float, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(NODES, WIDTH, generator=generator, dtype=torch.float64)
    radius = torch.tanh(torch.tensor(distance / 2, dtype=torch.float64))
    return (radius * torch.nn.functional.normalize(x, dim=-1)).float()


def weight_kinds(graph: Graph, seed: int) -> dict[str, tuple[list[Tensor], Callable[..., LocalWeights]]]:
    """For each kind, float32 tensors and how weights are made of them; rows sum to one at most, so that no point moves
    out of float32's reach, where projection would hide everything else."""
    generator = torch.Generator().manual_seed(100 + seed)

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator)

    share = 1 / graph.degree.clamp_min(1).float()
    index = torch.randint(0, 8, (graph.num_edges,), generator=generator)
    symmetric = share.sqrt()[graph.rows] * share.sqrt()[graph.indices]
    rest = 1 - torch.zeros(NODES).index_add(0, graph.rows, symmetric)
    return {
        "edge": ([share[graph.rows]], EdgeWeights),
        "edge with origin": ([symmetric, rest], EdgeWeights),
        "attention": ([draw(NODES, 2) - 0.5, draw(NODES, 2) - 0.5], AttentionWeights),
        "channel": (
            [0.3 + 0.6 * draw(8, WIDTH), share[:, None].expand(NODES, WIDTH).contiguous()],
            lambda table, scale: ChannelWeights(table, index, scale),
        ),
    }


def gradients(
    graph: Graph, z: Tensor, tensors: list[Tensor], build: Callable[..., LocalWeights], residual: bool,
    dtype: torch.dtype, backend: str, toward: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    leaves = [t.to(dtype, copy=True).requires_grad_() for t in (z, *tensors)]
    c = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    eta = torch.tensor(ETA, dtype=torch.float64, requires_grad=True) if residual else None
    out = diffuse_steps(leaves[0], graph, build(*leaves[1:]), c, 1, leaves[0], eta, backend=backend)  # type: ignore[arg-type]  # one of two literals
    wanted = [*leaves, c, *([eta] if eta is not None else [])]
    point, *rest = torch.autograd.grad((out * toward.to(dtype)).sum(), wanted)
    count = len(tensors)
    flat = torch.cat([g.double().flatten() for g in rest[:count]])
    found = {"points": point.double(), "weights": flat, "curvature": rest[count].double()}
    return {**found, "eta": rest[count + 1].double()} if eta is not None else found


def truth(
    graph: Graph, z: Tensor, kind: str, tensors: list[Tensor], index: Tensor, residual: bool, toward: Tensor
) -> dict[str, Tensor]:
    """The same gradients from the definitions, in 80-bit arithmetic."""
    points, c = Number(z.numpy()), Number(1.0)
    given, eta = [Number(t.numpy()) for t in tensors], [Number(e) for e in ETA]
    rows, columns = graph.rows.numpy(), graph.indices.numpy()
    x, y = points[rows], points[columns]
    b = 1.0 - c * (points * points).total()
    t = y - x
    delta = c * (t * t).total()
    logs = _log(x, t, delta, b[rows], b[columns], c)
    if kind == "attention":
        score = given[0][rows] + given[1][columns]
        lifted = score.map(lambda s: np.where(s > 0, s, SLOPE * s), lambda s: np.where(s > 0, 1, SLOPE)).exp()
        weights = (lifted / lifted.sum_rows(rows, NODES)[rows]).total() / given[0].value.shape[1]
        pull = (weights * logs).sum_rows(rows, NODES)
    elif kind == "channel":
        pull = given[1] * (given[0][index.numpy()] * logs).sum_rows(rows, NODES)
    else:
        pull = (_column(given[0]) * logs).sum_rows(rows, NODES)
    if kind == "edge with origin":
        nothing = Number(np.zeros_like(points.value))
        pull = pull + _column(given[1]) * _log(points, nothing - points, 1.0 - b, b, Number(1.0), c)
    out = _exp(points, pull, b, c)
    if residual:
        parts = [(out, eta[0]), (points, eta[1]), (points, eta[2])]
        top, bottom = Number(np.zeros_like(points.value)), Number(0.0)
        for part, weight in parts:
            factor = 2.0 / (1.0 - c * (part * part).total())
            top, bottom = top + weight * factor * part, bottom + weight * (factor - 1.0)
        whole = top / bottom
        out = whole / ((1.0 - c * (whole * whole).total()).sqrt() + 1.0)
    wanted = [points, c, *given, *(eta if residual else [])]
    g_points, g_c, *rest = (torch.as_tensor(g.astype(np.float64)) for g in gradients_of(out, toward.numpy(), wanted))
    found = {"points": g_points, "weights": torch.cat([g.flatten() for g in rest[: len(given)]]), "curvature": g_c}
    return {**found, "eta": torch.stack(rest[len(given) :])} if residual else found


def _column(values: Number) -> Number:
    return Number(values.value[:, None], [(values, lambda g: g[:, 0])])


def _log(x: Number, t: Number, delta: Number, b_x: Number, b_y: Number, c: Number) -> Number:
    """``log_x(x + t)`` by Möbius addition, ``delta = c|t|^2``."""
    product = b_x * b_y
    den = product + delta
    across = (b_x * t - delta * x) / den  # (-x) + y
    size = (c * (across * across).total()).sqrt()
    return b_x * size.artanh(product / den) / size * across


def _exp(x: Number, v: Number, b: Number, c: Number) -> Number:
    """``x + tanh(sqrt(c) |v| / B) v / (sqrt(c) |v|)``, the sum being Möbius addition."""
    size = (c * (v * v).total()).sqrt()
    u = (size / b).tanh() / size * v
    inner, square = 2.0 * c * (x * u).total(), c * (u * u).total()
    return ((1.0 + inner + square) * x + b * u) / (1.0 + inner + (1.0 - b) * square)


def measure(distance: float, residual: bool) -> dict[tuple[str, str], tuple[float, float]]:
    """``{(weights, gradient): (compiled, plain)}``."""
    generator = torch.Generator().manual_seed(0)
    graph = Graph.from_edges(torch.randint(0, NODES, (2, EDGES), generator=generator), NODES)
    lacking = (graph.degree == 0).nonzero().flatten()  # nodes without neighbours: their step is 0/0 in the definitions
    ring = torch.stack([lacking, (lacking + 1) % NODES])
    graph = Graph.from_edges(torch.cat([graph.edge_index, ring], 1), NODES)
    sums: dict[tuple[str, str], list[Tensor]] = {}
    for seed in range(SEEDS):
        z, toward = points(distance, seed), torch.randn(NODES, WIDTH, generator=generator)
        for kind, (tensors, build) in weight_kinds(graph, seed).items():
            index = build(*tensors).index if kind == "channel" else graph.indices  # type: ignore[union-attr]  # weights by channel have one
            right = truth(graph, z, kind, tensors, index, residual, toward)
            both = [
                gradients(graph, z, tensors, build, residual, torch.float32, backend, toward)
                for backend in ("fused", "reference")
            ]
            for name, exact in right.items():
                terms = [(found[name] - exact).square().sum() for found in both]
                sums.setdefault((kind, name), []).append(torch.stack([*terms, exact.square().sum()]))
    return _relative(sums)


def measure_pairs(distance: float) -> dict[tuple[str, str], tuple[float, float]]:
    """:func:`measure` of the sums over all pairs; the truth is plain torch in float64, of the same landmarks if any."""
    sums: dict[tuple[str, str], list[Tensor]] = {}
    for seed in range(SEEDS):
        generator = torch.Generator().manual_seed(200 + seed)
        z, toward = points(distance, seed), torch.randn(NODES, WIDTH, generator=generator)
        scores = [0.5 * torch.randn(NODES, 2, WIDTH, generator=generator) for _ in range(2)]
        for kind, total in {
            "global": tangent_sum_global,
            "linear-global": partial(tangent_sum_global_linear, landmarks=64),
        }.items():

            def found(dtype: torch.dtype, backend: str, total: Callable[..., Tensor] = total) -> dict[str, Tensor]:
                leaves = [t.to(dtype, copy=True).requires_grad_() for t in (z, *scores)]  # noqa: B023  # called at once
                c = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
                out = total(*leaves, c, backend=backend)
                grads = torch.autograd.grad((out * toward.to(dtype)).sum(), [*leaves, c])  # noqa: B023  # called at once
                point, q, k, curvature = (g.double() for g in grads)
                return {"points": point, "weights": torch.stack([q, k]), "curvature": curvature}

            right = found(torch.float64, "reference")
            both = [found(torch.float32, backend) for backend in ("fused", "reference")]
            for name, exact in right.items():
                terms = [(side[name] - exact).square().sum() for side in both]
                sums.setdefault((kind, name), []).append(torch.stack([*terms, exact.square().sum()]))
    return _relative(sums)


def _relative(sums: dict[tuple[str, str], list[Tensor]]) -> dict[tuple[str, str], tuple[float, float]]:
    """Errors over all seeds together from the squares of errors and of what is right."""
    totals = {key: torch.stack(squares).sum(0) for key, squares in sums.items()}
    return {key: (float((a / n).sqrt()), float((b / n).sqrt())) for key, (a, b, n) in totals.items()}


def allowed(distance: float) -> float:
    """The bounds, carried on to other distances: ten times as much for two more."""
    return 1e-4 * 10.0 ** ((distance - 4) / 2)


def failures(distance: float, table: dict[tuple[str, str], tuple[float, float]]) -> list[str]:
    found = []
    for (kind, name), (fused, plain) in table.items():
        where = f"{kind}, {name} at {distance:g}"
        most = max(allowed(distance), OF_PAIRS if kind.endswith("global") else ROUNDING)
        if fused > most and distance <= FARTHEST:
            found.append(f"{where}: {fused:.1e} is above {most:.0e}")
        if fused > max(NOISE * plain, ROUNDING):
            found.append(f"{where}: compiled {fused:.1e} is worse than plain {plain:.1e}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="print only what is not met")
    only_check = parser.parse_args().check
    wrong = []
    for title, one in {
        "With the residual": partial(measure, residual=True),
        "Without residual": partial(measure, residual=False),
        "Sums over all pairs": measure_pairs,
    }.items():
        tables = {distance: one(distance) for distance in DISTANCES}
        for distance, table in tables.items():
            wrong += failures(distance, table)
        if not only_check:
            print(f"\n{title} (compiled / plain torch):\n")
            print("| weights | gradient |" + "".join(f" {d:g} |" for d in DISTANCES))
            print("| --- | --- |" + " --- |" * len(DISTANCES))
            for key in tables[DISTANCES[0]]:
                cells = "".join(f" {tables[d][key][0]:.0e} / {tables[d][key][1]:.0e} |" for d in DISTANCES)
                print(f"| {key[0]} | {key[1]} |{cells}")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
