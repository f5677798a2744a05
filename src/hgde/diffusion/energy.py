"""Hyperbolic Dirichlet energy: how far apart joined nodes are."""

from __future__ import annotations

from torch import Tensor

from hgde.geometry import ball
from hgde.graph import Graph


def dirichlet_energy(z: Tensor, graph: Graph, c: Tensor | float) -> Tensor:
    """Hyperbolic Dirichlet energy (paper Def. dirichlet-energy-definition).

    ``1/2 sum_{(i,j) in E} d(exp_o(log_o(z_i) / sqrt(1 + d_i)), exp_o(log_o(z_j) / sqrt(1 + d_j)))^2``, over undirected
    edges counted once, ``d_i`` the degree.

    Args:
        z: points ``[..., N, d]``; leading axes (such as the times of a trajectory) are kept.
        graph: the graph; self-loops add nothing.
        c: the ball has curvature ``-c``.

    Returns:
        One number for each leading index. Cost O(M d).
    """
    if z.shape[-2] != graph.num_nodes:
        raise ValueError(f"the embedding has {z.shape[-2]} rows, the graph {graph.num_nodes} nodes")
    shrink = (1 + graph.degree.to(z.dtype)).rsqrt().unsqueeze(-1)
    scaled = ball.expmap0(ball.logmap0(z, c) * shrink, c)
    u, v = graph.undirected_edges
    return 0.5 * ball.dist(scaled[..., u, :], scaled[..., v, :], c).square().sum(-1)
