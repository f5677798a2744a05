"""Where the energies rise on curved spaces, and by how much.

In flat space each form of diffusion has an energy that never rises (see ``hgde.diffusion.energy``). On the ball that is
no theorem. This takes random graphs of four kinds, puts points on the ball in three ways, applies the flow without
residual at ``tau = 1``, and prints how often, and by what factor at most, a step raised it. ``spread``: in random
directions, up to a distance from the origin; ``cluster``: around one point at that distance; ``sought``: from there, by
gradient ascent on the factor of the first step, points never farther out than that distance.

    python benchmarks/energy.py --graphs 200
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.diffusion import GraphFlow, dirichlet_energy, edge_energy, make_diffusivity
from hgde.geometry import Euclidean, Manifold, PoincareBall
from hgde.graph import Graph

Energy = Callable[[Tensor, Graph, Manifold], Tensor]
FORMS: dict[str, Energy] = {
    "isotropic": edge_energy,
    "symmetric": dirichlet_energy,
    "isotropic-printed": dirichlet_energy,
}
KINDS = ("tree", "hub", "dense", "disconnected")
STEPS, WIDTH, ASCENT = 8, 4, 80


@dataclass
class Tally:
    """Steps seen, steps that raised the energy, the largest factor, and the kinds of graph where it happened."""

    steps: int = 0
    rises: int = 0
    worst: float = 1.0
    first: int = 0
    kinds: frozenset[str] = frozenset()


def random_graph(kind: str, random: torch.Generator) -> Graph:
    count = int(torch.randint(2, 60, (), generator=random))
    if kind == "tree":
        pairs = [(int(torch.randint(0, i, (), generator=random)), i) for i in range(1, count)]
    elif kind == "hub":
        pairs = [(0, i) for i in range(1, count)] + [(1, i) for i in range(2, count, 5)]
    else:
        share = 0.6 if kind == "dense" else 0.7 / count
        table = torch.rand(count, count, generator=random).triu(1) > 1 - share
        pairs = [(int(i), int(j)) for i, j in table.nonzero()]
    return Graph.from_edges(pairs, count)


def directions(count: int, random: torch.Generator) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(count, WIDTH, generator=random, dtype=torch.float64), dim=1)


def start(kind: str, count: int, distance: float, random: torch.Generator) -> Tensor:
    """Tangent vectors at the origin, in units of half a length."""
    reach = 0.5 * distance * torch.rand(count, 1, generator=random, dtype=torch.float64)
    if kind == "spread":
        return directions(count, random) * reach
    return 0.5 * distance * directions(1, random) + 0.2 * directions(count, random) * reach


def seek(flow: GraphFlow, energy: Energy, graph: Graph, u: Tensor, distance: float) -> Tensor:
    """Ascent on ``energy(F(z)) / energy(z)`` over the start."""
    space = flow.manifold
    u = u.clone().requires_grad_()
    optimiser = torch.optim.Adam([u], lr=0.02 * distance, maximize=True)
    for _ in range(ASCENT):
        optimiser.zero_grad()
        z = space.expmap0(u)
        (energy(flow(z, graph), graph, space) / energy(z, graph, space)).log().backward()
        optimiser.step()
        with torch.no_grad():
            u.mul_((0.5 * distance / u.norm(dim=1, keepdim=True)).clamp_max(1.0))
    return u.detach()


def measure(form: str, manifold: Manifold, kind: str, distance: float, graphs: int) -> Tally:
    flow, energy = GraphFlow(manifold, make_diffusivity(form, WIDTH), eta=None), FORMS[form]
    tally = Tally()
    for seed in range(graphs):
        random = torch.Generator().manual_seed(seed)
        shape = KINDS[seed % len(KINDS)]
        graph = random_graph(shape, random)
        u = start(kind, graph.num_nodes, distance, random)
        if kind == "sought" and graph.num_edges:
            u = seek(flow, energy, graph, u, distance)
        z = manifold.expmap0(u).detach()
        before = float(energy(z, graph, manifold))
        for step in range(STEPS):
            z = flow(z, graph).detach()
            after = float(energy(z, graph, manifold))
            tally.steps += 1
            # Below this an energy is rounding: the nodes have met.
            if after > before * (1 + 1e-9) and after > 1e-12:
                tally.rises += 1
                tally.first += step == 0
                tally.worst = max(tally.worst, after / before) if before else tally.worst
                tally.kinds |= {shape}
            before = after
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=200, help="how many random graphs per line")
    parser.add_argument("--sought", type=int, default=12, help="how many of them to search for a rise on")
    options = parser.parse_args()
    print(f"{options.graphs} graphs, {STEPS} steps each, without residual, tau = 1, curvature -1\n")
    print("| weights | energy | space | start | distance | steps that raise it | first steps | worst factor | graphs |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for form, energy in FORMS.items():
        for space, manifold in (("flat", Euclidean(2.0)), ("ball", PoincareBall(1.0))):
            for kind in ("spread", "cluster", "sought"):
                for distance in (4.0,) if space == "flat" else (1.0, 2.0, 4.0, 8.0):
                    tally = measure(
                        form, manifold, kind, distance, options.sought if kind == "sought" else options.graphs
                    )
                    shapes = ", ".join(sorted(tally.kinds)) or "none"
                    print(
                        f"| {form} | {energy.__name__} | {space} | {kind} | {distance:g} | "
                        f"{tally.rises} of {tally.steps} | {tally.first} | {tally.worst:.3g} | {shapes} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
