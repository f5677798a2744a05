"""Between the ends of edges, head by head: sums over neighbours, inner products along edges, softmax over a row's.

Rows of nodes are ``[N, H, d]`` with ``d`` a multiple of eight, numbers of edges ``[E, H]``; entry ``e`` of row ``i`` is
the edge from node ``indices[e]`` to ``i``.
"""

from __future__ import annotations

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, kernel
from hgde.kernels.cpu.attention import exponentials, leaky
from hgde.kernels.cpu.lanes import LANES, fma, larger, load, store, total, zeros
from hgde.kernels.cpu.sizes import STRIP


@kernel
def sums(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, ordered: Int, order: Ints, heads: Int,
    d: Int, weights: Reals, x: Reals, out: Reals,
) -> None:  # fmt: skip
    """``out_ih = sum_e weights_eh x_jh``; with ``order``, which says where an entry's weights are, by columns."""
    for i in range(blocks[begin], blocks[end]):
        first, last = indptr[i], indptr[i + 1]
        for h in range(heads):
            # Columns outside, entries inside: the sums stay in registers.
            for k in range(h * d, h * d + d, LANES):
                sums = zeros(x)
                if ordered != 0:
                    for p in range(first, last):
                        sums = fma(weights[order[p] * heads + h], load(x, indices[p] * heads * d + k), sums)
                else:
                    for p in range(first, last):
                        sums = fma(weights[p * heads + h], load(x, indices[p] * heads * d + k), sums)
                store(out, i * heads * d + k, sums)


@kernel
def dots(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, heads: Int, d: Int, a: Reals, b: Reals,
    out: Reals,
) -> None:  # fmt: skip
    """``out_eh = <a_ih, b_jh>``."""
    for i in range(blocks[begin], blocks[end]):
        for e in range(indptr[i], indptr[i + 1]):
            own, other = i * heads * d, indices[e] * heads * d
            for h in range(heads):
                sums = zeros(a)
                for k in range(h * d, h * d + d, LANES):
                    sums = fma(load(a, own + k), load(b, other + k), sums)
                out[e * heads + h] = total(sums)


@kernel
def softmax(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, heads: Int, scores: Reals, out: Reals
) -> None:
    """``out_eh = exp(scores_eh) / sum_row exp(scores_h)``."""
    for part in range(begin, end):
        for first in range(blocks[part], blocks[part + 1], STRIP):
            after = min(first + STRIP, blocks[part + 1])
            e0 = indptr[first]
            for i in range(first, after):
                for h in range(heads):
                    largest = -1e300
                    for e in range(indptr[i], indptr[i + 1]):
                        largest = larger(scores[e * heads + h], largest)
                    for e in range(indptr[i], indptr[i + 1]):
                        s[(e - e0) * heads + h] = largest - scores[e * heads + h]
            exponentials(s, (indptr[after] - e0) * heads)
            for i in range(first, after):
                for h in range(heads):
                    mass = 0.0
                    for e in range(indptr[i], indptr[i + 1]):
                        mass += s[(e - e0) * heads + h]
                    inverse = 1 / larger(mass, 1.0)  # the largest score alone counts 1
                    for e in range(indptr[i], indptr[i + 1]):
                        out[e * heads + h] = s[(e - e0) * heads + h] * inverse


@kernel
def softmax_backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, heads: Int, weights: Reals, grad: Reals, out: Reals
) -> None:
    """``out_eh = weights_eh (grad_eh - sum_row weights_h grad_h)``."""
    for i in range(blocks[begin], blocks[end]):
        for h in range(heads):
            mean = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                mean += weights[e * heads + h] * grad[e * heads + h]
            for e in range(indptr[i], indptr[i + 1]):
                out[e * heads + h] = weights[e * heads + h] * (grad[e * heads + h] - mean)


@kernel
def additions(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, indices: Ints, heads: Int, target: Reals,
    source: Reals, slope: Double, out: Reals,
) -> None:  # fmt: skip
    """``out_eh = LeakyReLU(target_ih + source_jh)``."""
    for i in range(blocks[begin], blocks[end]):
        for e in range(indptr[i], indptr[i + 1]):
            for h in range(heads):
                out[e * heads + h] = leaky(target[i * heads + h] + source[indices[e] * heads + h], slope)


@kernel
def additions_backward(
    begin: Int, end: Int, s: Doubles, blocks: Ints, indptr: Ints, heads: Int, slope: Double, out: Reals, grad: Reals,
    each: Reals, gtarget: Reals,
) -> None:  # fmt: skip
    """Gradient of the targets, and of what was added on every edge, ``each``; LeakyReLU keeps the sign of what it is
    given."""
    for i in range(blocks[begin], blocks[end]):
        for h in range(heads):
            gathered = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                pull = grad[e * heads + h] * (1.0 if out[e * heads + h] > 0 else slope)
                each[e * heads + h] = pull
                gathered += pull
            gtarget[i * heads + h] = gathered
