"""What the package is measured against: the textbook form of the flow, a PyG network, GraphRicciCurvature."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

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


def pyg_epoch(data: Citations, width: int, layers: int) -> Callable[[], None]:
    """One training epoch of a PyG GCN whose first layer multiplies sparse features, with dropout on their values."""
    from torch_geometric.nn import GCNConv

    classes = int(data.labels.max()) + 1
    widths = [width] * (layers - 1) + [classes]
    first = nn.Parameter(torch.empty(data.features.shape[1], widths[0]))
    nn.init.xavier_uniform_(first)
    convolutions = nn.ModuleList(GCNConv(width, w, cached=True) for w in widths)
    convolutions[0].lin = nn.Identity()
    parameters = [first, *convolutions.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=0.01, fused=True)
    edges = data.graph.edge_index
    features = data.features

    warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")

    def epoch() -> None:
        optimiser.zero_grad(set_to_none=True)
        values = nn.functional.dropout(features.values, 0.5)
        x = torch.sparse_csr_tensor(features.indptr, features.indices, values, features.shape, check_invariants=False)
        h = x @ first
        for n, convolution in enumerate(convolutions):
            h = convolution(h, edges)
            if n < len(convolutions) - 1:
                h = nn.functional.dropout(h.relu(), 0.5)
        nn.functional.cross_entropy(h[data.train], data.labels[data.train]).backward()
        optimiser.step()

    return epoch


def hgde_epoch(data: Citations, width: int, time: float) -> Callable[[], None]:
    """One training epoch of the package's own model, as its trainer runs it: classes of the training nodes alone."""
    from hgde import randomness
    from hgde.models import HGDE, Shape
    from hgde.sections import build
    from hgde.tasks.base import Learner, SelectNodes
    from hgde.training.optimisers import Optimisers
    from hgde.training.settings import TrainingSettings

    classes = int(data.labels.max()) + 1
    model = HGDE(
        build(HGDE.Settings, {"width": width, "time": time}),
        Shape(int(data.features.shape[1]), data.graph.num_nodes, classes),
    )
    learner = Learner(model, SelectNodes(), classes).train()
    model.prepare(data.graph)
    optimisers = Optimisers(learner, TrainingSettings())
    source = randomness.make_generator(0)

    def epoch() -> None:
        optimisers.zero_grad()
        with randomness.use(source):
            logits = learner(data.features, data.graph, data.train)
        nn.functional.cross_entropy(logits, data.labels[data.train]).backward()
        optimisers.step(1000)  # long after the warm-up

    return epoch


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
