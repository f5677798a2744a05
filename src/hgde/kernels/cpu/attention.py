"""Graph-attention weights: the softmax of a row is worked out again where it is needed and never stored per head.

``a_e = mean_h m_e exp(l_eh) / sum_row m exp(l_h)`` with ``l_eh = LeakyReLU(target_ih + source_jh)`` and a multiplier
``m_e`` per edge (1 unless ``weighted``). Edges of multiplier 0 take no part; a row without any other has weights 0.

Rows go by strips: the scores of a strip's edges lie side by side in the buffer, edge by edge and head by head, so that
their exponentials are one vectorised loop.
"""

from __future__ import annotations

from typing import Any

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, inlined, kernel
from hgde.kernels.cpu.lanes import larger
from hgde.kernels.cpu.scalars import exp_negative
from hgde.kernels.cpu.sizes import STRIP


@inlined
def leaky(score: float, slope: float) -> float:
    return score if score > 0 else score * slope


@inlined
def exponentials(s: Any, count: int) -> None:
    """``exp(-x)`` of the buffer's numbers; negative ones (multiplier 0, above their row's top) count as 0."""
    for k in range((count + 7) // 8 * 8):
        s[k] = exp_negative(larger(s[k], 0.0))


@kernel
def softmax(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, heads: Int, target: Reals,
    source: Reals, slope: Double, weighted: Int, edge: Reals, top: Doubles, mass: Doubles, out: Reals,
) -> None:  # fmt: skip
    """``out_e = a_e``; ``top, mass [N, H]`` keep each row's largest score and normaliser."""
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            after = min(first + STRIP, blocks[part + 1])
            e0 = indptr[first]
            for i in range(first, after):
                for h in range(heads):
                    own, largest = target[i * heads + h], -1e300
                    for e in range(indptr[i], indptr[i + 1]):
                        score = leaky(own + source[indices[e] * heads + h], slope)
                        s[(e - e0) * heads + h] = score
                        if weighted == 0 or edge[e] > 0:
                            largest = larger(score, largest)
                    top[i * heads + h] = largest
                    for e in range(indptr[i] - e0, indptr[i + 1] - e0):
                        s[e * heads + h] = largest - s[e * heads + h]
            exponentials(s, (indptr[after] - e0) * heads)
            for i in range(first, after):
                for h in range(heads):
                    total = 0.0
                    for e in range(indptr[i], indptr[i + 1]):
                        total += s[(e - e0) * heads + h] * (1.0 if weighted == 0 else edge[e])
                    mass[i * heads + h] = total if total > 0 else 1.0
                for e in range(indptr[i], indptr[i + 1]):
                    value = 0.0
                    for h in range(heads):
                        value += s[(e - e0) * heads + h] / mass[i * heads + h]
                    out[e] = value * (1.0 if weighted == 0 else edge[e]) / heads


@kernel
def softmax_target(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, heads: Int, target: Reals,
    source: Reals, slope: Double, weighted: Int, edge: Reals, top: Doubles, mass: Doubles, grad: Reals, gtarget: Reals,
    wanted: Int, gedge: Reals, each: Reals,
) -> None:  # fmt: skip
    """Gradients of the receiving scores and, if ``wanted``, of the multipliers; ``each [E, H]`` is that of every
    edge's score, which receiver and sender add up."""
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            after = min(first + STRIP, blocks[part + 1])
            e0, count = indptr[first], (indptr[after] - indptr[first]) * heads
            for i in range(first, after):
                for h in range(heads):
                    own, largest = target[i * heads + h], top[i * heads + h]
                    for e in range(indptr[i], indptr[i + 1]):
                        score, k = own + source[indices[e] * heads + h], (e - e0) * heads + h
                        s[k] = largest - leaky(score, slope)
                        each[e * heads + h] = 1.0 if score > 0 else slope
            exponentials(s, count)
            for i in range(first, after):
                for h in range(heads):
                    inverse, average, g = 1 / mass[i * heads + h], 0.0, 0.0
                    for e in range(indptr[i], indptr[i + 1]):
                        k = (e - e0) * heads + h
                        s[k] *= inverse
                        average += s[k] * (1.0 if weighted == 0 else edge[e]) * grad[e]
                    for e in range(indptr[i], indptr[i + 1]):
                        pull = s[(e - e0) * heads + h] * (grad[e] - average) / heads
                        if wanted != 0:
                            gedge[e] += pull
                        pull *= each[e * heads + h] * (1.0 if weighted == 0 else edge[e])
                        each[e * heads + h] = pull
                        g += pull
                    gtarget[i * heads + h] = g


@kernel
def softmax_source(
    begin: Int, end: Int, s: Doubles, blocks: Ints, start: Ints, order: Ints, heads: Int, each: Reals, gsource: Reals
) -> None:
    """Gradient of the sending scores, gathered over the edges that leave a node."""
    for j in range(blocks[begin], blocks[end]):
        for h in range(heads):
            g = 0.0
            for place in range(start[j], start[j + 1]):
                g += each[order[place] * heads + h]
            gsource[j * heads + h] = g
