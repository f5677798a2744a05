"""Graphs from features: exact nearest neighbours in blocks, never a table of all pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph, GraphError

_ROUNDING = 2.0**-52
_EQUAL = 1e-12
_PAIR_NUMBERS = 4_000_000


def nearest_neighbours(features: Features, k: int, *, block: int = 512) -> Tensor:
    """The ``k`` nearest rows of every row by Euclidean distance, the row itself first: ``[N, k]``.

    ``|x - y|^2 = |x|^2 + |y|^2 - 2<x, y>`` in double precision on centred features finds the rows that can be among the
    nearest, given what rounding may have done to it; these are measured by ``sum (x - y)^2``, whose value depends on
    the two rows alone. Equal distances go to the smaller number, however many there are, so the answer does not depend
    on ``block``. Cost: ``N^2 F`` multiplications, ``block N`` numbers at once; rows that are copies of each other by
    the thousand cost as much again.
    """
    dense = features.to_dense() if isinstance(features, SparseFeatures) else features
    num_nodes = dense.shape[0]
    if not 1 <= k <= num_nodes:
        raise GraphError(f"k must be between 1 and the number of nodes ({num_nodes}), got {k}")
    points = dense.double()
    if not bool(torch.isfinite(points).all()):
        raise GraphError("nearest neighbours need finite features, got NaN or infinity; fill in or drop such rows")
    # Distances do not change, the cancellation in the formula does.
    centred = points - points.mean(0)
    square = (centred * centred).sum(1)
    # What the products may lose, and what centring lost of coordinates far from zero.
    width, far = points.shape[1], points.abs().max() if points.numel() else 0.0
    rounding = _ROUNDING * ((width + 8) * square + 4 * width**0.5 * far * square.sqrt())
    nearest = torch.empty(num_nodes, k, dtype=torch.int64, device=points.device)
    for start in range(0, num_nodes, block):
        rows = torch.arange(start, min(start + block, num_nodes), device=points.device)
        # What all entries of a row share, |x|^2, is left out.
        bound = torch.addmm((square + rounding)[None, :], centred[rows], centred.T, alpha=-2)
        largest = torch.topk(bound, k, largest=False).values[:, -1:]
        possible = bound.sub_(2 * rounding) <= largest + 2 * rounding[rows, None]
        possible[torch.arange(rows.numel(), device=points.device), rows] = True
        nearest[rows] = _closest(points, rows, possible, k)
    return nearest


def _closest(points: Tensor, rows: Tensor, possible: Tensor, k: int) -> Tensor:
    """Of the possible columns of each row the ``k`` closest, itself first, equal ones in order of their number."""
    row, column = possible.nonzero().T
    at_once = max(1, _PAIR_NUMBERS // max(points.shape[1], 1))
    exact = torch.cat(
        [
            (points[rows[one]] - points[other]).square().sum(1)
            for one, other in zip(row.split(at_once), column.split(at_once), strict=True)
        ]
    )
    exact[rows[row] == column] = -1
    order = torch.argsort(exact, stable=True)
    order = order[torch.argsort(row[order], stable=True)]
    row, column, exact = row[order], column[order], exact[order]
    # Entries equal to rounding share the rank of the first of their run; the column's number then decides.
    fresh = torch.ones_like(row, dtype=torch.bool)
    fresh[1:] = (row[1:] != row[:-1]) | (exact[1:] - exact[:-1] > _EQUAL * exact[1:].abs())
    rank = torch.cumsum(fresh, 0)
    column = column[torch.argsort(rank * points.shape[0] + column)]
    first = torch.searchsorted(row, torch.arange(rows.numel(), device=row.device))
    return column[first[:, None] + torch.arange(k, device=row.device)]


def knn_graph(features: Features, k: int = 5, *, include_self: bool = True, block: int = 512) -> Graph:
    """The undirected ``k``-nearest-neighbour graph: an edge if either end counts the other among its ``k``.

    With ``include_self`` the node itself is one of its ``k`` (scikit-learn's ``include_self=True``, DIFFormer's habit),
    so ``k = 5`` joins each node with its 4 nearest others. Loops are not stored.
    """
    num_nodes = int(features.shape[0])
    if not include_self and not 1 <= k < num_nodes:
        raise GraphError(f"k must be between 1 and the number of other nodes ({num_nodes - 1}), got {k}")
    neighbours = nearest_neighbours(features, k if include_self else k + 1, block=block)[:, 1:]
    targets = torch.arange(num_nodes, device=neighbours.device).repeat_interleave(neighbours.shape[1])
    return Graph.from_edges(torch.stack([neighbours.reshape(-1), targets]), num_nodes)
