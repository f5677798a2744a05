"""Compiled loops of the hyperbolicity: 64 breadth-first searches in one pass, and all 4-tuples of a small graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from hgde.graph.measures._compiled import compiled

Array = np.ndarray[Any, Any]


@compiled
def search_64(indptr: Array, indices: Array, sources: Array, lanes: Array, targets: Array) -> Array:
    """Hop distances of pairs ``(sources[lanes[p]], targets[p])``, -1 if not connected. One bit per source (lane)."""
    num_nodes = indptr.size - 1
    seen = np.zeros(num_nodes, dtype=np.uint64)
    front = np.zeros(num_nodes, dtype=np.uint64)
    following = np.zeros(num_nodes, dtype=np.uint64)
    one = np.uint64(1)
    for lane in range(sources.size):
        front[sources[lane]] |= one << np.uint64(lane)
    hops = np.full(targets.size, -1, dtype=np.int32)
    open_pairs = np.arange(targets.size)
    num_open = targets.size
    level = 0
    alive = True
    while alive and num_open > 0:
        for node in range(num_nodes):
            seen[node] |= front[node]
        still_open = 0
        for place in range(num_open):
            pair = open_pairs[place]
            if (seen[targets[pair]] >> np.uint64(lanes[pair])) & one:
                hops[pair] = level
            else:
                open_pairs[still_open] = pair
                still_open += 1
        num_open = still_open
        alive = False
        for node in range(num_nodes):
            reached = np.uint64(0)
            for place in range(indptr[node], indptr[node + 1]):
                reached |= front[indices[place]]
            reached &= ~seen[node]
            following[node] = reached
            if reached:
                alive = True
        front, following = following, front
        level += 1
    return hops


@compiled
def every_tuple(distance: Array) -> tuple[int, int]:
    """Twice the largest delta and twice the sum of deltas over all 4-tuples, from an ``[N, N]`` distance table."""
    num_nodes = distance.shape[0]
    largest = 0
    total = 0
    for a in range(num_nodes):
        for b in range(a + 1, num_nodes):
            for c in range(b + 1, num_nodes):
                for d in range(c + 1, num_nodes):
                    first = distance[a, b] + distance[c, d]
                    second = distance[a, c] + distance[b, d]
                    third = distance[a, d] + distance[b, c]
                    top = max(first, second, third)
                    middle = first + second + third - top - min(first, second, third)
                    largest = max(largest, top - middle)
                    total += top - middle
    return largest, total
