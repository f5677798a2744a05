"""Compiled optimal transport between the neighbourhoods of the two ends of an edge.

After the mass that both ends share is cancelled, every remaining pair of places is 1, 2 or 3 steps apart. Sent along
shortest paths of the residual network, whose lengths never fall and never exceed 3, the flow splits into what travels
at cost 1, at cost 2, and a rest that needs no search: ``W1 = f1 + 2 f2 + 3 (total - f1 - f2)``. Which places are one or
at most two steps from a sender is kept as bits, so that a search looks at 64 places at a time.

Arrays are filled entry by entry: each whole-array statement would cost numba a second or more to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hgde.graph.measures._compiled import compiled, inner

_FAR = 99
_ONE = np.uint64(1)
_NONE = np.uint64(0)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@intrinsic
def _lowest(typingctx: Any, word: Any) -> Any:
    """Place of the lowest bit that is set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@inner
def _set(bits: Any, n: int) -> None:
    bits[n >> 6] |= _ONE << np.uint64(n & 63)


@inner
def _clear(bits: Any, n: int) -> None:
    bits[n >> 6] &= ~(_ONE << np.uint64(n & 63))


@inner
def _has(bits: Any, n: int) -> bool:
    return (bits[n >> 6] >> np.uint64(n & 63)) & _ONE != 0


@inner
def _cost(one: Any, two: Any, s: int, t: int) -> int:
    if _has(one[s], t):
        return 1
    return 2 if _has(two[s], t) else 3


@inner
def _potentials(
    supply: Any, demand: Any, one: Any, two: Any, users: Any, tiny: float, dist: Any, within: Any, queue: Any,
    queued: Any,
) -> int:  # fmt: skip
    """Residual distance of every place from the supplies left; returns that of the nearest unmet demand.

    Receivers lie at 1, 2 or 3 (any sender reaches any receiver in 3). ``within[k]`` gathers those at ``k`` or nearer.
    """
    s_count, t_count = len(supply), len(demand)
    places, words = s_count + t_count, one.shape[1]
    for k in range(words):
        within[0, k] = within[1, k] = within[2, k] = _NONE
    head, waiting = 0, 0
    for n in range(places):
        dist[n], queued[n] = _FAR, False
    for s in range(s_count):
        if supply[s] > tiny:
            dist[s], queued[s] = 0, True
            queue[waiting] = s
            waiting += 1
    for t in range(t_count):
        dist[s_count + t], queued[s_count + t] = 3, True
        queue[waiting] = s_count + t
        waiting += 1
    while waiting > 0:
        n = queue[head]
        head = head + 1 if head + 1 < places else 0
        waiting -= 1
        queued[n] = False
        if n < s_count:
            for cost in range(1, 3):
                reach = dist[n] + cost
                if reach > 2:
                    break
                for k in range(words):
                    near = one[n, k] if cost == 1 else two[n, k]
                    fresh = near & ~within[reach, k]
                    for level in range(reach, 3):
                        within[level, k] |= fresh
                    while fresh != 0:
                        t = (k << 6) + _lowest(fresh)
                        fresh &= fresh - _ONE
                        dist[s_count + t] = reach
                        if not queued[s_count + t]:
                            queued[s_count + t] = True
                            queue[(head + waiting) % places] = s_count + t
                            waiting += 1
        else:
            t = n - s_count
            for k in range(users.shape[1]):
                word = users[t, k]
                while word != 0:
                    s = (k << 6) + _lowest(word)
                    word &= word - _ONE
                    reach = dist[n] - _cost(one, two, s, t)
                    if reach < dist[s]:
                        dist[s] = reach
                        if not queued[s]:
                            queued[s] = True
                            queue[(head + waiting) % places] = s
                            waiting += 1
    nearest = _FAR
    for t in range(t_count):
        if demand[t] > tiny:
            nearest = min(nearest, dist[s_count + t])
    return nearest


@inner
def _next_receiver(one: Any, two: Any, within: Any, alive: Any, open_: Any, s: int, reach: int) -> int:
    """A receiver not yet visited on a shortest arc out of ``s``, one with unmet demand if there is any; else -1."""
    other = -1
    for cost in range(1, 4):
        level = reach + cost
        if level > 3:
            break
        for k in range(one.shape[1]):
            at = (within[level, k] if level < 3 else _ALL) & ~within[level - 1, k]
            near = one[s, k]
            if cost == 2:
                near = two[s, k] & ~one[s, k]
            elif cost == 3:
                near = ~two[s, k]
            candidates = near & at & alive[k]
            if candidates & open_[k] != 0:
                return (k << 6) + _lowest(candidates & open_[k])
            if candidates != 0 and other < 0:
                other = (k << 6) + _lowest(candidates)
    return other


