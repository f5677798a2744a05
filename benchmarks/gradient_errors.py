"""Errors of float32 gradients of one evaluation of the flow, compiled and plain, against float64 on the same points.

    python benchmarks/gradient_errors.py            # the table of docs/numerics.md
    python benchmarks/gradient_errors.py --check    # only what is asked of it; exit code 1 if it is not met

Points lie in random directions at one distance from the origin, so that neighbours are about twice as far apart: the
hardest case. The relative error is that of the whole gradient, ``|g32 - g64| / |g64|``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from hgde.graph import Graph
from hgde.kernels import AttentionWeights, ChannelWeights, EdgeWeights, diffuse_steps
from hgde.kernels.weights import LocalWeights

DISTANCES = (0.1, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0)
#: Up to here gradients are held to :func:`allowed`, beyond it to plain torch. At the last distance neighbours are so
#: far apart that float64 itself is good to five digits, and plain torch shares its rounding errors.
FARTHEST = 8.0
#: Rounding the result costs this much; below it, none is worse.
ROUNDING = 4 * torch.finfo(torch.float32).eps
NODES, EDGES, WIDTH, SEEDS = 300, 900, 16, 3
ETA = (1.0, 0.6, 0.1)

Errors = dict[str, float]


def points(distance: float, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(NODES, WIDTH, generator=generator, dtype=torch.float64)
    radius = torch.tanh(torch.tensor(distance / 2, dtype=torch.float64))
    return (radius * torch.nn.functional.normalize(x, dim=-1)).float()


def weight_kinds(graph: Graph, seed: int) -> dict[str, tuple[list[Tensor], Callable[..., LocalWeights]]]:
    """For each kind, float32 tensors and how weights are made of them; rows sum to one."""
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
            [0.5 + draw(8, WIDTH), share[:, None].expand(NODES, WIDTH).contiguous()],
            lambda table, scale: ChannelWeights(table, index, scale),
        ),
    }


def gradients(
    graph: Graph, z: Tensor, tensors: list[Tensor], build: Callable[..., LocalWeights], residual: bool,
    dtype: torch.dtype, backend: str, toward: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    leaves = [t.to(dtype).requires_grad_() for t in (z, *tensors)]
    c = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    eta = torch.tensor(ETA, dtype=torch.float64, requires_grad=True) if residual else None
    out = diffuse_steps(leaves[0], graph, build(*leaves[1:]), c, 1, leaves[0], eta, backend=backend)  # type: ignore[arg-type]
    wanted = [*leaves, c, *([eta] if eta is not None else [])]
    point, *rest = torch.autograd.grad((out * toward.to(dtype)).sum(), wanted)
    count = len(tensors)
    flat = torch.cat([g.double().flatten() for g in rest[:count]])
    found = {"points": point.double(), "weights": flat, "curvature": rest[count].double()}
    return {**found, "eta": rest[count + 1].double()} if eta is not None else found


def measure(distance: float, residual: bool) -> dict[tuple[str, str], tuple[float, float]]:
    """``{(weights, gradient): (compiled, plain)}``, the geometric mean over seeds."""
    generator = torch.Generator().manual_seed(0)
    graph = Graph.from_edges(torch.randint(0, NODES, (2, EDGES), generator=generator), NODES)
    sums: dict[tuple[str, str], list[Tensor]] = {}
    for seed in range(SEEDS):
        z, toward = points(distance, seed), torch.randn(NODES, WIDTH, generator=generator)
        for kind, (tensors, build) in weight_kinds(graph, seed).items():
            right = gradients(graph, z, tensors, build, residual, torch.float64, "reference", toward)
            both = [
                gradients(graph, z, tensors, build, residual, torch.float32, backend, toward)
                for backend in ("fused", "reference")
            ]
            for name, exact in right.items():
                errors = torch.stack([(found[name] - exact).norm() / exact.norm() for found in both])
                sums.setdefault((kind, name), []).append(errors.clamp_min(1e-9).log())
    means = {key: torch.stack(logs).mean(0).exp() for key, logs in sums.items()}
    return {key: (float(mean[0]), float(mean[1])) for key, mean in means.items()}


def allowed(distance: float) -> float:
    """The bounds, carried on to other distances: ten times as much for two more."""
    return 1e-4 * 10.0 ** ((distance - 4) / 2)


def failures(distance: float, table: dict[tuple[str, str], tuple[float, float]]) -> list[str]:
    found = []
    for (kind, name), (fused, plain) in table.items():
        where = f"{kind}, {name} at {distance:g}"
        if fused > max(allowed(distance), ROUNDING) and distance <= FARTHEST:
            found.append(f"{where}: {fused:.1e} is above {allowed(distance):.0e}")
        if fused > max(1.5 * plain, ROUNDING) and distance < DISTANCES[-1]:
            found.append(f"{where}: compiled {fused:.1e} is worse than plain {plain:.1e}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="print only what is not met")
    only_check = parser.parse_args().check
    wrong = []
    for residual in (True, False):
        tables = {distance: measure(distance, residual) for distance in DISTANCES}
        for distance, table in tables.items():
            wrong += failures(distance, table)
        if not only_check:
            print(f"\n{'With the residual' if residual else 'Without residual'} (compiled / plain torch):\n")
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
