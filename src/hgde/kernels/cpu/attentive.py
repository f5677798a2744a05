"""Steps whose attention is worked out anew at every state, a whole trajectory in one call each way.

Scores ``log_o(z) · w_h`` of a state are two numbers for each node and head, left by the pass that made the state
(``scores [N, 2H]``, receivers' heads first). The weights of a strip's edges are made from them where they are used and
are never stored, forward or backward. Backward, receivers leave the gradient of every edge's score (``each [E, H]``),
senders add it up and bring it to their points and to ``scoring [2H, d]``.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, block, inlined, kernel
from hgde.kernels.cpu.attention import leaky
from hgde.kernels.cpu.edges import conformal, gather_edges
from hgde.kernels.cpu.exponential import SLOPE, XX, T, rounded
from hgde.kernels.cpu.gradients import begin_rows, end_rows, receive_edges, senders_edges
from hgde.kernels.cpu.lanes import LANES, fma, larger, load, spread, store, total, wide
from hgde.kernels.cpu.phases import meet, next_part, offset, take
from hgde.kernels.cpu.rows import flow_strip, flow_strip_backward
from hgde.kernels.cpu.scalars import artanh_ratio, artanh_ratio_slope, exp_negative
from hgde.kernels.cpu.sizes import BUFFERS, PARTIALS, PROJECTED, STRIP, strip_rows
from hgde.kernels.cpu.trajectories import at_step


@inlined
def stretch(first: int, n: int, b: Any, s: Any) -> None:
    """``T = |log_o z| / |z|`` of a strip's points and its derivative in ``c|z|^2``, ``SLOPE``."""
    for r in range(n):
        s[XX + r] = b[first + r]
    for r in range(rounded(n)):
        square, inverse = 1 - s[XX + r], 1 / s[XX + r]
        ratio = artanh_ratio(square, inverse)
        s[T + r], s[SLOPE + r] = ratio, artanh_ratio_slope(square, inverse, ratio)


@block
def score_rows(
    begin: int, end: int, d: int, z: Any, c: float, margin: float, b: Any, count: int, scoring: Any, s: Any, scores: Any
) -> None:
    """``b`` and the scores of some rows."""
    conformal(begin, end, d, z, c, margin, b)
    for first in range(begin, end, STRIP):
        n = min(STRIP, end - first)
        stretch(first, n, b, s)
        for r in range(n):
            for h in range(count):
                along = spread(0.0)
                for k in range(0, d, LANES):
                    along = fma(wide(z, (first + r) * d + k), wide(scoring, h * d + k), along)
                scores[(first + r) * count + h] = s[T + r] * total(along)


@block
def weigh_strip(
    first: int, n: int, indptr: Any, indices: Any, heads: int, scores: Any, slope: float, weighted: int, edge: Any,
    s: Any, shares: int, weights: int,
) -> None:  # fmt: skip
    """A strip's ``exp(l_eh) / sum_row m exp(l_h)`` from ``s[shares]`` on, its edges' weights from ``s[weights]``."""
    e0, count = indptr[first], 2 * heads
    for i in range(first, first + n):
        for h in range(heads):
            own, largest = scores[i * count + h], -1e300
            for e in range(indptr[i], indptr[i + 1]):
                score = leaky(own + scores[indices[e] * count + heads + h], slope)
                s[shares + (e - e0) * heads + h] = score
                if weighted == 0 or edge[e] > 0:
                    largest = larger(score, largest)
            for e in range(indptr[i] - e0, indptr[i + 1] - e0):
                # An edge of multiplier 0 may lie above the row's largest score; it takes no part.
                s[shares + e * heads + h] = larger(largest - s[shares + e * heads + h], 0.0)
    for k in range(shares, shares + rounded((indptr[first + n] - e0) * heads)):
        s[k] = exp_negative(s[k])
    for i in range(first, first + n):
        low, high = indptr[i] - e0, indptr[i + 1] - e0
        for h in range(heads):
            mass = 0.0
            for e in range(low, high):
                mass += s[shares + e * heads + h] * (1.0 if weighted == 0 else edge[e0 + e])
            inverse = 1 / mass if mass > 0 else 1.0
            for e in range(low, high):
                s[shares + e * heads + h] *= inverse
        for e in range(low, high):
            value = 0.0
            for h in range(heads):
                value += s[shares + e * heads + h]
            s[weights + e] = value * (1.0 if weighted == 0 else edge[e0 + e]) / heads