@inner
def _augment(
    supply: Any, demand: Any, one: Any, two: Any, flow: Any, users: Any, tiny: float, dist: Any, within: Any,
    level: int, alive: Any, open_: Any, seen: Any, path: Any,
) -> float:  # fmt: skip
    """Push flow along paths of length ``level`` until a search of the shortest arcs finds no more; returns how much."""
    s_count, t_count = len(supply), len(demand)
    for k in range(len(alive)):
        alive[k] = open_[k] = _NONE
    for t in range(t_count):
        _set(alive, t)
        if demand[t] > tiny and dist[s_count + t] == level:
            _set(open_, t)
    for n in range(len(seen)):
        seen[n] = False
    pushed = 0.0
    for source in range(s_count):
        while supply[source] > tiny and not seen[source]:
            depth = 0
            path[0] = source
            seen[source] = True
            while depth >= 0:
                n, step = path[depth], -1
                if n < s_count:
                    t = _next_receiver(one, two, within, alive, open_, n, dist[n])
                    if t >= 0:
                        step = s_count + t
                        _clear(alive, t)
                elif _has(open_, n - s_count):
                    break
                else:
                    t = n - s_count
                    for k in range(users.shape[1]):
                        word = users[t, k]
                        while word != 0 and step < 0:
                            s = (k << 6) + _lowest(word)
                            word &= word - _ONE
                            if not seen[s] and dist[s] == dist[n] - _cost(one, two, s, t):
                                step = s
                                seen[s] = True
                if step < 0:
                    depth -= 1
                else:
                    depth += 1
                    path[depth] = step
            if depth < 0:
                break
            last = path[depth] - s_count
            amount = min(supply[source], demand[last])
            for k in range(1, depth):
                if path[k] >= s_count:
                    amount = min(amount, flow[path[k + 1], path[k] - s_count])
            for k in range(depth):
                if path[k] < s_count:
                    s, t = path[k], path[k + 1] - s_count
                    flow[s, t] += amount
                    _set(users[t], s)
                else:
                    s, t = path[k + 1], path[k] - s_count
                    flow[s, t] -= amount
                    if flow[s, t] <= tiny:
                        _clear(users[t], s)
            supply[source] -= amount
            demand[last] -= amount
            pushed += amount
            if demand[last] <= tiny:
                _clear(open_, last)
            # The places of a successful path may serve again; only dead ends stay marked.
            for k in range(depth + 1):
                if path[k] < s_count:
                    seen[path[k]] = False
                else:
                    _set(alive, path[k] - s_count)
    return pushed


@inner
def _cheapest(supply: Any, demand: Any, one: Any, two: Any, total: float) -> float:
    """Cost of the best plan."""
    s_count, t_count, words = len(supply), len(demand), one.shape[1]
    places = s_count + t_count
    flow = np.zeros((s_count, t_count))
    users = np.zeros((t_count, (s_count + 63) >> 6), np.uint64)
    within = np.empty((3, words), np.uint64)
    alive, open_ = np.empty(words, np.uint64), np.empty(words, np.uint64)
    dist, queue, path = np.empty(places, np.int32), np.empty(places, np.int32), np.empty(places + 1, np.int32)
    queued, seen = np.empty(places, np.bool_), np.empty(places, np.bool_)
    tiny = 1e-13 * total
    spent, left = 0.0, total
    while left > tiny:
        level = _potentials(supply, demand, one, two, users, tiny, dist, within, queue, queued)
        if level >= 3:
            break
        pushed = _augment(
            supply, demand, one, two, flow, users, tiny, dist, within, level, alive, open_, seen, path
        )  # fmt: skip
        if pushed <= 0:
            break
        spent += level * pushed
        left -= pushed
    return spent + 3 * max(left, 0.0)


