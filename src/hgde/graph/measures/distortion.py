"""How well distances of embedded nodes follow distances along the graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from hgde.graph.graph import Graph


def graph_distortion(graph: Graph, distance: Callable[[Tensor, Tensor], Tensor], sources: int = 64) -> float:
    """Mean of ``|s d(u, v) / hops(u, v) - 1|`` over connected pairs, at the scale ``s`` that makes it least.

    ``distance(u, v)`` gives embedded distances of nodes ``[P]``; edges are taken both ways. Pairs are those of up to
    ``sources`` nodes, evenly spaced by number, with all others: ``O(sources (N + E))``. 0 is an isometry up to scale;
    1 is what a scale of zero gives, so a larger value cannot come out. NaN for a graph without edges.

    >>> import torch
    >>> path = Graph.from_edges([(0, 1), (1, 2)], 3)
    >>> place = torch.tensor([0.0, 5.0, 10.0])
    >>> graph_distortion(path, lambda u, v: (place[u] - place[v]).abs())
    0.0
    """
    from scipy.sparse.csgraph import dijkstra

    chosen = np.unique(np.linspace(0, graph.num_nodes - 1, min(sources, graph.num_nodes)).astype(np.int64))
    hops = dijkstra(graph.to_scipy(), directed=False, unweighted=True, indices=chosen)
    row, column = np.nonzero(np.isfinite(hops) & (hops > 0))
    if row.size == 0:
        return float("nan")
    embedded = distance(torch.from_numpy(chosen[row]), torch.from_numpy(column)).detach().double().cpu().numpy()
    ratio = embedded / hops[row, column]
    return _least_mean_deviation(ratio)


def _least_mean_deviation(ratio: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """``min_s mean |s r - 1|``: convex and piecewise linear, its corners at ``s = 1 / r``.

    The slope at ``s`` is the sum of ``r`` where ``s r > 1`` minus that where ``s r < 1``: the least is at the median of
    ``1 / r`` weighted by ``r``.
    """
    descending = np.sort(ratio)[::-1]
    total = np.cumsum(descending)
    if total[-1] <= 0:
        return 1.0
    middle = descending[np.searchsorted(total, 0.5 * total[-1])]
    return float(np.abs(ratio / middle - 1).mean())