@block
def weigh_strip_backward(
    first: int, n: int, indptr: Any, indices: Any, heads: int, scores: Any, slope: float, weighted: int, edge: Any,
    s: Any, shares: int, arriving: int, gscores: Any, wanted: int, gedge: Any, each: Any,
) -> None:  # fmt: skip
    """From the weights' gradients at ``s[arriving]`` to those of the receiving scores, ``each``, and of multipliers."""
    e0, count = indptr[first], 2 * heads
    for i in range(first, first + n):
        for h in range(heads):
            own, average, g = scores[i * count + h], 0.0, 0.0
            for e in range(indptr[i], indptr[i + 1]):
                share = s[shares + (e - e0) * heads + h] * (1.0 if weighted == 0 else edge[e])
                average += share * s[arriving + e - e0]
            for e in range(indptr[i], indptr[i + 1]):
                pull = s[shares + (e - e0) * heads + h] * (s[arriving + e - e0] - average) / heads
                if wanted != 0:
                    gedge[e] += pull
                score = own + scores[indices[e] * count + heads + h]
                pull *= (1.0 if score > 0 else slope) * (1.0 if weighted == 0 else edge[e])
                each[e * heads + h] = pull
                g += pull
            gscores[i * count + h] = g


@block
def score_rows_backward(
    begin: int, end: int, d: int, z: Any, c: float, b: Any, heads: int, scoring: Any, s: Any, scores: Any,
    gscores: Any, start: Any, order: Any, each: Any, gz: Any, gscoring: Any,
) -> None:  # fmt: skip
    """Gradients of the scores of some rows, brought to their points, to ``gscoring`` and, behind it, the curvature."""
    count = 2 * heads
    for first in range(begin, end, STRIP):
        n = min(STRIP, end - first)
        stretch(first, n, b, s)
        for r in range(n):
            i, along = first + r, 0.0
            for h in range(heads):
                g = 0.0
                for place in range(start[i], start[i + 1]):
                    g += each[order[place] * heads + h]
                gscores[i * count + heads + h] = g
            for h in range(count):
                along += gscores[i * count + h] * scores[i * count + h]
            along *= s[SLOPE + r] / s[T + r]
            gscoring[count * d] += along * (1 - s[XX + r]) / c
            for k in range(0, d, LANES):
                own = wide(z, i * d + k)
                here, stretched = (2 * c * along) * own, s[T + r] * own
                for h in range(count):
                    g = gscores[i * count + h]
                    here = fma(s[T + r] * g, wide(scoring, h * d + k), here)
                    store(gscoring, h * d + k, fma(g, stretched, load(gscoring, h * d + k)))
                store(gz, i * d + k, wide(gz, i * d + k) + here)


@kernel
def forward(
    s: Doubles, sync: Ints, steps: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints, owners: Ints,
    d: Int, z: Reals, states: Reals, b: Doubles, heads: Int, scoring: Reals, scores: Doubles, slope: Double, weighted:
    Int, edge: Reals, most: Int, z0: Reals, mode: Int, code: Int, e0: Double, e1: Double, e2: Double, c: Double, margin:
    Double, keep: Int, kept: Doubles, apart: Int, out: Reals, partial: Doubles, stage: Int,
) -> None:  # fmt: skip
    """States and ``out``; ``most`` is the most edges a strip has, ``stage`` as for
    :mod:`~hgde.kernels.cpu.trajectories`."""
    size, strip, count = rows * d, strip_rows(d), 2 * heads
    v, moved, weights = BUFFERS, BUFFERS + STRIP * d, BUFFERS + 7 * STRIP * d + 2 * most
    part = take(sync, 0, parts)
    while part < parts:
        score_rows(blocks[part], blocks[part + 1], d, z, c, margin, b, count, scoring, s, scores)
        part = next_part(sync, 0, parts)
    meet(sync, 0, parts)
    for step in range(steps):
        here, known = at_step(step, size, z, states), offset(kept, keep * step * (size + 2 * apart))
        there = out if step == steps - 1 else offset(states, step * size)
        even, odd = step % 2, (step + 1) % 2
        needed = offset(blocks, (step + 1) * stage)
        part = take(sync, step + 1, parts)
        while part < parts:
            last = indptr[needed[part + 1]] - 1
            for first in range(needed[part], needed[part + 1], strip):
                n = min(strip, needed[part + 1] - first)
                weigh_strip(
                    first, n, indptr, indices, heads, offset(scores, even * rows * count), slope, weighted, edge, s,
                    weights + 2 * most, weights,
                )  # fmt: skip
                gather_edges(
                    first, n, last, indptr, indices, owners, d, here, offset(b, even * rows),
                    offset(s, weights - indptr[first]), s, 0, c, s, v, keep, offset(known, keep * size), 0, apart,
                )  # fmt: skip
                if keep != 0:
                    for k in range(0, n * d, LANES):
                        store(known, first * d + k, load(s, v + k))
                partial[part * PARTIALS + PROJECTED] += flow_strip(
                    here, first, n, d, z0, s, v, moved, mode, code, e0, e1, e2, c, margin, there
                )
                if step < steps - 1:
                    score_rows(
                        first, first + n, d, there, c, margin, offset(b, odd * rows), count, scoring, s,
                        offset(scores, odd * rows * count),
                    )  # fmt: skip
            part = next_part(sync, step + 1, parts)
        meet(sync, step + 1, parts)


