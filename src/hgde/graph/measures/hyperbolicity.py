"""Gromov's four-point hyperbolicity: how far a graph's distances are from those of a tree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hgde.compiler.load import function
from hgde.graph.graph import Graph

Array = np.ndarray[Any, Any]

_EXACT_UP_TO = 200
_LANES = 64


@dataclass(frozen=True)
class Hyperbolicity:
    """Delta over 4-tuples of distinct nodes of the largest component.

    ``maximum`` is delta itself if ``exact``, else a lower bound of it. ``low`` and ``high`` bound the mean over all
    4-tuples with 95 % confidence (equal to it if ``exact``). ``samples`` is the number of 4-tuples looked at.
    """

    maximum: float
    mean: float
    low: float
    high: float
    samples: int
    exact: bool


def hyperbolicity(
    graph: Graph, samples: int = 50_000, seed: int = 0, *, exact_up_to: int = _EXACT_UP_TO
) -> Hyperbolicity:
    """Delta of four nodes is half the difference of the two largest of the three sums of opposite distances.

    ``d(a,b) + d(c,d)``, ``d(a,c) + d(b,d)``, ``d(a,d) + d(b,c)``, hop distances in the largest component. A tree has
    delta 0. Components of up to ``exact_up_to`` nodes are measured exactly (``N^4 / 24`` 4-tuples), larger ones from
    ``samples`` independent 4-tuples; distances come from breadth-first searches 64 sources at a time, so no table of
    all pairs is made.
    """
    if samples < 2:
        raise ValueError(f"expected at least two samples, for a confidence interval of their mean, got {samples}")
    indptr, indices = _largest_component(graph)
    num_nodes = indptr.size - 1
    if num_nodes < 4:
        return Hyperbolicity(0.0, 0.0, 0.0, 0.0, 0, True)
    if num_nodes <= exact_up_to:
        distance = _pair_distances(indptr, indices, *np.divmod(np.arange(num_nodes**2), num_nodes))
        found = np.zeros(2, dtype=np.int64)
        function("searches.every_tuple", "float64").call(num_nodes, distance, found)
        twice_max, twice_sum = found.tolist()
        count = math.comb(num_nodes, 4)
        mean = twice_sum / 2 / count
        return Hyperbolicity(twice_max / 2, mean, mean, mean, count, True)
    nodes = _distinct_tuples(num_nodes, samples, np.random.RandomState(seed))
    first, second = np.array([(0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2)]).T
    pairs = _pair_distances(indptr, indices, nodes[:, first].reshape(-1), nodes[:, second].reshape(-1))
    sums = np.sort(pairs.reshape(samples, 3, 2).sum(2), axis=1)
    delta = (sums[:, 2] - sums[:, 1]) / 2
    mean, spread = float(delta.mean()), 1.96 * float(delta.std(ddof=1)) / math.sqrt(samples)
    return Hyperbolicity(float(delta.max()), mean, max(mean - spread, 0.0), mean + spread, samples, False)


def _largest_component(graph: Graph) -> tuple[Array, Array]:
    from scipy.sparse.csgraph import connected_components

    adjacency = graph.to_scipy()
    adjacency = (adjacency + adjacency.T).tocsr()
    if graph.num_nodes == 0:
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    _, label = connected_components(adjacency, directed=False)
    nodes = np.flatnonzero(label == np.bincount(label).argmax())
    part = adjacency[nodes][:, nodes].tocsr()
    return part.indptr.astype(np.int64), part.indices.astype(np.int64)


def _distinct_tuples(num_nodes: int, samples: int, random: np.random.RandomState) -> Array:
    """``[samples, 4]`` uniform 4-tuples of distinct nodes: draw, and draw again where two are the same."""
    nodes = random.randint(0, num_nodes, size=(samples, 4))
    while True:
        ordered = np.sort(nodes, axis=1)
        again = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(1))
        if again.size == 0:
            return nodes
        nodes[again] = random.randint(0, num_nodes, size=(again.size, 4))


def _pair_distances(indptr: Array, indices: Array, sources: Array, targets: Array) -> Array:
    """Hop distances of the listed pairs, grouped by source; both ends in one connected component."""
    sources, targets = sources.astype(np.int64, copy=False), targets.astype(np.int64, copy=False)
    order = np.argsort(sources, kind="stable")
    distinct, lane = np.unique(sources[order], return_inverse=True)
    starts = np.searchsorted(lane, np.arange(0, distinct.size + _LANES, _LANES))
    hops = np.empty(sources.size, dtype=np.int64)
    search, num_nodes = function("searches.search_64", "float64"), indptr.size - 1
    for batch, (begin, end) in enumerate(pairwise(starts)):
        places, lanes = order[begin:end], distinct[batch * _LANES : (batch + 1) * _LANES]
        seen, front, following = np.zeros((3, num_nodes), dtype=np.int64)
        still, found = np.empty((2, end - begin), dtype=np.int64)
        search.call(
            num_nodes, indptr, indices, lanes.size, lanes, end - begin, lane[begin:end] - batch * _LANES,
            targets[places], seen, front, following, still, found,
        )  # fmt: skip
        hops[places] = found
    return hops
