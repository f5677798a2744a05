"""From tangent vectors to the flow, strip by strip: activation, exponential and residual, and their gradient."""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, block, kernel
from hgde.kernels.cpu.combined import combine_strip, combine_strip_backward
from hgde.kernels.cpu.elementary import is_single, real
from hgde.kernels.cpu.exponential import (
    GC,
    GE0,
    GE1,
    GE2,
    INNER_MARGIN,
    activate,
    activate_backward,
    exp_strip,
    exp_strip_backward,
)  # fmt: skip
from hgde.kernels.cpu.lanes import LANES, load, spread, store, wide
from hgde.kernels.cpu.residual import midpoint_scalars, midpoint_strip, midpoint_strip_backward
from hgde.kernels.cpu.sizes import BUFFERS, PARTIALS, PROJECTED, STRIP


@block
def flow_strip(
    z: Any, first: int, n: int, d: int, z0: Any, s: Any, v: int, moved: int, mode: int, code: int, e0: float,
    e1: float, e2: float, c: float, margin: float, out: Any,
) -> int:  # fmt: skip
    """``out = F`` from tangent vectors at ``v``: as they are (``mode`` 0), their exponential (1), the residual (2)."""
    count = 0
    if mode > 0:
        activate(s, v, n * d, code)
        done = 0
        if is_single(real(0.0, z)) and mode == 2:
            done = combine_strip(z, first, n, d, z0, s, v, e0, e1, e2, c, out)
        if done != 0:
            return 0
        count = exp_strip(z, first, n, d, s, v, moved, c, margin if mode == 1 else INNER_MARGIN)
    if mode == 2:
        midpoint_scalars(z, first, n, d, z0, s, moved, e0, e1, e2, c, margin)
        return count + midpoint_strip(z, first, n, d, z0, s, moved, c, margin, out)
    source = moved if mode == 1 else v
    for k in range(0, n * d, LANES):
        store(out, first * d + k, load(s, source + k))
    return count


@block
def flow_strip_backward(
    z: Any, first: int, n: int, d: int, z0: Any, s: Any, v: int, moved: int, gm: int, gz: int, gu: int, mode: int,
    code: int, e0: float, e1: float, e2: float, c: float, margin: float, grad: Any, gz0: Any, partial: Any, line: int,
) -> None:  # fmt: skip
    """From ``grad`` at ``F`` to ``gu`` at the tangent vectors ``v`` (activated here), ``gz``, ``gz0 += ...``."""
    if mode == 0:
        for k in range(0, n * d, LANES):
            store(s, gz + k, spread(0.0))
            store(s, gu + k, wide(grad, first * d + k))
        return
    activate(s, v, n * d, code)
    done = 0
    if is_single(real(0.0, z)) and mode == 2:
        done = combine_strip_backward(z, first, n, d, z0, s, v, gz, gu, e0, e1, e2, c, grad, gz0)
    if done == 0:
        held = margin if mode == 1 else INNER_MARGIN
        exp_strip(z, first, n, d, s, v, moved, c, held)
        if mode == 2:
            midpoint_scalars(z, first, n, d, z0, s, moved, e0, e1, e2, c, margin)
            midpoint_strip_backward(z, first, n, d, z0, s, moved, e0, e1, e2, c, margin, grad, gm, gz, gz0)
        else:
            for r in range(n):
                s[GC + r] = 0.0
            for k in range(0, n * d, LANES):
                store(s, gm + k, wide(grad, first * d + k))
                store(s, gz + k, spread(0.0))
        exp_strip_backward(z, first, n, d, s, v, gm, gz, gu, c, held)
    activate_backward(s, v, gu, n * d, code)
    for r in range(n):
        partial[line] += s[GC + r]
    if mode == 2:
        for r in range(n):
            partial[line + 1] += s[GE0 + r]
            partial[line + 2] += s[GE1 + r]
            partial[line + 3] += s[GE2 + r]


@kernel
def advance(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, z: Reals, v: Reals, z0: Reals, mode: Int, code: Int,
    e0: Double, e1: Double, e2: Double, c: Double, margin: Double, out: Reals, partial: Doubles,
) -> None:  # fmt: skip
    """``out = F`` from tangent vectors at hand, for the rows of blocks ``begin .. end - 1``."""
    at_v, at_moved = BUFFERS, BUFFERS + STRIP * d
    for block_ in range(begin, end):
        for first in range(blocks[block_], blocks[block_ + 1], STRIP):
            n = min(STRIP, blocks[block_ + 1] - first)
            for k in range(0, n * d, LANES):
                store(s, at_v + k, wide(v, first * d + k))
            partial[block_ * PARTIALS + PROJECTED] += flow_strip(
                z, first, n, d, z0, s, at_v, at_moved, mode, code, e0, e1, e2, c, margin, out
            )


@kernel
def advance_backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, z: Reals, v: Reals, z0: Reals, mode: Int, code: Int,
    e0: Double, e1: Double, e2: Double, c: Double, margin: Double, grad: Reals, gz: Reals, gv: Reals, gz0: Reals,
    partial: Doubles,
) -> None:  # fmt: skip
    """The gradient of :func:`advance`; ``gz0`` is added to."""
    size = STRIP * d
    at_v, at_moved, at_gm, at_gz, at_gu = (
        BUFFERS, BUFFERS + size, BUFFERS + 2 * size, BUFFERS + 3 * size, BUFFERS + 4 * size,
    )  # fmt: skip
    for block_ in range(begin, end):
        for first in range(blocks[block_], blocks[block_ + 1], STRIP):
            n = min(STRIP, blocks[block_ + 1] - first)
            for k in range(0, n * d, LANES):
                store(s, at_v + k, wide(v, first * d + k))
            flow_strip_backward(
                z, first, n, d, z0, s, at_v, at_moved, at_gm, at_gz, at_gu, mode, code, e0, e1, e2, c, margin, grad,
                gz0, partial, block_ * PARTIALS,
            )  # fmt: skip
            for k in range(0, n * d, LANES):
                store(gz, first * d + k, load(s, at_gz + k))
                store(gv, first * d + k, load(s, at_gu + k))