@kernel
def backward(
    s: Doubles, sync: Ints, steps: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints, owners: Ints,
    d: Int, z: Reals, states: Reals, b: Doubles, heads: Int, scoring: Reals, scores: Doubles, slope: Double, weighted:
    Int, edge: Reals, most: Int, z0: Reals, mode: Int, code: Int, e0: Double, e1: Double, e2: Double, c: Double, margin:
    Double, keep: Int, kept: Doubles, apart: Int, grad: Reals, g: Reals, gz: Reals, gz0: Reals, gscores: Doubles,
    wanted: Int, gedge: Reals, each: Reals, gscoring: Doubles, tell: Reals, partial: Doubles, columns: Int, cuts: Ints,
    start: Ints, receivers: Ints, order: Ints, stage: Int,
) -> None:  # fmt: skip
    """``gz`` ends as the gradient at ``z``; ``gscoring`` has ``2H d + 1`` numbers for each block of senders."""
    size, strip, count, room = rows * d, strip_rows(d), 2 * heads, STRIP * d
    v, moved, gm, gz_, gu = BUFFERS, BUFFERS + room, BUFFERS + 2 * room, BUFFERS + 3 * room, BUFFERS + 4 * room
    weights = BUFFERS + 7 * room + 2 * most
    arrived, shares = weights + most, weights + 2 * most
    latest = offset(blocks, (steps - 1) * stage)
    part = take(sync, 0, parts)
    while part < parts:
        last_state = at_step(steps - 1, size, z, states)
        score_rows(
            latest[part], latest[part + 1], d, last_state, c, margin, offset(b, (steps - 1) % 2 * rows), count, scoring,
            s, offset(scores, (steps - 1) % 2 * rows * count),
        )  # fmt: skip
        part = next_part(sync, 0, parts)
    meet(sync, 0, parts)
    for back in range(steps):
        step, phase = steps - 1 - back, 2 * back + 1
        here, known = at_step(step, size, z, states), offset(kept, keep * step * (size + 2 * apart))
        arriving, even, odd = grad if back == 0 else gz, step % 2, (step + 1) % 2
        b_here, scores_here = offset(b, even * rows), offset(scores, even * rows * count)
        moved_rows, present = offset(blocks, (step + 1) * stage), offset(cuts, step * stage)
        earlier = offset(cuts, max(step - 1, 0) * stage)
        part = take(sync, phase, parts)
        while part < parts:
            last, line = indptr[moved_rows[part + 1]] - 1, part * PARTIALS
            for first in range(moved_rows[part], moved_rows[part + 1], strip):
                n, e = min(strip, moved_rows[part + 1] - first), indptr[first]
                weigh_strip(first, n, indptr, indices, heads, scores_here, slope, weighted, edge, s, shares, weights)
                values, gvalues = offset(s, weights - e), offset(s, arrived - e)
                memo, at = offset(known, keep * size), 0
                if keep != 0:
                    for k in range(0, n * d, LANES):
                        store(s, v + k, load(known, first * d + k))
                else:
                    memo, at = s, BUFFERS + 7 * room - e
                    gather_edges(
                        first,
                        n,
                        last,
                        indptr,
                        indices,
                        owners,
                        d,
                        here,
                        b_here,
                        values,
                        s,
                        0,
                        c,
                        s,
                        v,
                        1,
                        memo,
                        at,
                        apart,
                    )
                flow_strip_backward(
                    here, first, n, d, z0, s, v, moved, gm, gz_, gu, mode, code, e0, e1, e2, c, margin, arriving, gz0,
                    partial, line,
                )  # fmt: skip
                begin_rows(first, n, d, here, s, gu, g)
                for k in range(arrived, arrived + indptr[first + n] - e):
                    s[k] = 0.0
                partial[line] += receive_edges(
                    first, n, indptr, indices, d, here, b_here, values, c, s, gz_, gu, memo, at, apart, 1, gvalues, tell
                )
                end_rows(first, n, d, s, gz_, gz)
                weigh_strip_backward(
                    first, n, indptr, indices, heads, scores_here, slope, weighted, edge, s, shares, arrived, gscores,
                    wanted, gedge, each,
                )  # fmt: skip
            part = next_part(sync, phase, parts)
        meet(sync, phase, parts)
        part = take(sync, phase + 1, columns)
        while part < columns:
            first, after = present[part], present[part + 1]
            senders_edges(first, after, start[after] - 1, start, receivers, order, d, here, g, tell, gz)
            score_rows_backward(
                first, after, d, here, c, b_here, heads, scoring, s, scores_here, gscores, start, order, each, gz,
                offset(gscoring, part * (count * d + 1)),
            )  # fmt: skip
            if step > 0:
                before = at_step(step - 1, size, z, states)
                score_rows(
                    earlier[part], earlier[part + 1], d, before, c, margin, offset(b, odd * rows), count, scoring, s,
                    offset(scores, odd * rows * count),
                )  # fmt: skip
            part = next_part(sync, phase + 1, columns)
        meet(sync, phase + 1, columns)
