"""Compiled loops of the hyperbolicity: 64 breadth-first searches in one pass, and all 4-tuples of a small graph."""

from __future__ import annotations

from hgde.compiler.dialect import Int, Wholes, kernel


@kernel
def search_64(
    nodes: Int, indptr: Wholes, indices: Wholes, lanes: Int, sources: Wholes, pairs: Int, lane: Wholes,
    targets: Wholes, seen: Wholes, front: Wholes, following: Wholes, still: Wholes, hops: Wholes,
) -> None:  # fmt: skip
    """Hop distances of pairs ``(sources[lane[p]], targets[p])``, -1 if not connected. One bit per source (lane).

    ``seen``, ``front`` and ``following`` come in as zeros, one for each node; ``still`` has room for every pair.
    """
    for n in range(lanes):
        front[sources[n]] |= 1 << n
    for p in range(pairs):
        still[p], hops[p] = p, -1
    open_pairs, level, alive = pairs, 0, 1
    while alive != 0 and open_pairs > 0:
        for node in range(nodes):
            seen[node] |= front[node]
        left = 0
        for place in range(open_pairs):
            pair = still[place]
            if (seen[targets[pair]] >> lane[pair]) & 1 != 0:
                hops[pair] = level
            else:
                still[left] = pair
                left += 1
        open_pairs, alive = left, 0
        for node in range(nodes):
            reached = 0
            for place in range(indptr[node], indptr[node + 1]):
                reached |= front[indices[place]]
            reached &= ~seen[node]
            following[node] = reached
            alive |= reached
        front, following = following, front
        level += 1


@kernel
def every_tuple(nodes: Int, distance: Wholes, found: Wholes) -> None:
    """Twice the largest delta and twice the sum of deltas over all 4-tuples, from an ``[N, N]`` distance table."""
    largest, total = 0, 0
    for a in range(nodes):
        for b in range(a + 1, nodes):
            for c in range(b + 1, nodes):
                for d in range(c + 1, nodes):
                    first = distance[a * nodes + b] + distance[c * nodes + d]
                    second = distance[a * nodes + c] + distance[b * nodes + d]
                    third = distance[a * nodes + d] + distance[b * nodes + c]
                    top = max(max(first, second), third)
                    middle = first + second + third - top - min(min(first, second), third)
                    largest = max(largest, top - middle)
                    total += top - middle
    found[0], found[1] = largest, total
