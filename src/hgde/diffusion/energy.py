"""Energies of a state on a graph: how far apart joined nodes are. Each form of diffusion has its own that never rises.

In flat space, at ``tau = 1`` and without residual or activation:

* ``isotropic`` (row-stochastic, ``P = D^{-1}(A + I)``, ``D`` the degree with its loop) never raises
  :func:`edge_energy`. Proof: on each coordinate it is ``x^T (D - A - I) x / 2 = x^T D (I - P) x / 2``. ``P`` is
  self-adjoint for ``<x, y> = x^T D y`` with eigenvalues ``p`` in ``(-1, 1]``, and ``x -> P x`` multiplies the part of
  the energy along each eigenvector, ``d (1 - p) / 2``, by ``p^2 <= 1``.
* ``symmetric`` (``S = D^{-1/2}(A + I) D^{-1/2}``) never raises :func:`dirichlet_energy`. Proof: with
  ``1 + degree = D`` that energy is ``sum_edges w (x_i / sqrt(d_i) - x_j / sqrt(d_j))^2 / 2 = x^T (I - S) x / 2``; ``S``
  is symmetric with the eigenvalues of ``P``, and ``x -> S x`` multiplies each part by ``p^2 <= 1``.

Both need an undirected graph with symmetric weights. On curved spaces they are no theorem; ``docs/numerics.md`` says
where and by how much the energies rise, as measured by ``benchmarks/energy.py``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.diffusion.degrees import degrees, edge_weights
from hgde.geometry import Manifold
from hgde.graph import Graph


def dirichlet_energy(z: Tensor, graph: Graph, manifold: Manifold) -> Tensor:
    """Hyperbolic Dirichlet energy (paper Def. dirichlet-energy-definition), degree-normalised.

    ``1/2 sum_{(i,j) in E} w_ij d(exp_o(log_o(z_i) / sqrt(1 + d_i)), exp_o(log_o(z_j) / sqrt(1 + d_j)))^2``, over
    undirected edges counted once, ``d_i`` the sum of arriving weights (the one is a loop, unless
    the node has its own).

    Args:
        z: points ``[..., N, d]``; leading axes (such as the times of a trajectory) are kept.
        graph: the graph; self-loops add nothing themselves.
        manifold: the space of the points.

    Returns:
        One number for each leading index. Cost O(M d).

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> graph = Graph.from_edges(torch.tensor([[0], [1]]), 2)
    >>> z = torch.tensor([[0.3, 0.0], [0.3, 0.0]])          # neighbours that agree
    >>> round(dirichlet_energy(z, graph, PoincareBall()).item(), 6)
    0.0
    """
    _check(z, graph)
    arriving, _ = degrees(graph, z.dtype, self_loops=True)
    shrunk = manifold.expmap0(manifold.logmap0(z) * arriving.rsqrt().unsqueeze(-1))
    return _energy(shrunk, graph, manifold)


def edge_energy(z: Tensor, graph: Graph, manifold: Manifold) -> Tensor:
    """``1/2 sum_{(i,j) in E} w_ij d(z_i, z_j)^2`` over undirected edges counted once; shapes as above. Cost O(M d).

    >>> import torch
    >>> from hgde import Euclidean, Graph
    >>> graph = Graph.from_edges(torch.tensor([[0], [1]]), 2)
    >>> edge_energy(torch.tensor([[0.0], [2.0]]), graph, Euclidean()).item() > 0
    True
    """
    _check(z, graph)
    return _energy(z, graph, manifold)


def _energy(z: Tensor, graph: Graph, manifold: Manifold) -> Tensor:
    # An edge stored in both directions counts half each time, one stored in one direction once: the mean of a pair.
    u, v = graph.undirected_edges
    squared = manifold.dist(z[..., u, :], z[..., v, :]).square()
    return 0.5 * (_undirected_weights(graph, z.dtype) * squared).sum(-1)


def _undirected_weights(graph: Graph, dtype: torch.dtype) -> Tensor | float:
    """The weight of each undirected edge, ``[M]``: the mean over the directions it is stored in."""
    if graph.weights is None:
        return 1.0
    pair = graph.undirected_index
    proper = pair >= 0
    total, count = (torch.zeros(graph.undirected_edges.shape[1], dtype=dtype, device=graph.device) for _ in range(2))
    total.index_add_(0, pair[proper], edge_weights(graph, dtype)[proper])
    count.index_add_(0, pair[proper], torch.ones_like(pair[proper], dtype=dtype))
    return total / count


def _check(z: Tensor, graph: Graph) -> None:
    if z.shape[-2] != graph.num_nodes:
        raise ValueError(f"the embedding has {z.shape[-2]} rows, the graph {graph.num_nodes} nodes")