@inner
def _along_tree(u: int, v: int, senders: Any, takers: Any, supply: Any, demand: Any, two: Any) -> float:
    """Cost of the best plan where no way around the edge is short, else -1.

    If every other neighbour of ``u`` is 3 steps from every other one of ``v``, distances are those of a tree: the cost
    is what leaves or reaches the leaves, plus what crosses the edge. Hubs with many leaves have nothing to search.
    """
    cost, crossing = 0.0, 0.0
    centres = _NONE  # as receivers the two come first, so they are in the first word
    for t in range(len(demand)):
        if takers[t] == u or takers[t] == v:
            centres |= _ONE << np.uint64(t)
        else:
            cost += demand[t]
        if takers[t] == u:
            crossing -= demand[t]
    for s in range(len(supply)):
        if senders[s] != v:
            crossing += supply[s]
        if senders[s] == u or senders[s] == v:
            continue
        cost += supply[s]
        for k in range(two.shape[1]):
            if two[s, k] & (~centres if k == 0 else _ALL) != 0:
                return -1.0
    return cost + abs(crossing)


@compiled
def edge_curvatures(todo: Any, ends: Any, indptr: Any, indices: Any, alpha: float, out: Any, stop: Any) -> None:
    """``out[e] = 1 - W1(m_u, m_v)`` for the edges ``todo``; rows of the graph sorted, without loops or repeats.

    Ends before its time when ``stop[0]`` becomes true.
    """
    nodes = indptr.shape[0] - 1
    slot = np.empty(nodes, np.int32)
    near_v, near_u, touched = np.full(nodes, -1, np.int64), np.full(nodes, -1, np.int64), np.full(nodes, -1, np.int64)
    ratio = alpha / (1 - alpha)
    for e in todo:
        if stop[0]:
            return
        u, v = ends[0, e], ends[1, e]
        if indptr[u + 1] - indptr[u] > indptr[v + 1] - indptr[v]:
            u, v = v, u
        begin_u, end_u, begin_v, end_v = indptr[u], indptr[u + 1], indptr[v], indptr[v + 1]
        du, dv = end_u - begin_u, end_v - begin_v
        if du == 1:
            # All that moves passes v: what u has too much or too little of, and a share for each other neighbour of v;
            # in the units of the masses below.
            out[e] = 1 - (abs(ratio * dv - 1) + dv - 1) * (1 - alpha) / dv
            continue
        for p in range(begin_u, end_u):
            near_u[indices[p]] = e
        for p in range(begin_v, end_v):
            near_v[indices[p]] = e
        # Masses in units of (1 - alpha) / (du dv): whole numbers, and hence exact sums, for alpha = 0 and 1/2.
        supply, demand = np.empty(du + 2), np.empty(dv + 2)
        senders, takers = np.empty(du + 2, np.int64), np.empty(dv + 2, np.int64)
        s_count, t_count, total = 0, 0, 0.0
        for node, mass in ((u, ratio * du * dv - du), (v, dv - ratio * du * dv)):
            if mass > 0:
                supply[s_count], senders[s_count] = mass, node
                s_count += 1
                total += mass
            elif mass < 0:
                demand[t_count], takers[t_count] = -mass, node
                t_count += 1
        for p in range(begin_u, end_u):
            x = indices[p]
            mass = float(dv - du) if near_v[x] == e else float(dv)
            if x != v and mass > 0:
                supply[s_count], senders[s_count] = mass, x
                s_count += 1
                total += mass
        for p in range(begin_v, end_v):
            y = indices[p]
            if y != u and near_u[y] != e:
                demand[t_count], takers[t_count] = float(du), y
                t_count += 1
        if total <= 0:
            out[e] = 1.0
            continue
        words, reached = (t_count + 63) >> 6, 0
        for t in range(t_count):
            reached += indptr[takers[t] + 1] - indptr[takers[t]]
        # For every node next to a receiver, which receivers those are.
        around, used = np.zeros((min(reached, nodes), words), np.uint64), 0
        for t in range(t_count):
            for p in range(indptr[takers[t]], indptr[takers[t] + 1]):
                middle = indices[p]
                if touched[middle] != e:
                    touched[middle], slot[middle] = e, used
                    used += 1
                _set(around[slot[middle]], t)
        one, two = np.zeros((s_count, words), np.uint64), np.zeros((s_count, words), np.uint64)
        for s in range(s_count):
            x = senders[s]
            if touched[x] == e:
                for k in range(words):
                    one[s, k] = around[slot[x], k]
            for p in range(indptr[x], indptr[x + 1]):
                if touched[indices[p]] == e:
                    for k in range(words):
                        two[s, k] |= around[slot[indices[p]], k]
            for k in range(words):
                two[s, k] |= one[s, k]
        work = _along_tree(u, v, senders, takers, supply[:s_count], demand[:t_count], two)
        if work < 0:
            work = _cheapest(supply[:s_count], demand[:t_count], one, two, total)
        out[e] = 1 - work * (1 - alpha) / (du * dv)
