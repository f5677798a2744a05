"""The plain path under ``torch.compile`` (inductor, no graph breaks) against eager torch: one evaluation and gradient.

    python benchmarks/compiled_plain.py             # milliseconds, medians, for docs/performance.md
    python benchmarks/compiled_plain.py --quick     # a small graph: only shows that it runs

Plain torch is what other devices run; on the CPU the compiled kernels are faster than either.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

from hgde.bench.measure import medians
from hgde.bench.problems import random_problem
from hgde.graph import Graph
from hgde.kernels import AttentionWeights, EdgeWeights, diffuse, set_backend, tangent_sum_global

ETA = (1.0, 0.6, 0.1)


def steps(edges: int, width: int, pair_nodes: int) -> dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]]:
    """Functions of tensors alone, as a compiler sees them, and their arguments."""
    problem = random_problem(edges, width)
    graph, z, values = problem.graph, problem.z.detach(), problem.weights.detach()
    generator = torch.Generator().manual_seed(0)
    scores = [torch.randn(len(z), 1, generator=generator) for _ in range(2)]
    q, k = (0.2 * torch.randn(pair_nodes, 1, width, generator=generator) for _ in range(2))
    c = torch.tensor(1.0, dtype=torch.float64)

    def isotropic(z: Tensor, c: Tensor, indptr: Tensor, indices: Tensor, values: Tensor) -> Tensor:
        return diffuse(z, Graph(indptr, indices), EdgeWeights(values), c, z, ETA)

    def attention(z: Tensor, c: Tensor, indptr: Tensor, indices: Tensor, target: Tensor, source: Tensor) -> Tensor:
        return diffuse(z, Graph(indptr, indices), AttentionWeights(target, source), c, z, ETA)

    pattern = (graph.indptr, graph.indices)
    return {
        f"isotropic, {graph.num_edges:,} edges": (isotropic, (z, c, *pattern, values)),
        f"attention, {graph.num_edges:,} edges": (attention, (z, c, *pattern, *scores)),
        f"all pairs, {pair_nodes:,} nodes": (
            lambda z, c, q, k: tangent_sum_global(z, q, k, c),
            (z[:pair_nodes], c, q, k),
        ),
    }


def with_gradient(function: Callable[..., Tensor], arguments: tuple[Tensor, ...]) -> Callable[[], Tensor]:
    leaf = arguments[0].clone().requires_grad_()

    def call() -> Tensor:
        (found,) = torch.autograd.grad(function(leaf, *arguments[1:]).square().sum(), leaf)
        return found

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    quick = parser.parse_args().quick
    print("| step | eager | compiled | eager / compiled | fused kernels |\n| --- | --- | --- | --- | --- |")
    for name, (function, arguments) in steps(*((2_000, 8, 100) if quick else (200_000, 32, 1_000))).items():
        set_backend("reference")
        compiled = torch.compile(function, fullgraph=True)
        calls = {"eager": with_gradient(function, arguments), "compiled": with_gradient(compiled, arguments)}
        right, ours = calls["eager"](), calls["compiled"]()
        torch.testing.assert_close(ours, right, rtol=1e-3, atol=1e-4 * float(right.abs().max()))
        taken = medians(calls, 0.1 if quick else 5)
        set_backend("auto")
        taken |= medians({"fused": with_gradient(function, arguments)}, 0.1 if quick else 2)
        eager, made, fused = (1000 * taken[kind] for kind in ("eager", "compiled", "fused"))
        print(f"| {name} | {eager:.1f} ms | {made:.1f} ms | {eager / made:.2f} | {fused:.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
