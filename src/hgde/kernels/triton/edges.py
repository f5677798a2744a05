# Triton reads annotations as types of its own, so kernels have none.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,import-not-found,import-untyped"
"""Triton kernels over the edges of a graph: one program for each node, its edges in chunks, no atomics.

The formulas are those of :mod:`hgde.kernels.cpu.pairs` with a fixed weight ``a_ij`` in place of ``g_ij``: for an edge
``psi = artanh(sqrt w) / (sqrt w D)`` is shared by both directions. Differences of points are in the points' dtype,
everything that is one number per edge or per node is a double, as is every sum, taken in an order of its own.
"""

from __future__ import annotations

import triton
import triton.language as tl

#: Edges worked on together.
CHUNK = 32
_SERIES_BELOW = tl.constexpr(1e-2)


@triton.jit
def artanh_ratio(w, inverse_rest):
    """``artanh(sqrt w) / sqrt w``; ``inverse_rest = 1 / (1 - w)``."""
    root = tl.sqrt(tl.maximum(w, _SERIES_BELOW))
    far = 0.5 * tl.log((1.0 + root) * (1.0 + root) * inverse_rest) / root
    near = 1.0 + w * (1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * (1 / 11 + w * (1 / 13 + w / 15))))))
    return tl.where(w < _SERIES_BELOW, near, far)


@triton.jit
def slope_ratio(w, phi):
    """``(1 - (1 + w) phi) / (2 w)``, by its series where it cancels."""
    far = (1.0 - (1.0 + w) * phi) / (2.0 * tl.maximum(w, _SERIES_BELOW))
    near = 8 / 63 + w * (10 / 99 + w * (12 / 143 + w * (14 / 195 + w * (16 / 255))))
    near = -(2 / 3 + w * (4 / 15 + w * (6 / 35 + w * near)))
    return tl.where(w < _SERIES_BELOW, near, far)


@triton.jit
def tangent_sum_kernel(
    z, b, weight, indptr, indices, numbers, out, d, CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """``out_i = sum_j a_ij log_{z_i}(z_j)`` in doubles; ``numbers`` holds ``c``."""
    i = tl.program_id(0).to(tl.int64)
    c = tl.load(numbers)
    k = tl.arange(0, WIDTH)
    x = tl.load(z + i * d + k, mask=k < d, other=0.0)
    b_i = tl.load(b + i)
    pull = tl.zeros([WIDTH], dtype=tl.float64)
    push = tl.zeros([CHUNK], dtype=tl.float64)
    last = tl.load(indptr + i + 1)
    for start in range(tl.load(indptr + i), last, CHUNK):
        e = start + tl.arange(0, CHUNK)
        there = e < last
        j = tl.load(indices + e, mask=there, other=0).to(tl.int64)
        y = tl.load(z + j[:, None] * d + k[None, :], mask=there[:, None] & (k < d)[None, :], other=0.0)
        difference = (y - x[None, :]).to(tl.float64)
        delta = c * tl.sum(difference * difference, 1)
        product = b_i * tl.load(b + j, mask=there, other=1.0)
        low = product + delta
        s = tl.load(weight + e, mask=there, other=0.0).to(tl.float64) * b_i / low
        s = s * artanh_ratio(delta / low, low / product)
        pull += tl.sum(s[:, None] * difference, 0)
        push += s * delta
    v = b_i * pull - tl.sum(push, 0) * x.to(tl.float64)
    tl.store(out + i * d + k, v, mask=k < d)


@triton.jit
def tangent_sum_backward_kernel(
    z, g, b, inside, a, weight, start_of, neighbours, arriving,
    leaving, numbers, gz, gc, d, CHUNK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Gradients of node ``i`` from the gradient ``g`` of the sums, gathered from all its neighbours, each visited once
    for both directions of the edge; ``a_i = <g_i, z_i>``."""
    i = tl.program_id(0).to(tl.int64)
    c = tl.load(numbers)
    k = tl.arange(0, WIDTH)
    x = tl.load(z + i * d + k, mask=k < d, other=0.0)
    g_i = tl.load(g + i * d + k, mask=k < d, other=0.0)
    b_i, a_i = tl.load(b + i), tl.load(a + i)
    total = tl.zeros([WIDTH], dtype=tl.float64)
    along = tl.zeros([CHUNK], dtype=tl.float64)
    bent = tl.zeros([CHUNK], dtype=tl.float64)
    spread = tl.zeros([CHUNK], dtype=tl.float64)
    last = tl.load(start_of + i + 1)
    for start in range(tl.load(start_of + i), last, CHUNK):
        e = start + tl.arange(0, CHUNK)
        there = e < last
        j = tl.load(neighbours + e, mask=there, other=0).to(tl.int64)
        shape = there[:, None] & (k < d)[None, :]
        y = tl.load(z + j[:, None] * d + k[None, :], mask=shape, other=0.0)
        g_j = tl.load(g + j[:, None] * d + k[None, :], mask=shape, other=0.0)
        difference = (y - x[None, :]).to(tl.float64)
        delta = c * tl.sum(difference * difference, 1)
        toward, back = tl.sum(g_i[None, :] * difference, 1), -tl.sum(g_j * difference, 1)
        b_j, a_j = tl.load(b + j, mask=there, other=1.0), tl.load(a + j, mask=there, other=0.0)
        to, fro = tl.load(arriving + e, mask=there, other=-1), tl.load(leaving + e, mask=there, other=-1)
        own = tl.load(weight + to, mask=to >= 0, other=0.0).to(tl.float64)
        other = tl.load(weight + fro, mask=fro >= 0, other=0.0).to(tl.float64)
        product = b_i * b_j
        low = product + delta
        w = delta / low
        phi = artanh_ratio(w, low / product)
        psi = phi / low
        pull_i, pull_j = b_i * (b_i * toward - delta * a_i), b_j * (b_j * back - delta * a_j)
        rate = own * pull_i + other * pull_j
        s_i, s_j = own * b_i * psi, other * b_j * psi
        change = rate * slope_ratio(w, phi) / (low * low) - s_i * a_i - s_j * a_j
        bent += s_i * (toward + toward - delta * a_i / b_i) - 0.5 * rate * (low / product + phi) / (low * low) * b_j
        along += s_i * (b_i + delta)
        spread += change * delta
        total += tl.sum((s_j * b_j)[:, None] * g_j - (2.0 * c * change)[:, None] * difference, 0)
    bend = tl.sum(bent, 0) * tl.load(inside + i)
    wide = x.to(tl.float64)
    total += -tl.sum(along, 0) * g_i - 2.0 * c * bend * wide
    tl.store(gz + i * d + k, total, mask=k < d)
    # A pair is met from both of its ends.
    tl.store(gc + i, 0.5 * tl.sum(spread, 0) / c - tl.sum(wide * wide, 0) * bend)
