"""Graph-attention weights: the softmax of a row is worked out again where it is needed and never stored per head.

``a_e = mean_h m_e exp(l_eh) / sum_row m exp(l_h)`` with ``l_eh = LeakyReLU(target_ih + source_jh)`` and a multiplier
``m_e`` per edge (1 unless ``weighted``). Edges of multiplier 0 take no part; a row without any other has weights 0.
"""

from __future__ import annotations

from hgde.kernels.cpu.compile import Double, Doubles, Int, Ints, Reals, inlined, kernel
from hgde.kernels.cpu.lanes import larger
from hgde.kernels.cpu.scalars import exp_negative


@inlined
def leaky(score: float, slope: float) -> float:
    return score if score > 0 else score * slope


@inlined
def share(score: float, slope: float, top: float, mass: float) -> float:
    """``exp(LeakyReLU(score)) / mass`` relative to the row's largest, ``top``; 0 above it (an edge of multiplier 0)."""
    below = top - leaky(score, slope)
    return exp_negative(larger(below, 0.0)) / mass


@kernel
def softmax(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, heads: Int, target: Reals,
    source: Reals, slope: Double, weighted: Int, edge: Reals, top: Doubles, mass: Doubles, out: Reals,
) -> None:  # fmt: skip
    """``out_e = a_e``; ``top, mass [N, H]`` keep each row's largest score and normaliser."""
    for i in range(blocks[begin], blocks[end]):
        first, last = indptr[i], indptr[i + 1]
        for h in range(heads):
            largest = -1e300
            for e in range(first, last):
                if weighted == 0 or edge[e] > 0:
                    largest = larger(leaky(target[i * heads + h] + source[indices[e] * heads + h], slope), largest)
            total = 0.0
            for e in range(first, last):
                score = target[i * heads + h] + source[indices[e] * heads + h]
                total += share(score, slope, largest, 1.0) * (1.0 if weighted == 0 else edge[e])
            total = total if total > 0 else 1.0
            top[i * heads + h], mass[i * heads + h] = largest, total
        for e in range(first, last):
            value = 0.0
            for h in range(heads):
                score = target[i * heads + h] + source[indices[e] * heads + h]
                value += share(score, slope, top[i * heads + h], mass[i * heads + h])
            out[e] = value * (1.0 if weighted == 0 else edge[e]) / heads


@kernel
def softmax_target(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, heads: Int, target: Reals,
    source: Reals, slope: Double, weighted: Int, edge: Reals, top: Doubles, mass: Doubles, grad: Reals, mean: Doubles,
    gtarget: Reals, wanted: Int, gedge: Reals,
) -> None:  # fmt: skip
    """Gradients of the receiving scores and, if ``wanted``, of the multipliers; ``mean [N, H]`` is each row's mean of
    ``grad`` under its softmax."""
    for i in range(blocks[begin], blocks[end]):
        first, last = indptr[i], indptr[i + 1]
        for h in range(heads):
            at, average, g = i * heads + h, 0.0, 0.0
            for e in range(first, last):
                score = target[at] + source[indices[e] * heads + h]
                p = share(score, slope, top[at], mass[at]) * (1.0 if weighted == 0 else edge[e])
                average += p * grad[e]
            mean[at] = average
            for e in range(first, last):
                score = target[at] + source[indices[e] * heads + h]
                p = share(score, slope, top[at], mass[at])
                if wanted != 0:
                    gedge[e] += p * (grad[e] - average) / heads
                g += p * (1.0 if weighted == 0 else edge[e]) * (grad[e] - average) * (1.0 if score > 0 else slope)
            gtarget[at] = g / heads


@kernel
def softmax_source(
    begin: Int, end: Int, s: Doubles, blocks: Ints, start: Ints, receivers: Ints, order: Ints, heads: Int,
    target: Reals, source: Reals, slope: Double, weighted: Int, edge: Reals, top: Doubles, mass: Doubles, grad: Reals,
    mean: Doubles, gsource: Reals,
) -> None:  # fmt: skip
    """Gradient of the sending scores, gathered over the edges that leave a node."""
    for j in range(blocks[begin], blocks[end]):
        for h in range(heads):
            g = 0.0
            for place in range(start[j], start[j + 1]):
                e, at = order[place], receivers[place] * heads + h
                score = target[at] + source[j * heads + h]
                p = share(score, slope, top[at], mass[at]) * (1.0 if weighted == 0 else edge[e])
                g += p * (grad[e] - mean[at]) * (1.0 if score > 0 else slope)
            gsource[j * heads + h] = g / heads
