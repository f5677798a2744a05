"""A model's last layer in one call each way: ``log_o(exp_o(log_o(z) W) ⊕ b)``, points to scores.

A strip of rows goes through all of it while it is in cache. Kept for the backward pass: the products ``log_o(z) W``.
"""

from __future__ import annotations

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, kernel
from hgde.compiler.memory import offset
from hgde.kernels.cpu.lanes import LANES, fma, load, spread, store, total, wide
from hgde.kernels.cpu.origin import A, B, backward_strip, coefficients, own_square, translation
from hgde.kernels.cpu.sizes import LOG, STRIP, TRANSLATE

SCALARS = 10 * STRIP
"""Where the matrices of a strip begin: after the scalars of the maps."""


@kernel
def forward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, outputs: Int, z: Reals, weight: Reals, point: Reals,
    c: Double, margin: Double, product: Reals, out: Reals,
) -> None:  # fmt: skip
    own = c * own_square(point, outputs)
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            coefficients(z, first, n, d, z, LOG, c, margin, s)
            for r in range(n):
                for k in range(0, outputs, LANES):
                    sums = spread(0.0)
                    for m in range(d):
                        sums = fma(s[A + r] * z[(first + r) * d + m], wide(weight, m * outputs + k), sums)
                    store(product, (first + r) * outputs + k, sums)
            coefficients(product, first, n, outputs, point, TRANSLATE, c, margin, s)
            translation(n, own, c, margin, s, 0)
            for r in range(n):
                for k in range(0, outputs, LANES):
                    at = (first + r) * outputs + k
                    store(out, at, fma(s[A + r], wide(product, at), s[B + r] * wide(point, k)))


@kernel
def backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, d: Int, outputs: Int, z: Reals, weight: Reals, point: Reals,
    c: Double, margin: Double, product: Reals, grad: Reals, gz: Reals, lines: Doubles,
) -> None:  # fmt: skip
    """``gz``; of each block, a line of ``lines`` has the gradients of the matrix, of the point and of ``c``."""
    own, gproduct, gtangent = c * own_square(point, outputs), SCALARS, SCALARS + STRIP * outputs
    length = d * outputs + outputs + 1
    for part in range(begin, end):
        gweight = offset(lines, part * length)
        gpoint, gc = offset(gweight, d * outputs), offset(gweight, d * outputs + outputs)
        for first in range(blocks[part], blocks[part + 1], STRIP):
            n = min(STRIP, blocks[part + 1] - first)
            backward_strip(
                product, first, n, outputs, point, own, TRANSLATE, c, margin, s, offset(grad, first * outputs),
                offset(s, gproduct), gc, 0, gpoint, 0,
            )  # fmt: skip
            for r in range(n):
                for m in range(d):
                    along = spread(0.0)
                    for k in range(0, outputs, LANES):
                        g = load(s, gproduct + r * outputs + k)
                        along = fma(g, wide(weight, m * outputs + k), along)
                    s[gtangent + r * d + m] = total(along)
            backward_strip(
                z, first, n, d, z, 0.0, LOG, c, margin, s, offset(s, gtangent), offset(gz, first * d), gc, 0, gpoint, 0
            )
            for r in range(n):
                for m in range(d):
                    tangent = s[A + r] * z[(first + r) * d + m]
                    for k in range(0, outputs, LANES):
                        at = m * outputs + k
                        store(gweight, at, fma(tangent, load(s, gproduct + r * outputs + k), load(gweight, at)))
