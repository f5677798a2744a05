"""A model's last layer in one call each way: ``log_o(exp_o(log_o(z) W) ⊕ b)``, points to scores.

A strip of rows goes through all of it while it is in cache. Kept for the backward pass: the products ``log_o(z) W``.
Scores are seldom as many as lanes, and padding a small matrix outside would take longer than the pass: ``weight
[inputs, columns]``, ``bias [columns]`` and scores have their own widths, and are widened to ``d`` and ``k`` here.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, block, kernel
from hgde.compiler.memory import offset
from hgde.kernels.cpu.lanes import LANES, fma, load, spread, store, total
from hgde.kernels.cpu.origin import A, B, backward_strip, coefficients, own_square, translation
from hgde.kernels.cpu.sizes import DECODER_SCALARS, LOG, STRIP, TRANSLATE


@block
def widen(inputs: int, columns: int, d: int, k: int, weight: Any, bias: Any, c: float, root_c: float, s: Any) -> float:
    """The matrix and, after it, the point ``b / sqrt(c)``, both with zeros behind; gives ``c|b / sqrt(c)|^2``."""
    for m in range(d):
        for j in range(k):
            s[m * k + j] = weight[m * columns + j] if m < inputs and j < columns else 0.0
    for j in range(k):
        s[d * k + j] = bias[j] / root_c if j < columns else 0.0
    return c * own_square(offset(s, d * k), k)


@kernel
def forward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, inputs: Int, columns: Int, d: Int, k: Int, z: Reals, weight: Reals,
    bias: Reals, c: Double, root_c: Double, margin: Double, product: Reals, out: Reals,
) -> None:  # fmt: skip
    matrix = offset(s, DECODER_SCALARS)
    own, point = widen(inputs, columns, d, k, weight, bias, c, root_c, matrix), offset(matrix, d * k)
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            coefficients(z, first, n, d, z, LOG, c, margin, s)
            for r in range(n):
                for j in range(0, k, LANES):
                    sums = spread(0.0)
                    for m in range(d):
                        sums = fma(s[A + r] * z[(first + r) * d + m], load(matrix, m * k + j), sums)
                    store(product, (first + r) * k + j, sums)
            coefficients(product, first, n, k, point, TRANSLATE, c, margin, s)
            translation(n, own, c, margin, s, 0)
            for r in range(first, first + n):
                for j in range(columns):
                    out[r * columns + j] = fma(s[A + r - first], product[r * k + j], s[B + r - first] * point[j])


@kernel
def backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, inputs: Int, columns: Int, d: Int, k: Int, z: Reals, weight: Reals,
    bias: Reals, c: Double, root_c: Double, margin: Double, product: Reals, grad: Reals, gz: Reals, lines: Doubles,
) -> None:  # fmt: skip
    """``gz``; of each block, a line of ``lines`` has the gradients of the matrix, of the point and of ``c``."""
    matrix, length = offset(s, DECODER_SCALARS), d * k + k + 1
    own, point = widen(inputs, columns, d, k, weight, bias, c, root_c, matrix), offset(matrix, d * k)
    gscores = offset(point, k)
    gproduct, gtangent = offset(gscores, STRIP * k), offset(gscores, 2 * STRIP * k)
    for part in range(begin, end):
        gweight = offset(lines, part * length)
        gpoint, gc = offset(gweight, d * k), offset(gweight, d * k + k)
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            for r in range(n):
                for j in range(k):
                    gscores[r * k + j] = grad[(first + r) * columns + j] if j < columns else 0.0
            backward_strip(
                product, first, n, k, point, own, TRANSLATE, c, margin, s, gscores, gproduct, gc, 0, gpoint, 0
            )
            for r in range(n):
                for m in range(d):
                    along = spread(0.0)
                    for j in range(0, k, LANES):
                        along = fma(load(gproduct, r * k + j), load(matrix, m * k + j), along)
                    gtangent[r * d + m] = total(along)
            backward_strip(z, first, n, d, z, 0.0, LOG, c, margin, s, gtangent, offset(gz, first * d), gc, 0, gpoint, 0)
            for r in range(n):
                for m in range(d):
                    tangent = s[A + r] * z[(first + r) * d + m]
                    for j in range(0, k, LANES):
                        at = m * k + j
                        store(gweight, at, fma(tangent, load(gproduct, r * k + j), load(gweight, at)))
