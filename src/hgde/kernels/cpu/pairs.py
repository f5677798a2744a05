"""Sums over all pairs of nodes, forward and backward: each pair is visited once for both directions.

With ``delta = c|x - y|^2``, ``B = 1 - c|x|^2``, ``D = B_i B_j + delta`` and ``w = delta / D`` the log map is

    log_i(j) = B_i psi (B_i (z_j - z_i) - delta z_i),     psi = artanh(sqrt w) / (sqrt w D),

and ``psi``, which takes the square root and the logarithm, belongs to the pair, not to its direction. Weights do not:
``g_ij = mean_h sigmoid(q_ih . k_jh) / M_ih`` with ``M_ih = sum_j sigmoid(q_ih . k_jh)``, one exponential each.

**Forward.** For each head the sums ``M``, ``sum_j sigma psi z_j``, ``sum_j sigma psi``, ``sum_j sigma psi delta``; all
is divided by ``M`` at the end, so no pass for ``M`` comes first.

**Backward.** Let ``G_i`` be the gradient of ``v_i = sum_j g_ij log_i(j)`` and ``a_i = <G_i, z_i>``. What is to be
differentiated is ``sum_ij g_ij h_ij``, ``h_ij = <G_i, log_i(j)> = B_i psi T_ij``, ``T_ij = B_i <G_i, z_j - z_i> - delta
a_i``. With ``s_ij = g_ij B_i psi`` and ``R = g_ij B_i T_ij + g_ji B_j T_ji``, what a pair gives is

    score of i to j   sigma (1 - sigma) / (M H) (h_ij - sum_j' sigma h_ij' / M), the last sum being <G_i, v_ih>
    delta             E = R dpsi/ddelta - s_ij a_i - s_ji a_j
    B_i               s_ij (T_ij / B_i + <G_i, z_j - z_i>) + R dpsi/d(B_i B_j) B_j
    z_j, directly     s_ij B_i G_i
    z_i, directly     - s_ij (B_i + delta) G_i

    dpsi/ddelta = (1 - (1 + w) phi) / (2 w D^2),   dpsi/d(B_i B_j) = -(D / (B_i B_j) + phi) / (2 D^2),   phi = psi D.

``E`` reaches both points as ``2 c E (z_i - z_j)``. The first difference cancels for small ``w`` and has a series there.

Tiles are visited in an order that depends on the number of nodes alone, see :mod:`hgde.kernels.ops.pairs`. In a tile on
the diagonal every pair is met in both orders and only the rows' side is added up. Padding nodes have ``keep = 0``.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, block, inlined, kernel
from hgde.kernels.cpu.elementary import log_of, real, reals, sigmoid_of
from hgde.kernels.cpu.lanes import fma, larger, root
from hgde.kernels.cpu.sizes import STRIP_OF_TILE as STRIP
from hgde.kernels.cpu.sizes import TILE
from hgde.kernels.cpu.tiles import (
    AREA,
    add_to_columns,
    add_to_rows,
    differences,
    inner_products,
    row_sum,
    squared_distances,
)

# Places in the buffer: numbers of a tile's columns, sums over its rows, one row of products, then whole strips.
(
    B_J, INVERSE_J, KEEP_J, A_J, SHARE_J, MEAN_J, SUM_0, SUM_1, SUM_2, ROW_0, ROW_1, ROW_2,
) = tuple(TILE * n for n in range(12))  # fmt: skip
STRIPS = 12 * TILE
DELTA, PSI, FIRST, SECOND = tuple(STRIPS + AREA * n for n in range(4))
TOWARD, BACK, OWN, OTHER, HEADS = tuple(STRIPS + AREA * n for n in range(1, 6))


@inlined
def ratio_series(w: Any, t: Any) -> Any:
    """``artanh(sqrt w) / sqrt w`` for small ``w``, to ``w^7 / 15``."""
    p = fma(w, fma(w, fma(w, real(1 / 13, t), real(1 / 11, t)), real(1 / 9, t)), real(1 / 7, t))
    return fma(w, fma(w, fma(w, p, real(1 / 5, t)), real(1 / 3, t)), real(1.0, t))


@inlined
def slope_series(w: Any, t: Any) -> Any:
    """``(1 - (1 + w) phi(w)) / (2 w) = -sum_k 2 (k + 1) w^k / ((2k + 1)(2k + 3))`` for small ``w``."""
    p = fma(w, fma(w, fma(w, real(-14 / 195, t), real(-12 / 143, t)), real(-10 / 99, t)), real(-8 / 63, t))
    return fma(w, fma(w, fma(w, p, real(-6 / 35, t)), real(-4 / 15, t)), real(-2 / 3, t))


@inlined
def parts(delta: Any, b_i: Any, b_j: Any, inverse: Any, close: Any, t: Any) -> Any:
    """``psi``, ``D``, ``1 / D``, ``w`` and ``1 / (delta D)``; ``inverse = 1 / (B_i B_j)``.

    ``artanh sqrt w = log((delta + D + 2 sqrt(delta D)) / (B_i B_j)) / 2``: one square root, one division in all.
    """
    low = fma(b_i, b_j, delta)
    middle = root(larger(delta * low, real(1e-30, t)))
    far = real(0.5, t) * log_of((delta + low + real(2.0, t) * middle) * inverse)
    both = real(1.0, t) / (low * middle)
    over, across = both * middle, both * low
    w = delta * over
    psi = over * ratio_series(w, t) if w < close else far * across
    return psi, low, over, w, across * across


@block
def columns(t: Any, j: int, b: Any, keep: Any) -> None:
    for k in range(TILE):
        t[B_J + k] = b[j + k]
    for k in range(TILE):
        t[INVERSE_J + k] = 1.0 / b[j + k]
    for k in range(TILE):
        t[KEEP_J + k] = keep[j + k]


@block
def clear_sums(t: Any) -> None:
    for k in range(SUM_0, ROW_0):
        t[k] = real(0.0, t)


@block
def add_sums(sums: Any, to: int, t: Any, at: int) -> None:
    for k in range(TILE):
        sums[to + k] += t[at + k]


@block
def forward_geometry(t: Any, i: int, b: Any, c: float, close: float) -> None:
    c_, close_ = real(c, t), real(close, t)
    for r in range(STRIP):
        b_i, inverse = real(b[i + r], t), real(1.0 / b[i + r], t)
        for k in range(TILE):
            delta = c_ * t[DELTA + r * TILE + k]
            t[DELTA + r * TILE + k] = delta
            t[PSI + r * TILE + k] = parts(delta, b_i, t[B_J + k], inverse * t[INVERSE_J + k], close_, t)[0]


@block
def forward_weights(t: Any, i: int, j: int, nodes: int, at: int, keep: Any, mass: Any, sums: Any, both: int) -> None:
    """Scores at ``FIRST`` and ``SECOND`` become ``sigma psi`` of the two directions; all but the products is added."""
    for k in range(FIRST, FIRST + 2 * AREA):
        t[k] = sigmoid_of(t[k])
    clear_sums(t)
    for r in range(STRIP):
        own = real(keep[i + r], t)
        for k in range(TILE):
            psi, delta = t[PSI + r * TILE + k], t[DELTA + r * TILE + k]
            to, back = t[FIRST + r * TILE + k] * t[KEEP_J + k], t[SECOND + r * TILE + k] * own
            t[ROW_0 + k] = to
            t[SUM_0 + k] += back
            to, back = to * psi, back * psi
            t[FIRST + r * TILE + k], t[SECOND + r * TILE + k] = to, back
            t[ROW_1 + k] = to * delta
            t[SUM_1 + k] += back
            t[SUM_2 + k] += back * delta
        mass[at + i + r] += row_sum(t, ROW_0)
        sums[2 * at + i + r] += row_sum(t, FIRST + r * TILE)
        sums[2 * at + nodes + i + r] += row_sum(t, ROW_1)
    if both != 0:
        add_sums(mass, at + j, t, SUM_0)
        add_sums(sums, 2 * at + j, t, SUM_1)
        add_sums(sums, 2 * at + nodes + j, t, SUM_2)


@kernel
def forward(
    begin: Int, end: Int, s: Doubles, jobs: Ints, nodes: Int, d: Int, e: Int, heads: Int, z: Reals, zt: Reals,
    centred: Reals, q: Reals, qt: Reals, k: Reals, kt: Reals, b: Doubles, keep: Doubles, c: Double, close: Double,
    mutual: Int, mass: Doubles, sums: Doubles, pull: Doubles,
) -> None:  # fmt: skip
    """Of each head ``mass [H, N]``, ``sums [H, 2, N]``, ``pull [H, N, d]``; a job is two runs of tiles.

    Without ``mutual`` the second run is only summed over.
    """
    t = reals(s, 0, z)
    for job in range(begin, end):
        for row in range(jobs[4 * job], jobs[4 * job + 1]):
            for tile in range(max(row, jobs[4 * job + 2]), jobs[4 * job + 3]):
                j, both = tile * TILE, int(tile > row and mutual != 0)
                columns(t, j, b, keep)
                for i in range(row * TILE, (row + 1) * TILE, STRIP):
                    squared_distances(z, i, zt, tile, d, t, DELTA)
                    forward_geometry(t, i, b, c, close)
                    for h in range(heads):
                        at, shift = h * nodes, h * (nodes // TILE)
                        inner_products(q, at + i, kt, shift + tile, e, t, FIRST)
                        inner_products(k, at + i, qt, shift + tile, e, t, SECOND)
                        forward_weights(t, i, j, nodes, at, keep, mass, sums, both)
                        add_to_rows(pull, at + i, t, FIRST, centred, j, d)
                        if both != 0:
                            add_to_columns(pull, at + j, t, SECOND, centred, i, d)


@block
def weights(t: Any, i: int, j: int, at: int, place: int, share: Any, first: int) -> None:
    """Scores at ``place`` (to) and behind it (back) become ``sigma``; ``OWN, OTHER`` gather ``g``."""
    for k in range(place, place + 2 * AREA):
        t[k] = sigmoid_of(t[k])
    for k in range(TILE):
        t[SHARE_J + k] = share[at + j + k]
    for r in range(STRIP):
        own = real(share[at + i + r], t)
        for k in range(TILE):
            to, back = t[place + r * TILE + k] * own, t[place + AREA + r * TILE + k] * t[SHARE_J + k]
            t[OWN + r * TILE + k] = to if first != 0 else t[OWN + r * TILE + k] + to
            t[OTHER + r * TILE + k] = back if first != 0 else t[OTHER + r * TILE + k] + back


@block
def backward_geometry(
    t: Any, i: int, j: int, nodes: int, b: Any, keep: Any, a: Any, c: float, close: float, sums: Any, both: int
) -> None:
    """``OWN, OTHER`` become ``s_ij, s_ji``, ``DELTA`` becomes ``E``, ``TOWARD, BACK`` ``h_ij, h_ji``.

    ``sums [4, N]`` gather ``s (B + delta)``, ``E``, the gradient of ``B`` and, once for each pair, ``E |z_i - z_j|^2``.
    """
    c_, close_, half = real(c, t), real(close, t), real(0.5, t)
    for k in range(TILE):
        t[A_J + k] = a[j + k]
    clear_sums(t)
    once = 1.0 if both != 0 else 0.5
    for r in range(STRIP):
        b_i, inverse_i = real(b[i + r], t), real(1.0 / b[i + r], t)
        a_i, keep_i = real(a[i + r], t), real(keep[i + r], t)
        for k in range(TILE):
            at = r * TILE + k
            square, b_j, a_j = t[DELTA + at], t[B_J + k], t[A_J + k]
            delta, inverse = c_ * square, inverse_i * t[INVERSE_J + k]
            psi, low, over, w, product = parts(delta, b_i, b_j, inverse, close_, t)
            phi = psi * low
            near = slope_series(w, t) * over * over
            slope = near if w < close_ else half * (real(1.0, t) - (real(1.0, t) + w) * phi) * product
            other_slope = -half * (low * inverse + phi) * over * over
            g_i, g_j = t[OWN + at] * t[KEEP_J + k], t[OTHER + at] * keep_i
            toward, back = t[TOWARD + at], -t[BACK + at]
            pull_i, pull_j = b_i * (b_i * toward - delta * a_i), b_j * (b_j * back - delta * a_j)
            rate = g_i * pull_i + g_j * pull_j
            s_i, s_j = g_i * psi * b_i, g_j * psi * b_j
            change = rate * slope - (s_i * a_i + s_j * a_j)
            other = rate * other_slope
            t[OWN + at], t[OTHER + at], t[DELTA + at] = s_i, s_j, change
            t[TOWARD + at], t[BACK + at] = psi * pull_i, psi * pull_j
            t[ROW_0 + k] = s_i * (b_i + delta)
            t[ROW_1 + k] = s_i * (toward + toward - delta * a_i * inverse_i) + other * b_j
            t[ROW_2 + k] = change * square
            t[SUM_0 + k] += s_j * (b_j + delta)
            t[SUM_1 + k] += change
            t[SUM_2 + k] += s_j * (back + back - delta * a_j * t[INVERSE_J + k]) + other * b_i
        sums[i + r] += row_sum(t, ROW_0)
        sums[nodes + i + r] += row_sum(t, DELTA + r * TILE)
        sums[2 * nodes + i + r] += row_sum(t, ROW_1)
        sums[3 * nodes + i + r] += once * row_sum(t, ROW_2)
    if both != 0:
        add_sums(sums, j, t, SUM_0)
        add_sums(sums, nodes + j, t, SUM_1)
        add_sums(sums, 2 * nodes + j, t, SUM_2)


@block
def score_gradients(t: Any, i: int, j: int, at: int, place: int, share: Any, mean: Any, keep: Any) -> None:
    """``sigma`` of both directions becomes the gradient of its score."""
    for k in range(TILE):
        t[SHARE_J + k] = share[at + j + k]
    for k in range(TILE):
        t[MEAN_J + k] = mean[at + j + k]
    for r in range(STRIP):
        own, middle = real(share[at + i + r], t), real(mean[at + i + r], t)
        keep_i, one = real(keep[i + r], t), real(1.0, t)
        for k in range(TILE):
            cell = r * TILE + k
            to, back = t[place + cell], t[place + AREA + cell]
            t[place + cell] = to * (one - to) * own * t[KEEP_J + k] * (t[TOWARD + cell] - middle)
            t[place + AREA + cell] = back * (one - back) * t[SHARE_J + k] * keep_i * (t[BACK + cell] - t[MEAN_J + k])


@kernel
def backward(
    begin: Int, end: Int, s: Doubles, jobs: Ints, nodes: Int, d: Int, e: Int, heads: Int, z: Reals, zt: Reals,
    centred: Reals, g: Reals, gt: Reals, scaled: Reals, q: Reals, qt: Reals, k: Reals, kt: Reals, b: Doubles,
    keep: Doubles, a: Doubles, share: Doubles, mean: Doubles, c: Double, close: Double, mutual: Int, sums: Doubles,
    gz: Doubles, ge: Doubles, gq: Doubles, gk: Doubles,
) -> None:  # fmt: skip
    """``gz_i = sum_j s_ji B_j G_j``, ``ge_i = sum_j E_ij z_j``, ``gq, gk [H, N, e]``, ``sums [4, N]``.

    ``scaled`` is ``B G``, ``centred`` the points less a common one, ``share [H, N] = 1 / (M H)`` (0 for padding),
    ``mean [H, N] = <G, v_h>``. Without ``mutual`` the second run has ``share = 0`` and its pull is left out.
    """
    t = reals(s, 0, z)
    for job in range(begin, end):
        for row in range(jobs[4 * job], jobs[4 * job + 1]):
            for tile in range(max(row, jobs[4 * job + 2]), jobs[4 * job + 3]):
                j, both = tile * TILE, int(tile > row)
                columns(t, j, b, keep)
                for i in range(row * TILE, (row + 1) * TILE, STRIP):
                    differences(z, g, i, zt, gt, tile, d, t, DELTA, TOWARD, BACK)
                    for h in range(heads):
                        at, shift, place = h * nodes, h * (nodes // TILE), HEADS + 2 * h * AREA
                        inner_products(q, at + i, kt, shift + tile, e, t, place)
                        inner_products(k, at + i, qt, shift + tile, e, t, place + AREA)
                        weights(t, i, j, at, place, share, int(h == 0))
                    backward_geometry(t, i, j, nodes, b, keep, a, c, close, sums, both)
                    if mutual != 0:
                        add_to_rows(gz, i, t, OTHER, scaled, j, d)
                    add_to_rows(ge, i, t, DELTA, centred, j, d)
                    if both != 0:
                        add_to_columns(gz, j, t, OWN, scaled, i, d)
                        add_to_columns(ge, j, t, DELTA, centred, i, d)
                    for h in range(heads):
                        at, place = h * nodes, HEADS + 2 * h * AREA
                        score_gradients(t, i, j, at, place, share, mean, keep)
                        add_to_rows(gq, at + i, t, place, k, at + j, e)
                        if both != 0:
                            add_to_columns(gk, at + j, t, place, q, at + i, e)
                        if mutual != 0:
                            add_to_rows(gk, at + i, t, place + AREA, q, at + j, e)
                        if both != 0 and mutual != 0:
                            add_to_columns(gq, at + j, t, place + AREA, k, at + i, e)
