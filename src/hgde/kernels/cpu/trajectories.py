"""Whole trajectories in one call, threads included: steps one after the other, and their gradients backwards.

A step needs its neighbours' states, so steps are phases (:mod:`hgde.kernels.cpu.phases`). Forward a step is one phase,
which leaves ``1 - c|z|^2`` for the next; backward it is two, by receivers and by senders. ``states [steps - 1, N, d]``
are the states between ``z`` and ``out``; ``b`` is a buffer, of two numbers for each row forward and one backward.
``kept`` has, for the last ``keep`` steps, the sums, one more number for each row, and ``apart`` pairs of numbers of
edges, ``stride`` numbers in all. ``owners`` are the rows of the edges.

Where only some rows of the end are asked for (:mod:`hgde.kernels.reach`) a state is needed of its first rows alone, of
fewer from step to step; ``blocks`` then has a line for each state, ``stage`` numbers apart, else ``stage`` is 0.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, inlined, kernel
from hgde.kernels.cpu.edges import conformal, step_channels, step_edges
from hgde.kernels.cpu.elementary import reals
from hgde.kernels.cpu.gradients import (
    receivers_channels,
    receivers_edges,
    rows_edges,
    senders_channels,
    senders_edges,
)
from hgde.kernels.cpu.lanes import LANES, load, store, wide, zeros
from hgde.kernels.cpu.mutual import leave_bystanders, leave_rows, mutual_edges
from hgde.kernels.cpu.phases import meet, next_part, offset, take
from hgde.kernels.cpu.sizes import BUFFERS, STRIP, strip_rows


@inlined
def begin(
    sync: Any, parts: int, blocks: Any, d: int, z: Any, c: float, margin: float, b: Any
) -> None:  # fmt: skip
    """The first phase: ``b`` of the first state visited."""
    part = take(sync, 0, parts)
    while part < parts:
        conformal(blocks[part], blocks[part + 1], d, z, c, margin, b)
        part = next_part(sync, 0, parts)
    meet(sync, 0, parts)


@inlined
def at_step(step: int, size: int, z: Any, states: Any) -> Any:
    """The state that a step starts from."""
    return z if step == 0 else offset(states, (step - 1) * size)


@inlined
def is_kept(step: int, steps: int, keep: int) -> int:
    """Whether a step is among the last, whose sums are kept."""
    return 1 if step >= steps - keep else 0


@kernel
def forward_edges(
    s: Doubles, sync: Ints, steps: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints, owners: Ints,
    d: Int, z: Reals, states: Reals, b: Doubles, values: Reals, origin: Reals, anchored: Int, z0: Reals, mode: Int,
    code: Int, e0: Double, e1: Double, e2: Double, c: Double, margin: Double, keep: Int, kept: Doubles, stride: Int,
    apart: Int, out: Reals, partial: Doubles, stage: Int,
) -> None:  # fmt: skip
    begin(sync, parts, blocks, d, z, c, margin, b)
    size = rows * d
    for step in range(steps):
        here, kept_here = at_step(step, size, z, states), is_kept(step, steps, keep)
        known = offset(kept, max(step - steps + keep, 0) * stride)
        pulled, memo = offset(known, size), offset(known, size + rows)
        there = out if step == steps - 1 else offset(states, step * size)
        b_here, b_there = offset(b, step % 2 * rows), offset(b, (step + 1) % 2 * rows)
        needed = offset(blocks, (step + 1) * stage)
        part = take(sync, step + 1, parts)
        while part < parts:
            step_edges(
                part, s, needed, indptr, indices, owners, d, here, b_here, values, origin, anchored, z0, mode, code, e0,
                e1, e2, c, margin, kept_here, known, pulled, memo, apart, there, b_there, partial,
            )  # fmt: skip
            part = next_part(sync, step + 1, parts)
        meet(sync, step + 1, parts)


@kernel
def forward_channels(
    s: Doubles, sync: Ints, steps: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints, owners: Ints,
    d: Int, z: Reals, states: Reals, b: Doubles, table: Reals, index: Ints, weighted: Int, edge: Reals, scale: Reals,
    z0: Reals, mode: Int, code: Int, e0: Double, e1: Double, e2: Double, c: Double, margin: Double, keep: Int,
    kept: Doubles, stride: Int, apart: Int, out: Reals, partial: Doubles,
) -> None:  # fmt: skip
    begin(sync, parts, blocks, d, z, c, margin, b)
    size = rows * d
    for step in range(steps):
        here, kept_here = at_step(step, size, z, states), is_kept(step, steps, keep)
        known = offset(kept, max(step - steps + keep, 0) * stride)
        memo = offset(known, size + rows)
        there = out if step == steps - 1 else offset(states, step * size)
        b_here, b_there = offset(b, step % 2 * rows), offset(b, (step + 1) % 2 * rows)
        part = take(sync, step + 1, parts)
        while part < parts:
            step_channels(
                part, s, blocks, indptr, indices, owners, d, here, b_here, table, index, weighted, edge, scale, z0,
                mode, code, e0, e1, e2, c, margin, kept_here, known, memo, apart, there, b_there,
                partial,
            )  # fmt: skip
            part = next_part(sync, step + 1, parts)
        meet(sync, step + 1, parts)


@kernel
def backward_edges(
    s: Doubles, sync: Ints, steps: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints, owners: Ints,
    d: Int, z: Reals, states: Reals, b: Doubles, values: Reals, origin: Reals, anchored: Int, z0: Reals, mode: Int,
    code: Int, e0: Double, e1: Double, e2: Double, c: Double, margin: Double, keep: Int, kept: Doubles, stride: Int,
    apart: Int, grad: Reals, g: Reals, gz: Reals, gz0: Reals, gorigin: Doubles, wanted: Int, gvalues: Reals, tell:
    Reals, partial: Doubles, columns: Int, cuts: Ints, start: Ints, receivers: Ints, order: Ints,
) -> None:  # fmt: skip
    """``gz`` ends as the gradient at ``z``; the pattern by senders has ``columns`` blocks, ``cuts``."""
    size = rows * d
    begin(sync, parts, blocks, d, at_step(steps - 1, size, z, states), c, margin, b)
    for back in range(steps):
        step, phase = steps - 1 - back, 2 * back + 1
        here, kept_here = at_step(step, size, z, states), is_kept(step, steps, keep)
        known = offset(kept, max(step - steps + keep, 0) * stride)
        pulled, memo = offset(known, size), offset(known, size + rows)
        arriving = grad if back == 0 else gz
        part = take(sync, phase, parts)
        while part < parts:
            receivers_edges(
                part, s, blocks, indptr, indices, owners, d, here, b, values, origin, anchored, z0, mode, code, e0, e1,
                e2, c, margin, kept_here, known, pulled, memo, apart, arriving, g, gz, gz0, gorigin, wanted, gvalues,
                tell, partial,
            )  # fmt: skip
            part = next_part(sync, phase, parts)
        meet(sync, phase, parts)
        part = take(sync, phase + 1, columns)
        while part < columns:
            first, after = cuts[part], cuts[part + 1]
            senders_edges(first, after, start[after] - 1, start, receivers, order, d, here, g, tell, gz)
            if step > 0:
                conformal(first, after, d, at_step(step - 1, size, z, states), c, margin, b)
            part = next_part(sync, phase + 1, columns)
        meet(sync, phase + 1, columns)


@kernel
def backward_mutual(
    s: Doubles, sync: Ints, steps: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints, owners: Ints,
    d: Int, z: Reals, states: Reals, b: Doubles, values: Reals, origin: Reals, anchored: Int, z0: Reals, mode: Int,
    code: Int, e0: Double, e1: Double, e2: Double, c: Double, margin: Double, keep: Int, kept: Doubles, stride: Int,
    apart: Int, grad: Reals, g: Reals, gz: Reals, gz0: Reals, gorigin: Doubles, wanted: Int, gvalues: Reals, nodes:
    Doubles, partial: Doubles, own: Reals, back: Reals, joined: Int, stage: Int,
) -> None:  # fmt: skip
    """:func:`backward_edges` where every edge has its reverse, of weight ``back``; ``nodes`` and ``own`` are
    buffers of two and ``2 d`` numbers a row. If ``joined``, the start is ``z`` and its gradient goes into ``gz``; for a
    single step ``gz0`` is then not used."""
    size, strip = rows * d, strip_rows(d)
    at_gz, at_gu, at_start = BUFFERS + 3 * STRIP * d, BUFFERS + 4 * STRIP * d, BUFFERS + 5 * STRIP * d
    begin(sync, parts, offset(blocks, (steps - 1) * stage), d, at_step(steps - 1, size, z, states), c, margin, b)
    for turn in range(steps):
        step, phase = steps - 1 - turn, 2 * turn + 1
        here, kept_here = at_step(step, size, z, states), is_kept(step, steps, keep)
        known = offset(kept, max(step - steps + keep, 0) * stride)
        pulled = offset(known, size)
        arriving = grad if turn == 0 else gz
        moved, present = offset(blocks, (step + 1) * stage), offset(blocks, step * stage)
        earlier = offset(blocks, max(step - 1, 0) * stage)
        part = take(sync, phase, parts)
        while part < parts:
            last = indptr[moved[part + 1]] - 1
            for first in range(moved[part], moved[part + 1], strip):
                n = min(strip, moved[part + 1] - first)
                gstart = gz0
                if joined != 0 and steps == 1:
                    gstart = offset(reals(s, at_start, z), -first * d)
                    for k in range(first * d, (first + n) * d, LANES):
                        store(gstart, k, zeros(z))
                rows_edges(
                    part, first, n, last, s, indptr, indices, owners, d, here, b, values, origin, anchored, z0, mode,
                    code, e0, e1, e2, c, margin, kept_here, known, pulled, 0, 0, 0, arriving, g, gstart, gorigin,
                    partial,
                )  # fmt: skip
                if joined != 0 and step == 0:
                    for k in range(0, n * d, LANES):
                        store(s, at_gz + k, load(s, at_gz + k) + wide(gstart, first * d + k))
                leave_rows(first, n, d, b, g, s, at_gz, at_gu, nodes, own)
            leave_bystanders(part, parts, moved, present, earlier, d, here, b, g, nodes, own)
            part = next_part(sync, phase, parts)
        meet(sync, phase, parts)
        part = take(sync, phase + 1, parts)
        while part < parts:
            mutual_edges(
                part, s, present, indptr, indices, owners, d, g, nodes, own, values, back, c, wanted, gvalues, gz,
                0, partial,
            )  # fmt: skip
            if step > 0:
                before = at_step(step - 1, size, z, states)
                conformal(earlier[part], earlier[part + 1], d, before, c, margin, b)
            part = next_part(sync, phase + 1, parts)
        meet(sync, phase + 1, parts)


@kernel
def backward_channels(
    s: Doubles, sync: Ints, steps: Int, parts: Int, blocks: Ints, rows: Int, indptr: Ints, indices: Ints, owners: Ints,
    d: Int, z: Reals, states: Reals, b: Doubles, table: Reals, index: Ints, weighted: Int, edge: Reals, scale: Reals,
    z0: Reals, mode: Int, code: Int, e0: Double, e1: Double, e2: Double, c: Double, margin: Double, keep: Int, kept:
    Doubles, stride: Int, apart: Int, grad: Reals, g: Reals, gz: Reals, gz0: Reals, gscale: Reals, gtable: Doubles,
    length: Int, group: Int, wanted: Int, gedge: Reals, tell: Reals, partial: Doubles, columns: Int, cuts: Ints, start:
    Ints, receivers: Ints, order: Ints,
) -> None:  # fmt: skip
    """:func:`backward_edges`; ``group`` blocks one after the other add to the same copy of the table's gradient."""
    size, groups = rows * d, (parts + group - 1) // group
    begin(sync, parts, blocks, d, at_step(steps - 1, size, z, states), c, margin, b)
    for back in range(steps):
        step, phase = steps - 1 - back, 2 * back + 1
        here, kept_here = at_step(step, size, z, states), is_kept(step, steps, keep)
        known = offset(kept, max(step - steps + keep, 0) * stride)
        memo = offset(known, size + rows)
        arriving = grad if back == 0 else gz
        part = take(sync, phase, groups)
        while part < groups:
            for member in range(part * group, min(part * group + group, parts)):
                receivers_channels(
                    member, s, blocks, indptr, indices, owners, d, here, b, table, index, weighted, edge, scale, z0,
                    mode, code, e0, e1, e2, c, margin, kept_here, known, memo, apart, arriving, g, gz,
                    gz0, gscale, gtable, part * length, wanted, gedge, tell, partial,
                )  # fmt: skip
            part = next_part(sync, phase, groups)
        meet(sync, phase, groups)
        part = take(sync, phase + 1, columns)
        while part < columns:
            first, after = cuts[part], cuts[part + 1]
            senders_channels(
                first, after, start[after] - 1, start, receivers, order, d, here, g, table, index, tell, gz
            )
            if step > 0:
                conformal(first, after, d, at_step(step - 1, size, z, states), c, margin, b)
            part = next_part(sync, phase + 1, columns)
        meet(sync, phase + 1, columns)
