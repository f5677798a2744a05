"""Products of a strip of :data:`STRIP` rows with a tile of :data:`TILE` columns.

Rows lie as ``[N, d]``; the columns of a tile also as ``[d, TILE]``, so that a vector holds eight of them. A strip's
results ``[STRIP, TILE]`` stay in cache for what follows. Widths are multiples of :data:`WIDTH`; callers pad with zeros.
Every number is the sum of its terms in order, whatever the machine.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import block, inlined
from hgde.kernels.cpu.lanes import LANES, fma, load, store, total, widened, zeros
from hgde.kernels.cpu.sizes import STRIP_OF_TILE as STRIP
from hgde.kernels.cpu.sizes import TILE

AREA = STRIP * TILE
WIDTH = 2 * LANES


@block
def squared_distances(z: Any, row: int, zt: Any, tile: int, d: int, t: Any, out: int) -> None:
    """``out_rk = |z_k - z_r|^2``, from differences: nothing cancels however close the points are."""
    for r in range(0, STRIP, 2):
        one, two = (row + r) * d, (row + r + 1) * d
        for k in range(0, TILE, WIDTH):
            a, b, e, f = zeros(z), zeros(z), zeros(z), zeros(z)
            at = tile * d * TILE + k
            for m in range(d):
                x, y = load(zt, at + m * TILE), load(zt, at + m * TILE + LANES)
                p, q, u, v = x - z[one + m], y - z[one + m], x - z[two + m], y - z[two + m]
                a = fma(p, p, a)
                b = fma(q, q, b)
                e = fma(u, u, e)
                f = fma(v, v, f)
            to = out + r * TILE + k
            store(t, to, a)
            store(t, to + LANES, b)
            store(t, to + TILE, e)
            store(t, to + TILE + LANES, f)


@block
def differences(
    z: Any, g: Any, row: int, zt: Any, gt: Any, tile: int, d: int, t: Any, out: int, toward: int, back: int
) -> None:
    """:func:`squared_distances`, ``toward_rk = <g_r, z_k - z_r>`` and ``back_rk = <g_k, z_k - z_r>``."""
    for r in range(0, STRIP, 2):
        one, two = (row + r) * d, (row + r + 1) * d
        for k in range(0, TILE, WIDTH):
            a, b, e, f = zeros(z), zeros(z), zeros(z), zeros(z)
            ta, tb, te, tf = zeros(z), zeros(z), zeros(z), zeros(z)
            ba, bb, be, bf = zeros(z), zeros(z), zeros(z), zeros(z)
            at = tile * d * TILE + k
            for m in range(d):
                x, y = load(zt, at + m * TILE), load(zt, at + m * TILE + LANES)
                gx, gy = load(gt, at + m * TILE), load(gt, at + m * TILE + LANES)
                p, q, u, v = x - z[one + m], y - z[one + m], x - z[two + m], y - z[two + m]
                a = fma(p, p, a)
                b = fma(q, q, b)
                e = fma(u, u, e)
                f = fma(v, v, f)
                ta = fma(p, g[one + m], ta)
                tb = fma(q, g[one + m], tb)
                te = fma(u, g[two + m], te)
                tf = fma(v, g[two + m], tf)
                ba = fma(p, gx, ba)
                bb = fma(q, gy, bb)
                be = fma(u, gx, be)
                bf = fma(v, gy, bf)
            to = r * TILE + k
            store(t, out + to, a)
            store(t, out + to + LANES, b)
            store(t, out + to + TILE, e)
            store(t, out + to + TILE + LANES, f)
            store(t, toward + to, ta)
            store(t, toward + to + LANES, tb)
            store(t, toward + to + TILE, te)
            store(t, toward + to + TILE + LANES, tf)
            store(t, back + to, ba)
            store(t, back + to + LANES, bb)
            store(t, back + to + TILE, be)
            store(t, back + to + TILE + LANES, bf)


@block
def inner_products(x: Any, row: int, yt: Any, tile: int, d: int, t: Any, out: int) -> None:
    """``out_rk = <x_r, y_k>``."""
    for r in range(0, STRIP, 4):
        one, two, three, four = (row + r) * d, (row + r + 1) * d, (row + r + 2) * d, (row + r + 3) * d
        for k in range(0, TILE, WIDTH):
            a, b, e, f = zeros(x), zeros(x), zeros(x), zeros(x)
            g, h, p, q = zeros(x), zeros(x), zeros(x), zeros(x)
            at = tile * d * TILE + k
            for m in range(d):
                u, v = load(yt, at + m * TILE), load(yt, at + m * TILE + LANES)
                a = fma(u, x[one + m], a)
                b = fma(v, x[one + m], b)
                e = fma(u, x[two + m], e)
                f = fma(v, x[two + m], f)
                g = fma(u, x[three + m], g)
                h = fma(v, x[three + m], h)
                p = fma(u, x[four + m], p)
                q = fma(v, x[four + m], q)
            to = out + r * TILE + k
            store(t, to, a)
            store(t, to + LANES, b)
            store(t, to + TILE, e)
            store(t, to + TILE + LANES, f)
            store(t, to + 2 * TILE, g)
            store(t, to + 2 * TILE + LANES, h)
            store(t, to + 3 * TILE, p)
            store(t, to + 3 * TILE + LANES, q)


@block
def add_to_rows(sums: Any, row: int, t: Any, at: int, x: Any, column: int, d: int) -> None:
    """``sums_r += sum_k t_rk x_k`` over the columns; terms in the precision of ``x``, the total in doubles."""
    _add_product(sums, row, STRIP, t, at, TILE, 1, x, column, TILE, d)


@block
def add_to_columns(sums: Any, column: int, t: Any, at: int, x: Any, row: int, d: int) -> None:
    """``sums_k += sum_r t_rk x_r`` over the rows of a strip."""
    _add_product(sums, column, TILE, t, at, 1, TILE, x, row, STRIP, d)


@inlined
def _add_product(
    sums: Any, to: int, rows: int, t: Any, at: int, down: int, along: int, x: Any, first: int, count: int, d: int
) -> None:
    for r in range(0, rows, 4):
        for m in range(0, d, WIDTH):
            a, b, e, f = zeros(x), zeros(x), zeros(x), zeros(x)
            g, h, p, q = zeros(x), zeros(x), zeros(x), zeros(x)
            for j in range(count):
                u, v = load(x, (first + j) * d + m), load(x, (first + j) * d + m + LANES)
                place = at + r * down + j * along
                a = fma(u, t[place], a)
                b = fma(v, t[place], b)
                e = fma(u, t[place + down], e)
                f = fma(v, t[place + down], f)
                g = fma(u, t[place + 2 * down], g)
                h = fma(v, t[place + 2 * down], h)
                p = fma(u, t[place + 3 * down], p)
                q = fma(v, t[place + 3 * down], q)
            _add(sums, (to + r) * d + m, a, b)
            _add(sums, (to + r + 1) * d + m, e, f)
            _add(sums, (to + r + 2) * d + m, g, h)
            _add(sums, (to + r + 3) * d + m, p, q)


@inlined
def _add(sums: Any, at: int, a: Any, b: Any) -> None:
    store(sums, at, load(sums, at) + widened(a))
    store(sums, at + LANES, load(sums, at + LANES) + widened(b))


@inlined
def row_sum(t: Any, at: int) -> float:
    """The sum of a row of a strip."""
    sums = load(t, at)
    for k in range(LANES, TILE, LANES):
        sums = sums + load(t, at + k)
    return total(sums)
