"""What the package is measured against: the textbook form of the flow, GraphRicciCurvature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from hgde.bench.problems import Citations, Problem


def textbook_flow(problem: Problem, c: Tensor, eta: tuple[float, float, float]) -> Callable[[], Tensor]:
    """The flow written as in the paper with geoopt's maps: log map on gathered edges, exp map, midpoint."""
    import geoopt

    ball = geoopt.PoincareBall(c=float(c.detach()))
    graph, weights = problem.graph, torch.tensor(eta).expand(problem.graph.num_nodes, 3)

    def flow() -> Tensor:
        z = problem.z
        logs = ball.logmap(z[graph.rows], z[graph.indices])
        v = torch.zeros_like(z).index_add(0, graph.rows, problem.weights[:, None] * logs)
        points = torch.stack([ball.expmap(z, v), z, z], 1)
        result: Tensor = ball.weighted_midpoint(points, weights, reducedim=[1], dim=-1, lincomb=False)
        return result

    return flow


def ricci_package(data: Citations, processes: int) -> tuple[Any, Callable[[], Any]]:
    """GraphRicciCurvature's exact method on the largest component, with its own worker processes."""
    import networkx as nx
    from GraphRicciCurvature.OllivierRicci import OllivierRicci

    whole = nx.Graph()
    whole.add_edges_from(data.graph.undirected_edges.T.tolist())
    part = whole.subgraph(max(nx.connected_components(whole), key=len)).copy()

    def compute() -> Any:
        measured = OllivierRicci(part, alpha=0.5, method="OTD", proc=processes, verbose="ERROR")
        measured.compute_ricci_curvature()
        return measured.G

    return part, compute
