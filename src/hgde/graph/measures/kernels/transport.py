"""Compiled optimal transport between the neighbourhoods of the two ends of an edge.

After the mass that both ends share is cancelled, every remaining pair of places is 1, 2 or 3 steps apart. Sent along
shortest paths of the residual network, whose lengths never fall and never exceed 3, the flow splits into what travels
at cost 1, at cost 2, and a rest that needs no search: ``W1 = f1 + 2 f2 + 3 (total - f1 - f2)``. Which places are one or
at most two steps from a sender is kept as bits, so that a search looks at 64 places at a time: row ``s`` of ``one`` and
``two`` has ``words`` numbers of 64 bits, one bit for each receiver.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Wholes, block, inlined, instruction, kernel
from hgde.compiler.memory import doubles, missing, obtain, offset, release
from hgde.compiler.values import TRUTH
from hgde.graph.measures.kernels.states import NO_MEMORY, STOP

_FAR = 99
_ALL = -1
"""A word in which every bit is set."""


@instruction
def _lowest(builder: Any, word: Any) -> Any:
    """Place of the lowest bit that is set."""
    return builder.cttz(word, TRUTH(0))


@inlined
def _set(bits: Any, n: int) -> None:
    bits[n >> 6] |= 1 << (n & 63)


@inlined
def _clear(bits: Any, n: int) -> None:
    bits[n >> 6] &= ~(1 << (n & 63))


@inlined
def _has(bits: Any, n: int) -> bool:
    return (bits[n >> 6] >> (n & 63)) & 1 != 0


@inlined
def _cost(one: Any, two: Any, words: int, s: int, t: int) -> int:
    return 1 if _has(offset(one, s * words), t) else (2 if _has(offset(two, s * words), t) else 3)


@inlined
def _degree(indptr: Any, node: int) -> int:
    return indptr[node + 1] - indptr[node]


@block
def _potentials(
    s_count: int, t_count: int, supply: Any, demand: Any, words: int, one: Any, two: Any, users: Any, tiny: float,
    dist: Any, within: Any, queue: Any, queued: Any,
) -> int:  # fmt: skip
    """Residual distance of every place from the supplies left; returns that of the nearest unmet demand.

    Receivers lie at 1, 2 or 3 (any sender reaches any receiver in 3). ``within[k]`` gathers those at ``k`` or nearer.
    """
    places, user_words = s_count + t_count, (s_count + 63) >> 6
    for k in range(3 * words):
        within[k] = 0
    head, waiting = 0, 0
    for n in range(places):
        dist[n], queued[n] = _FAR, 0
    for s in range(s_count):
        if supply[s] > tiny:
            dist[s], queued[s] = 0, 1
            queue[waiting] = s
            waiting += 1
    for t in range(t_count):
        dist[s_count + t], queued[s_count + t] = 3, 1
        queue[waiting] = s_count + t
        waiting += 1
    while waiting > 0:
        n = queue[head]
        head = head + 1 if head + 1 < places else 0
        waiting -= 1
        queued[n] = 0
        if n < s_count:
            for cost in range(1, min(3, 3 - dist[n])):
                reach = dist[n] + cost
                for k in range(words):
                    near = one[n * words + k] if cost == 1 else two[n * words + k]
                    fresh = near & ~within[reach * words + k]
                    for level in range(reach, 3):
                        within[level * words + k] |= fresh
                    while fresh != 0:
                        t = s_count + (k << 6) + _lowest(fresh)
                        fresh &= fresh - 1
                        dist[t] = reach
                        if queued[t] == 0:
                            queued[t] = 1
                            queue[(head + waiting) % places] = t
                            waiting += 1
        else:
            t = n - s_count
            for k in range(user_words):
                word = users[t * user_words + k]
                while word != 0:
                    s = (k << 6) + _lowest(word)
                    word &= word - 1
                    reach = dist[n] - _cost(one, two, words, s, t)
                    if reach < dist[s]:
                        dist[s] = reach
                        if queued[s] == 0:
                            queued[s] = 1
                            queue[(head + waiting) % places] = s
                            waiting += 1
    nearest = _FAR
    for t in range(t_count):
        if demand[t] > tiny:
            nearest = min(nearest, dist[s_count + t])
    return nearest


@block
def _next_receiver(words: int, one: Any, two: Any, within: Any, alive: Any, unmet: Any, reach: int) -> int:
    """A receiver not yet visited on a shortest arc out of a sender, one with unmet demand if there is any; else -1.

    ``one`` and ``two`` are the sender's rows, ``reach`` is its distance.
    """
    other = -1
    for cost in range(max(1, 1 - reach), min(4, 4 - reach)):
        level = reach + cost
        for k in range(words):
            at = (within[level * words + k] if level < 3 else _ALL) & ~within[(level - 1) * words + k]
            near = one[k]
            if cost == 2:
                near = two[k] & ~one[k]
            elif cost == 3:
                near = ~two[k]
            candidates = near & at & alive[k]
            if candidates & unmet[k] != 0:
                return (k << 6) + _lowest(candidates & unmet[k])
            if candidates != 0 and other < 0:
                other = (k << 6) + _lowest(candidates)
    return other


@block
def _next_sender(
    s_count: int, t: int, reach: int, words: int, one: Any, two: Any, users: Any, seen: Any, dist: Any
) -> int:
    """A sender not yet visited from which a shortest path takes flow back at receiver ``t``; else -1."""
    user_words = (s_count + 63) >> 6
    for k in range(user_words):
        word = users[t * user_words + k]
        while word != 0:
            s = (k << 6) + _lowest(word)
            word &= word - 1
            if seen[s] == 0 and dist[s] == reach - _cost(one, two, words, s, t):
                return s
    return -1


@block
def _path(
    s_count: int, words: int, one: Any, two: Any, users: Any, dist: Any, within: Any, alive: Any, unmet: Any,
    seen: Any, path: Any,
) -> int:  # fmt: skip
    """Search the shortest arcs from ``path[0]`` on for unmet demand; the place of its receiver in ``path``, or -1."""
    depth = 0
    while depth >= 0:
        n, step = path[depth], -1
        if n < s_count:
            t = _next_receiver(words, offset(one, n * words), offset(two, n * words), within, alive, unmet, dist[n])
            if t >= 0:
                step = s_count + t
                _clear(alive, t)
        elif _has(unmet, n - s_count):
            return depth
        else:
            step = _next_sender(s_count, n - s_count, dist[n], words, one, two, users, seen, dist)
            if step >= 0:
                seen[step] = 1
        if step < 0:
            depth -= 1
        else:
            depth += 1
            path[depth] = step
    return -1


@block
def _push(
    s_count: int, t_count: int, supply: Any, demand: Any, flow: Any, users: Any, tiny: float, path: Any, depth: int
) -> float:
    """Send as much as there is room for along a path; returns how much."""
    user_words = (s_count + 63) >> 6
    source, last = path[0], path[depth] - s_count
    amount = supply[source] if supply[source] < demand[last] else demand[last]
    for k in range(1, depth):
        if path[k] >= s_count:
            room = flow[path[k + 1] * t_count + path[k] - s_count]
            amount = room if room < amount else amount
    for k in range(depth):
        if path[k] < s_count:
            s, t = path[k], path[k + 1] - s_count
            flow[s * t_count + t] += amount
            _set(offset(users, t * user_words), s)
        else:
            s, t = path[k + 1], path[k] - s_count
            flow[s * t_count + t] -= amount
            if flow[s * t_count + t] <= tiny:
                _clear(offset(users, t * user_words), s)
    supply[source] -= amount
    demand[last] -= amount
    return amount


@block
def _augment(
    s_count: int, t_count: int, supply: Any, demand: Any, words: int, one: Any, two: Any, flow: Any, users: Any,
    tiny: float, dist: Any, within: Any, level: int, alive: Any, unmet: Any, seen: Any, path: Any,
) -> float:  # fmt: skip
    """Push flow along paths of length ``level`` until a search of the shortest arcs finds no more; returns how much."""
    for k in range(words):
        alive[k] = unmet[k] = 0
    for t in range(t_count):
        _set(alive, t)
        if demand[t] > tiny and dist[s_count + t] == level:
            _set(unmet, t)
    for s in range(s_count):
        seen[s] = 0
    pushed = 0.0
    for source in range(s_count):
        depth = 0
        while depth >= 0 and supply[source] > tiny and seen[source] == 0:
            path[0] = source
            seen[source] = 1
            depth = _path(s_count, words, one, two, users, dist, within, alive, unmet, seen, path)
            if depth >= 0:
                pushed += _push(s_count, t_count, supply, demand, flow, users, tiny, path, depth)
                last = path[depth] - s_count
                if demand[last] <= tiny:
                    _clear(unmet, last)
                # The places of a successful path may serve again; only dead ends stay marked.
                for k in range(depth + 1):
                    if path[k] < s_count:
                        seen[path[k]] = 0
                    else:
                        _set(alive, path[k] - s_count)
    return pushed


@block
def _cheapest(
    s_count: int, t_count: int, supply: Any, demand: Any, words: int, one: Any, two: Any, total: float, state: Any
) -> float:
    """Cost of the best plan."""
    places, pairs, used = s_count + t_count, s_count * t_count, t_count * ((s_count + 63) >> 6)
    room = obtain(pairs + used + 5 * words + 5 * places + 1)
    if missing(room):
        state[NO_MEMORY] = state[STOP] = 1
        return 0.0
    flow, users = doubles(room), offset(room, pairs)
    within = offset(users, used)
    alive, unmet = offset(within, 3 * words), offset(within, 4 * words)
    dist = offset(within, 5 * words)
    queue, queued, seen, path = (
        offset(dist, places), offset(dist, 2 * places), offset(dist, 3 * places), offset(dist, 4 * places),
    )  # fmt: skip
    tiny = 1e-13 * total
    spent, left, level = 0.0, total, 0
    while left > tiny and level < 3:
        level = _potentials(
            s_count, t_count, supply, demand, words, one, two, users, tiny, dist, within, queue, queued
        )  # fmt: skip
        if level < 3:
            pushed = _augment(
                s_count, t_count, supply, demand, words, one, two, flow, users, tiny, dist, within, level, alive, unmet,
                seen, path,
            )  # fmt: skip
            spent += level * pushed
            left -= pushed
            if pushed <= 0:
                level = 3
    release(room)
    return spent + 3 * (left if left > 0.0 else 0.0)


@block
def _along_tree(
    u: int, v: int, s_count: int, t_count: int, senders: Any, takers: Any, supply: Any, demand: Any, words: int,
    two: Any,
) -> float:  # fmt: skip
    """Cost of the best plan where no way around the edge is short, else -1.

    If every other neighbour of ``u`` is 3 steps from every other one of ``v``, distances are those of a tree: the cost
    is what leaves or reaches the leaves, plus what crosses the edge. Hubs with many leaves have nothing to search.
    """
    cost, crossing = 0.0, 0.0
    centres = 0  # as receivers the two come first, so they are in the first word
    for t in range(t_count):
        if takers[t] == u or takers[t] == v:
            centres |= 1 << t
        else:
            cost += demand[t]
        if takers[t] == u:
            crossing -= demand[t]
    for s in range(s_count):
        if senders[s] != v:
            crossing += supply[s]
        if senders[s] != u and senders[s] != v:
            cost += supply[s]
            for k in range(words):
                if two[s * words + k] & (~centres if k == 0 else _ALL) != 0:
                    return -1.0
    return cost + abs(crossing)


@block
def _curvature(
    mark: int, u: int, v: int, nodes: int, indptr: Any, indices: Any, alpha: float, marks: Any, most: int, state: Any
) -> float:
    """``1 - W1(m_u, m_v)`` for an edge, ``u`` having no more neighbours than ``v``; ``mark`` is its own."""
    ratio = alpha / (1 - alpha)
    du, dv = _degree(indptr, u), _degree(indptr, v)
    if du == 1:
        # All that moves passes v: what u has too much or too little of, and a share for each other neighbour of v;
        # in the units of the masses below.
        return 1 - (abs(ratio * dv - 1) + dv - 1) * (1 - alpha) / dv
    near_u, near_v, touched, slot = marks, offset(marks, nodes), offset(marks, 2 * nodes), offset(marks, 3 * nodes)
    for p in range(indptr[u], indptr[u + 1]):
        near_u[indices[p]] = mark
    for p in range(indptr[v], indptr[v + 1]):
        near_v[indices[p]] = mark
    # Masses in units of (1 - alpha) / (du dv): whole numbers, and hence exact sums, for alpha = 0 and 1/2.
    senders = offset(marks, 4 * nodes)
    takers = offset(senders, most)
    supply, demand = doubles(offset(takers, most)), doubles(offset(takers, 2 * most))
    s_count, t_count, total = 0, 0, 0.0
    for end in range(2):
        node = u if end == 0 else v
        mass = ratio * du * dv - du if end == 0 else dv - ratio * du * dv
        if mass > 0:
            supply[s_count], senders[s_count] = mass, node
            s_count += 1
            total += mass
        elif mass < 0:
            demand[t_count], takers[t_count] = -mass, node
            t_count += 1
    for p in range(indptr[u], indptr[u + 1]):
        x = indices[p]
        share = dv - du if near_v[x] == mark else dv
        if x != v and share > 0:
            supply[s_count], senders[s_count] = share, x
            s_count += 1
            total += share
    for p in range(indptr[v], indptr[v + 1]):
        y = indices[p]
        if y != u and near_u[y] != mark:
            demand[t_count], takers[t_count] = du, y
            t_count += 1
    if total <= 0:
        return 1.0
    words, reached = (t_count + 63) >> 6, 0
    for t in range(t_count):
        reached += _degree(indptr, takers[t])
    room = obtain((min(reached, nodes) + 2 * s_count) * words)
    if missing(room):
        state[NO_MEMORY] = state[STOP] = 1
        return 0.0
    one = room
    two = offset(one, s_count * words)
    # For every node next to a receiver, which receivers those are.
    around, used = offset(two, s_count * words), 0
    for t in range(t_count):
        for p in range(indptr[takers[t]], indptr[takers[t] + 1]):
            middle = indices[p]
            if touched[middle] != mark:
                touched[middle], slot[middle] = mark, used * words
                used += 1
            _set(offset(around, slot[middle]), t)
    for s in range(s_count):
        x = senders[s]
        if touched[x] == mark:
            for k in range(words):
                one[s * words + k] = around[slot[x] + k]
        for p in range(indptr[x], indptr[x + 1]):
            if touched[indices[p]] == mark:
                for k in range(words):
                    two[s * words + k] |= around[slot[indices[p]] + k]
        for k in range(words):
            two[s * words + k] |= one[s * words + k]
    work = _along_tree(u, v, s_count, t_count, senders, takers, supply, demand, words, two)
    if work < 0:
        work = _cheapest(s_count, t_count, supply, demand, words, one, two, total, state)
    release(room)
    return 1 - work * (1 - alpha) / (du * dv)


@kernel
def curvatures(
    count: Int, todo: Wholes, edges: Int, ends: Wholes, nodes: Int, indptr: Wholes, indices: Ints, alpha: Double,
    most: Int, out: Doubles, state: Ints,
) -> None:  # fmt: skip
    """``out[e] = 1 - W1(m_u, m_v)`` for the edges ``todo``; rows of the graph sorted, without loops or repeats.

    Ends before its time when ``state[STOP]`` becomes true. ``most`` is the number of places a neighbourhood may have.
    """
    marks = obtain(4 * nodes + 4 * most)
    if missing(marks):
        state[NO_MEMORY] = state[STOP] = 1
        return
    n = 0
    while n < count and state[STOP] == 0:
        e = todo[n]
        u, v = ends[e], ends[edges + e]
        if _degree(indptr, u) > _degree(indptr, v):
            u, v = v, u
        out[e] = _curvature(e + 1, u, v, nodes, indptr, indices, alpha, marks, most, state)
        n += 1
    release(marks)
