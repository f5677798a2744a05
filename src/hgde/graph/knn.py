"""Graphs from features: exact nearest neighbours in blocks, never a table of all pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph, GraphError


def nearest_neighbours(features: Features, k: int, *, block: int = 512) -> Tensor:
    """The ``k`` nearest rows of every row by Euclidean distance, the row itself first: ``[N, k]``.

    ``|x - y|^2 = |x|^2 + |y|^2 - 2<x, y>`` in double precision on centred features; equal distances go to the smaller
    number, so the answer does not depend on ``block``. Cost: ``N^2 F`` multiplications, ``block * N`` numbers at once.
    """
    dense = features.to_dense() if isinstance(features, SparseFeatures) else features
    num_nodes = dense.shape[0]
    if not 1 <= k <= num_nodes:
        raise GraphError(f"k must be between 1 and the number of nodes ({num_nodes}), got {k}")
    points = dense.double()
    # Distances do not change, the cancellation in the formula does.
    points = points - points.mean(0)
    square = (points * points).sum(1)
    found = torch.empty(num_nodes, k, dtype=torch.int64, device=points.device)
    for start in range(0, num_nodes, block):
        rows = torch.arange(start, min(start + block, num_nodes), device=points.device)
        distance = square[rows, None] + square[None, :] - 2 * (points[rows] @ points.T)
        distance[torch.arange(rows.numel(), device=points.device), rows] = -torch.inf
        found[rows] = _smallest(distance, k)
    return found


def _smallest(distance: Tensor, k: int) -> Tensor:
    """Columns of the ``k`` smallest entries of each row, equal ones (to rounding) in order of their number."""
    num_columns = distance.shape[1]
    shortlist = min(num_columns, 2 * k + 8)
    values, columns = torch.topk(distance, shortlist, largest=False, sorted=True)
    tolerance = 1e-12 * values[:, -1:].abs().clamp_min(1e-300)
    # Entries equal to rounding share the rank of the first of their run; the column number then decides.
    fresh = torch.ones_like(values, dtype=torch.bool)
    fresh[:, 1:] = values[:, 1:] - values[:, :-1] > tolerance
    rank = torch.cumsum(fresh, dim=1)
    order = torch.argsort(rank * num_columns + columns, dim=1)
    return torch.gather(columns, 1, order)[:, :k]


def knn_graph(features: Features, k: int = 5, *, include_self: bool = True, block: int = 512) -> Graph:
    """The undirected ``k``-nearest-neighbour graph: an edge if either end counts the other among its ``k``.

    With ``include_self`` the node itself is one of its ``k`` (scikit-learn's ``include_self=True``, DIFFormer's habit),
    so ``k = 5`` joins each node with its 4 nearest others. Loops are not stored.
    """
    num_nodes = int(features.shape[0])
    neighbours = nearest_neighbours(features, k if include_self else k + 1, block=block)[:, 1:]
    targets = torch.arange(num_nodes, device=neighbours.device).repeat_interleave(neighbours.shape[1])
    return Graph.from_edges(torch.stack([neighbours.reshape(-1), targets]), num_nodes)
