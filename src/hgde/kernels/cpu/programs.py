"""Solvers of several stages in one call: evaluations of the flow with maps of rows between them, as a plan says.

States, vectors and results are *slots*, matrices ``[N, d]`` one after the other. An evaluation reads its neighbours'
rows, so evaluations are phases (:mod:`hgde.kernels.cpu.phases`); everything between two of them stays within a row and
is done strip by strip, right after the evaluation it follows (forward) or right before the one it precedes (backward),
while the strip is in cache.

``plan`` is whole numbers: for every phase (flow's argument, flow's result, first and last row map); then the maps, each
(kind, result, four arguments, number of arguments, place of its first coefficient in ``numbers``). A phase without a
flow has -1. Backward, phases are (flow's argument, gradient of the result, gradient of the argument, whether that is
added to, first and last map), and maps (kind, result's gradient, four arguments, their four gradients, for each of
these whether it is added to, number of arguments, place of the first coefficient).

Where only some rows of the end are asked for (:mod:`hgde.kernels.reach`) what a phase makes is needed of its first rows
alone, of fewer from phase to phase; ``blocks`` then has a line for each phase, ``stage`` numbers apart, else ``stage``
is 0. Gradients of other rows are never written and have to be zero.

If ``keep``, every evaluation leaves its sums, and one more number for each row, in ``kept`` for the gradient.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, block, inlined, kernel
from hgde.kernels.cpu.combined import exp_inside, exp_inside_backward
from hgde.kernels.cpu.edges import conformal, gather_edges, keep_sums
from hgde.kernels.cpu.elementary import is_single, real
from hgde.kernels.cpu.exponential import GC, exp_strip, exp_strip_backward
from hgde.kernels.cpu.gradients import receive_edges, rows_edges, senders_edges
from hgde.kernels.cpu.lanes import LANES, fma, load, spread, store, wide
from hgde.kernels.cpu.maps import (
    log_backward_strip,
    log_strip,
    put,
    shrink_backward_strip,
    shrink_strip,
    transport_backward_strip,
    transport_strip,
)
from hgde.kernels.cpu.mutual import leave_bystanders, leave_rows, mutual_edges
from hgde.kernels.cpu.phases import meet, next_part, offset, take
from hgde.kernels.cpu.rows import flow_strip
from hgde.kernels.cpu.sizes import (
    ADD_UP,
    BUFFERS,
    EXPONENTIAL,
    LOGARITHM,
    MAP_BACKWARD,
    MAP_FORWARD,
    PARTIALS,
    PHASE_BACKWARD,
    PHASE_FORWARD,
    PROJECTED,
    SHRINK,
    STRIP,
    TRANSPORT,
    strip_rows,
)


@inlined
def slot(slots: Any, number: int, size: int) -> Any:
    return offset(slots, number * size)


@block
def add_up(slots: Any, size: int, plan: Any, at: int, numbers: Any, first: int, n: int, d: int) -> None:
    """``out = sum_k numbers[k] argument_k``."""
    out, count, scale = slot(slots, plan[at + 1], size), plan[at + 6], plan[at + 7]
    for k in range(first * d, (first + n) * d, LANES):
        sums = numbers[scale] * wide(slot(slots, plan[at + 2], size), k)
        for term in range(1, count):
            sums = fma(numbers[scale + term], wide(slot(slots, plan[at + 2 + term], size), k), sums)
        store(out, k, sums)


@block
def map_rows(
    slots: Any, size: int, plan: Any, begin: int, end: int, numbers: Any, first: int, n: int, d: int, s: Any, c: float,
    margin: float,
) -> int:  # fmt: skip
    """The row maps from ``begin`` to ``end`` for a strip; returns how many points were projected."""
    v, moved, count = BUFFERS, BUFFERS + STRIP * d, 0
    for at in range(begin, end, MAP_FORWARD):
        kind, out = plan[at], slot(slots, plan[at + 1], size)
        x, y, w = slot(slots, plan[at + 2], size), slot(slots, plan[at + 3], size), slot(slots, plan[at + 4], size)
        if kind == ADD_UP:
            add_up(slots, size, plan, at, numbers, first, n, d)
        elif kind == EXPONENTIAL:
            done = 0
            if is_single(real(0.0, x)):
                done = exp_inside(x, y, first, n, d, s, c, out)
            if done == 0:
                for k in range(0, n * d, LANES):
                    store(s, v + k, wide(y, first * d + k))
                count += exp_strip(x, first, n, d, s, v, moved, c, margin)
                for k in range(0, n * d, LANES):
                    store(out, first * d + k, load(s, moved + k))
        elif kind == LOGARITHM:
            log_strip(x, y, first, n, d, c, margin, s, out)
        elif kind == TRANSPORT:
            transport_strip(x, y, w, first, n, d, c, margin, s, out)
        elif kind == SHRINK:
            shrink_strip(x, y, w, first, n, d, c, margin, s, out)
    return count


@kernel
def forward(
    s: Doubles, sync: Ints, phases: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints, owners: Ints,
    d: Int, slots: Reals, b: Doubles, values: Reals, origin: Reals, anchored: Int, z0: Reals, mode: Int, code: Int, e0:
    Double, e1: Double, e2: Double, c: Double, margin: Double, plan: Ints, numbers: Doubles, partial: Doubles, stage:
    Int, keep: Int, kept: Doubles,
) -> None:  # fmt: skip
    """Fill the slots, given the first one."""
    size, v, moved, strip = rows * d, BUFFERS, BUFFERS + STRIP * d, strip_rows(d)
    for phase in range(phases):
        at = PHASE_FORWARD * phase
        b_here, b_there = offset(b, phase % 2 * rows), offset(b, (phase + 1) % 2 * rows)
        needed, known = offset(blocks, phase * stage), offset(kept, max(phase - 1, 0) * (size + rows))
        part = take(sync, phase, parts)
        while part < parts:
            last = indptr[needed[part + 1]] - 1
            for first in range(needed[part], needed[part + 1], strip):
                n = min(strip, needed[part + 1] - first)
                if plan[at] >= 0:
                    z, out = slot(slots, plan[at], size), slot(slots, plan[at + 1], size)
                    gather_edges(
                        first,
                        n,
                        last,
                        indptr,
                        indices,
                        owners,
                        d,
                        z,
                        b_here,
                        values,
                        origin,
                        anchored,
                        c,
                        s,
                        v,
                        0,
                        b,
                        0,
                        0,
                    )
                    if keep != 0:
                        keep_sums(first, n, d, s, v, known, offset(known, size))
                    partial[part * PARTIALS + PROJECTED] += flow_strip(
                        z, first, n, d, z0, s, v, moved, mode, code, e0, e1, e2, c, margin, out
                    )
                partial[part * PARTIALS + PROJECTED] += map_rows(
                    slots, size, plan, plan[at + 2], plan[at + 3], numbers, first, n, d, s, c, margin
                )
                if phase < phases - 1:
                    following = slot(slots, plan[at + PHASE_FORWARD], size)
                    conformal(first, first + n, d, following, c, margin, b_there)
            part = next_part(sync, phase, parts)
        meet(sync, phase, parts)


@block
def add_up_backward(grads: Any, size: int, plan: Any, at: int, numbers: Any, first: int, n: int, d: int) -> None:
    g, count, scale = slot(grads, plan[at + 1], size), plan[at + 14], plan[at + 15]
    for term in range(count):
        into, add, number = slot(grads, plan[at + 6 + term], size), plan[at + 10 + term], numbers[scale + term]
        for k in range(first * d, (first + n) * d, LANES):
            put(into, k, number * wide(g, k), add)


@block
def exp_backward(
    x: Any, v: Any, first: int, n: int, d: int, c: float, margin: float, s: Any, g: Any, gx: Any, gv: Any, add_x: int,
    add_v: int, partial: Any, line: int,
) -> None:  # fmt: skip
    """The gradient of ``exp_x(v)`` for a strip."""
    done = 0
    if is_single(real(0.0, x)):
        done = exp_inside_backward(x, v, first, n, d, s, c, g, gx, gv, add_x, add_v, partial, line)
    if done != 0:
        return
    size = STRIP * d
    u, moved, gm, gz, gu = BUFFERS, BUFFERS + size, BUFFERS + 2 * size, BUFFERS + 3 * size, BUFFERS + 4 * size
    for k in range(0, n * d, LANES):
        store(s, u + k, wide(v, first * d + k))
    exp_strip(x, first, n, d, s, u, moved, c, margin)
    for k in range(0, n * d, LANES):
        store(s, gm + k, wide(g, first * d + k))
        store(s, gz + k, spread(0.0))
    for r in range(n):
        s[GC + r] = 0.0
    exp_strip_backward(x, first, n, d, s, u, gm, gz, gu, c, margin)
    for r in range(n):
        partial[line] += s[GC + r]
    for k in range(0, n * d, LANES):
        put(gx, first * d + k, load(s, gz + k), add_x)
        put(gv, first * d + k, load(s, gu + k), add_v)


@block
def map_rows_backward(
    slots: Any, grads: Any, size: int, plan: Any, begin: int, end: int, numbers: Any, first: int, n: int, d: int,
    s: Any, c: float, margin: float, partial: Any, line: int,
) -> None:  # fmt: skip
    """Gradients of row maps, in the order of the plan."""
    for at in range(begin, end, MAP_BACKWARD):
        kind, g = plan[at], slot(grads, plan[at + 1], size)
        x, y, w = slot(slots, plan[at + 2], size), slot(slots, plan[at + 3], size), slot(slots, plan[at + 4], size)
        gx, gy, gw = slot(grads, plan[at + 6], size), slot(grads, plan[at + 7], size), slot(grads, plan[at + 8], size)
        add_x, add_y, add_w = plan[at + 10], plan[at + 11], plan[at + 12]
        if kind == ADD_UP:
            add_up_backward(grads, size, plan, at, numbers, first, n, d)
        elif kind == EXPONENTIAL:
            exp_backward(x, y, first, n, d, c, margin, s, g, gx, gy, add_x, add_y, partial, line)
        elif kind == LOGARITHM:
            log_backward_strip(x, y, first, n, d, c, margin, s, g, gx, gy, add_x, add_y, partial, line)
        elif kind == TRANSPORT:
            transport_backward_strip(
                x, y, w, first, n, d, c, margin, s, g, gx, gy, gw, add_x, add_y, add_w, partial, line
            )
        elif kind == SHRINK:
            shrink_backward_strip(x, y, w, first, n, d, c, margin, s, g, gx, gy, gw, add_x, add_y, add_w, partial, line)


@inlined
def go_back(
    mutual: int, s: Any, sync: Any, phases: int, parts: int, blocks: Any, rows: int, indptr: Any, indices: Any,
    owners: Any, d: int, slots: Any, b: Any, values: Any, origin: Any, anchored: int, z0: Any, mode: int, code: int,
    e0: float, e1: float, e2: float, c: float, margin: float, plan: Any, numbers: Any, partial: Any, grads: Any, g: Any,
    gz0: Any, gorigin: Any, wanted: int, gvalues: Any, tell: Any, apart: int, columns: int, cuts: Any, start: Any,
    receivers: Any, order: Any, nodes: Any, own: Any, back: Any, stage: int, keep: int, kept: Any,
) -> None:  # fmt: skip
    """Both kernels below; each has some of the last arguments."""
    size, strip, room = rows * d, strip_rows(d), STRIP * d
    gz, gu = BUFFERS + 3 * room, BUFFERS + 4 * room
    visited = offset(blocks, max(phases - 2, 0) * stage)
    part = take(sync, 0, parts)
    while part < parts:
        conformal(visited[part], visited[part + 1], d, slot(slots, max(plan[0], 0), size), c, margin, b)
        part = next_part(sync, 0, parts)
    meet(sync, 0, parts)
    for phase in range(phases):
        at, first_phase, step = PHASE_BACKWARD * phase, 2 * phase + 1, phases - 1 - phase
        moved, present = offset(blocks, step * stage), offset(blocks, max(step - 1, 0) * stage)
        earlier, sums = offset(blocks, max(step - 2, 0) * stage), offset(kept, max(step - 1, 0) * (size + rows))
        z, into = slot(slots, plan[at], size), slot(grads, plan[at + 2], size)
        following, is_followed = slot(slots, plan[at + PHASE_BACKWARD], size) if phase < phases - 1 else z, 0
        if phase < phases - 1 and plan[at + PHASE_BACKWARD] >= 0:
            is_followed = 1
        part = take(sync, first_phase, parts)
        while part < parts:
            last, line = indptr[moved[part + 1]] - 1, part * PARTIALS
            for first in range(moved[part], moved[part + 1], strip):
                n = min(strip, moved[part + 1] - first)
                map_rows_backward(
                    slots, grads, size, plan, plan[at + 4], plan[at + 5], numbers, first, n, d, s, c, margin, partial,
                    line,
                )  # fmt: skip
                if plan[at] >= 0:
                    known = BUFFERS + 7 * room - indptr[first]
                    rows_edges(
                        part, first, n, last, s, indptr, indices, owners, d, z, b, values, origin, anchored, z0, mode,
                        code, e0, e1, e2, c, margin, keep, sums, offset(sums, size), 1 - mutual, known, apart,
                        slot(grads, plan[at + 1], size), g, gz0, gorigin, partial,
                    )  # fmt: skip
                    if mutual:
                        leave_rows(first, n, d, b, g, s, gz, gu, nodes, own)
                    else:
                        partial[line] += receive_edges(
                            first, n, indptr, indices, d, z, b, values, c, s, gz, gu, s, known, apart, wanted, gvalues,
                            tell,
                        )  # fmt: skip
                        for k in range(0, n * d, LANES):
                            put(into, first * d + k, load(s, gz + k), plan[at + 3])
            if plan[at] >= 0 and mutual:
                leave_bystanders(part, parts, moved, present, earlier, d, z, b, g, nodes, own)
            part = next_part(sync, first_phase, parts)
        meet(sync, first_phase, parts)
        if plan[at] >= 0 and mutual:
            part = take(sync, first_phase + 1, parts)
            while part < parts:
                mutual_edges(
                    part, s, present, indptr, indices, owners, d, g, nodes, own, values, back, c, wanted, gvalues, into,
                    plan[at + 3], partial,
                )  # fmt: skip
                if is_followed:
                    conformal(earlier[part], earlier[part + 1], d, following, c, margin, b)
                part = next_part(sync, first_phase + 1, parts)
            meet(sync, first_phase + 1, parts)
        if plan[at] >= 0 and not mutual:
            part = take(sync, first_phase + 1, columns)
            while part < columns:
                first, after = cuts[part], cuts[part + 1]
                senders_edges(first, after, start[after] - 1, start, receivers, order, d, z, g, tell, into)
                if is_followed:
                    conformal(first, after, d, following, c, margin, b)
                part = next_part(sync, first_phase + 1, columns)
            meet(sync, first_phase + 1, columns)


@kernel
def backward(
    s: Doubles, sync: Ints, phases: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints,
    owners: Ints, d: Int, slots: Reals, b: Doubles, values: Reals, origin: Reals, anchored: Int, z0: Reals, mode: Int,
    code: Int, e0: Double, e1: Double, e2: Double, c: Double, margin: Double, plan: Ints, numbers: Doubles,
    partial: Doubles, grads: Reals, g: Reals, gz0: Reals, gorigin: Doubles, wanted: Int, gvalues: Reals, tell: Reals,
    apart: Int, columns: Int, cuts: Ints, start: Ints, receivers: Ints, order: Ints,
) -> None:  # fmt: skip
    """From the gradient of the result, in its slot of ``grads``, to that of the first slot."""
    go_back(
        0, s, sync, phases, parts, blocks, rows, indptr, indices, owners, d, slots, b, values, origin, anchored, z0,
        mode, code, e0, e1, e2, c, margin, plan, numbers, partial, grads, g, gz0, gorigin, wanted, gvalues, tell, apart,
        columns, cuts, start, receivers, order, s, values, values, 0, 0, s,
    )  # fmt: skip


@kernel
def backward_mutual(
    s: Doubles, sync: Ints, phases: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints,
    owners: Ints, d: Int, slots: Reals, b: Doubles, values: Reals, origin: Reals, anchored: Int, z0: Reals, mode: Int,
    code: Int, e0: Double, e1: Double, e2: Double, c: Double, margin: Double, plan: Ints, numbers: Doubles,
    partial: Doubles, grads: Reals, g: Reals, gz0: Reals, gorigin: Doubles, wanted: Int, gvalues: Reals,
    nodes: Doubles, own: Reals, back: Reals, stage: Int, keep: Int, kept: Doubles,
) -> None:  # fmt: skip
    """:func:`backward` where every edge has its reverse, of weight ``back``; ``nodes`` and ``own`` are buffers."""
    go_back(
        1, s, sync, phases, parts, blocks, rows, indptr, indices, owners, d, slots, b, values, origin, anchored, z0,
        mode, code, e0, e1, e2, c, margin, plan, numbers, partial, grads, g, gz0, gorigin, wanted, gvalues, values, 0,
        0, indices, indices, indices, indices, nodes, own, back, stage, keep, kept,
    )  # fmt: skip
