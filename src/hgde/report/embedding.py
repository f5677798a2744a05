"""What a trained model's embedding looks like: points of the ball over diffusion time, weights, a view of the disk."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.diffusion import Operator, dirichlet_energy, edge_energy
from hgde.geometry import Lorentz, Manifold, PoincareBall, ball
from hgde.graph import Graph
from hgde.models import HGDE
from hgde.pipeline import Fitted
from hgde.report.contents import DiskView, EnergyCurve, NodeWeights
from hgde.report.measures import top_weights
from hgde.report.views import make_disk_view

DEFAULT_METHOD = "principal"
MOST_FRAMES = 13
"""Diffusion times that a slider shows; the first and the last are always among them."""
_MOST_GLOBAL_NODES = 4000  # rows of global weights are N x N numbers
_FLAT_REACH = 1.5  # distance at which most points of a flat embedding are drawn


def ball_points(points: Tensor, manifold: Manifold) -> tuple[Tensor, float, str]:
    """Points ``[..., coordinates]`` of any space in a ball: points ``[..., d]``, its ``c``, what was done.

    The ball and Lorentz's model are the same space. Points of a flat or product space are taken by the direction and
    distance they have from the origin, on a common scale; distances between them are not kept.
    """
    wide = points.detach().double().cpu()
    if isinstance(manifold, PoincareBall):
        return wide, float(manifold.c.detach()), ""
    tangent = copy.deepcopy(manifold).cpu().double().logmap0(wide)
    if isinstance(manifold, Lorentz):
        c = float(manifold.c.detach())
        return ball.expmap0(tangent, c), c, ""
    reach = float(tangent.norm(dim=-1).flatten().quantile(0.95)) if tangent.numel() else 0.0
    tangent = tangent * (0.5 * _FLAT_REACH / reach if reach > 0 else 1.0)
    return ball.expmap0(tangent, 1.0), 1.0, f"{type(manifold).__name__} coordinates drawn from the origin, rescaled"


@torch.no_grad()
def states_over_time(fitted: Fitted, dataset: Any = None) -> tuple[list[float], Tensor]:
    """Diffusion times and the embedding there ``[T, N, coordinates]``; a model that does not diffuse has one time."""
    features, graph, _ = fitted.inputs(dataset)
    model = fitted.learner.eval().model
    if isinstance(model, HGDE):
        return model.trajectory(features, graph)
    points: Tensor = model.embed(features, graph)
    return [0.0], points[None]


@torch.no_grad()
def energy_curve(fitted: Fitted, times: list[float], states: Tensor) -> EnergyCurve | None:
    """Dirichlet energies along the diffusion, degree-normalised (paper Def. 3) and over edges; HGDE alone has them."""
    model = fitted.learner.model
    if not isinstance(model, HGDE) or len(times) < 2:
        return None
    _, graph, _ = fitted.inputs()
    curves = {
        "degree-normalised": dirichlet_energy(states, graph, model.manifold).tolist(),
        "over edges": edge_energy(states, graph, model.manifold).tolist(),
    }
    return EnergyCurve(times, curves)


@torch.no_grad()
def node_weights(fitted: Fitted, state: Tensor) -> dict[str, Any]:
    """The largest local and global weights of every node at a state, as fields of a :class:`DiskView`."""
    model = fitted.learner.model
    if not isinstance(model, HGDE):
        return {}
    _, graph, _ = fitted.inputs()
    operator = model.block.flow.diffusivity(state, graph, model.manifold)
    found = {"local_weights": _local(operator, graph)}
    if operator.everywhere is not None and graph.num_nodes <= _MOST_GLOBAL_NODES:
        found["global_weights"] = _global(operator, graph)
    return found


def _local(operator: Operator, graph: Graph) -> NodeWeights:
    values = operator.edges(graph).double().cpu()
    values = values.mean(-1) if values.dim() == 2 else values
    return top_weights(graph.rows.cpu().numpy(), graph.indices.cpu().numpy(), values.numpy(), graph.num_nodes)


def _global(operator: Operator, graph: Graph, k: int = 10) -> NodeWeights:
    assert operator.everywhere is not None
    k = min(k, graph.num_nodes)
    nodes, values = [], []
    for some in torch.arange(graph.num_nodes).split(512):
        top = (float(operator.beta) * operator.everywhere.rows(some)).topk(k)
        nodes.append(top.indices.cpu().numpy())
        values.append(top.values.double().cpu().numpy())
    return NodeWeights(np.concatenate(nodes), np.concatenate(values))


def disk_view(
    fitted: Fitted, times: list[float], states: Tensor, *, method: str | None = None, **facts: Any
) -> DiskView:
    """The embedding over time in the disk, with degrees, edges and weights; ``facts`` are what else is known of nodes.

    ``method`` is one of :data:`hgde.report.projection.METHODS`; principal directions, which are instant, by default.
    """
    kept = sorted({round(k * (len(times) - 1) / (MOST_FRAMES - 1)) for k in range(MOST_FRAMES)})
    points, c, words = ball_points(states[kept], fitted.learner.model.manifold)
    graph = fitted.training_data().problem.graph
    view = make_disk_view(
        points,
        c,
        times=[times[k] for k in kept],
        method=method or DEFAULT_METHOD,
        edges=graph.undirected_edges.cpu().numpy(),
        degrees=torch.bincount(graph.rows, minlength=graph.num_nodes).cpu().numpy(),
        **node_weights(fitted, states[-1]),
        **facts,
    )
    return replace(view, method=f"{view.method} ({words})") if words else view
