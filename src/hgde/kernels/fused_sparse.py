"""Compiled sparse product of features and a matrix; the gradient gathers over the transpose."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.weak import WeakIdKeyDictionary

from hgde.graph import SparseFeatures
from hgde.kernels.compiled import compiled, inlined
from hgde.kernels.lanes import LANES, load, store, zeros
from hgde.kernels.layout import Array, even_blocks, row_blocks
from hgde.kernels.pool import run_blocks


@compiled
def _product_blocks(
    first: int, last: int, blocks: Any, indptr: Any, indices: Any, order: Any, values: Any, dense: Any, out: Any
) -> None:
    """``out_i = sum_p values[order[p]] dense[indices[p]]``; without ``order`` the values follow the rows.

    Zeros left behind by dropout are multiplied all the same: a branch on them is wrong half the time and costs more.
    """
    d = dense.shape[1]
    whole = d // LANES * LANES
    for i in range(blocks[first], blocks[last]):
        # Columns outside, entries inside: the sums stay in registers.
        for k in range(0, whole, LANES):
            sums = zeros(dense)
            for p in range(indptr[i], indptr[i + 1]):
                a = values[p] if order is None else values[order[p]]
                sums += a * load(dense, indices[p], k)
            store(out, i, k, sums)
        for k in range(whole, d):
            rest = dense.dtype.type(0)
            for p in range(indptr[i], indptr[i + 1]):
                a = values[p] if order is None else values[order[p]]
                rest += a * dense[indices[p], k]
            out[i, k] = rest


@inlined
def _mixed(n: Any) -> Any:
    """A bijection of 32-bit numbers under which neighbours share no more bits than chance (MurmurHash3's last step)."""
    # numba widens products and sums of 32-bit numbers to 64 bits.
    n = np.uint32((n ^ (n >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    n = np.uint32((n ^ (n >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(n ^ (n >> np.uint32(16)))


@compiled
def _drop_blocks(
    first: int, last: int, blocks: Any, keys: Any, least: Any, scale: float, values: Any, out: Any
) -> None:
    """``out_i = scale values_i`` where the hash of ``i`` under two keys is ``least`` or more, else 0."""
    one, two, factor = keys[0], keys[1], values.dtype.type(scale)
    zero = values.dtype.type(0)
    for i in range(blocks[first], blocks[last]):
        drawn = _mixed(np.uint32(_mixed(np.uint32(i) ^ one) + two))
        out[i] = values[i] * factor if drawn >= least else zero


class _Pattern:
    """Narrow indices of a feature matrix and of its transpose, with the blocks their rows are worked in."""

    def __init__(self, features: SparseFeatures) -> None:
        self.indptr, self.indices = _narrow(features.indptr), _narrow(features.indices)
        self.blocks = row_blocks(self.indptr)
        columns, rows, order = features.by_column
        self.t_indptr, self.t_rows, self.t_order = _narrow(columns), _narrow(rows), _narrow(order)
        self.t_blocks = row_blocks(self.t_indptr)


def _narrow(tensor: Tensor) -> Array:
    return tensor.numpy().astype(np.int32 if tensor.numel() < 2**31 - 1 else np.int64)


_patterns: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _pattern(features: SparseFeatures) -> _Pattern:
    # Features with other values share the tensor of the pattern, so they share what is known about it.
    found = _patterns.get(features.indices)
    if found is None:
        found = _patterns[features.indices] = _Pattern(features)
    return found


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, values: Tensor, pattern: _Pattern) -> Tensor:
        dense, stored = weight.detach().contiguous().numpy(), values.detach().contiguous().numpy()
        out = np.empty((len(pattern.indptr) - 1, dense.shape[1]), dense.dtype)
        args = (pattern.blocks, pattern.indptr, pattern.indices, None, stored, dense, out)
        run_blocks(_product_blocks, len(pattern.blocks) - 1, stored.size * dense.shape[1], args)
        ctx.pattern, ctx.stored = pattern, stored
        return torch.from_numpy(out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        g, pattern = grad.detach().contiguous().numpy(), ctx.pattern
        out = np.empty((len(pattern.t_indptr) - 1, g.shape[1]), g.dtype)
        args = (pattern.t_blocks, pattern.t_indptr, pattern.t_rows, pattern.t_order, ctx.stored, g, out)
        run_blocks(_product_blocks, len(pattern.t_blocks) - 1, ctx.stored.size * g.shape[1], args)
        return torch.from_numpy(out), None, None


def matmul(features: SparseFeatures, values: Tensor, weight: Tensor) -> Tensor:
    """``features`` with ``values`` in place of its own, times ``weight [F, d]``."""
    return _Product.apply(weight, values, _pattern(features))


def drop(values: Tensor, p: float, generator: torch.Generator | None) -> Tensor:
    """Dropout by a hash of each value's place under two keys, several times faster than drawing a number for each.

    The keys come from the generator. Exact in ``p`` to ``2^-32``; the same bits for any number of threads.
    """
    if p >= 1:
        return torch.zeros_like(values)
    keys = torch.randint(0, 2**32, (2,), generator=generator).numpy().astype(np.uint32)
    stored = values.detach().contiguous().numpy()
    out, blocks = np.empty_like(stored), even_blocks(len(stored))
    args = (blocks, keys, np.uint32(min(round(p * 2**32), 2**32 - 1)), 1 / (1 - p), stored, out)
    run_blocks(_drop_blocks, len(blocks) - 1, stored.size, args)
    return torch.from_numpy(out)
