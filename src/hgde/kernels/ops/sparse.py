"""Sparse features times a matrix, and dropout of their values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import Layout, even_blocks, layout_of
from hgde.kernels.cpu.threads import run
from hgde.kernels.ops.register import LANES, like, operation, padded, unpadded


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:4])
    ctx.plain = inputs[4:]


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    columns, transposed = ctx.plain
    # The gradient of a product is another product, and has every derivative.
    return sparse_product(grad, *ctx.saved_tensors, columns, not transposed), *(None,) * 5


def _fake(dense: Tensor, values: Any, indptr: Tensor, indices: Any, columns: int, transposed: bool) -> Tensor:
    return dense.new_empty((columns if transposed else indptr.shape[0] - 1, dense.shape[1]))


@operation(
    "sparse_product(Tensor dense, Tensor values, Tensor indptr, Tensor indices, int columns, bool transposed) "
    "-> Tensor",
    fake=_fake,
    backward=_backward,
    save=_save,
)
def sparse_product(
    dense: Tensor, values: Tensor, indptr: Tensor, indices: Tensor, columns: int, transposed: bool
) -> Tensor:
    """The CSR matrix ``values, indptr, indices`` with so many columns, or its transpose, times ``dense``.

    Differentiable in ``dense``. Cost ``nnz d``; the transpose is worked out once per pattern.
    """
    layout = layout_of(indptr, indices)
    given, kept = padded(dense), values.contiguous()
    strip = _strip(kept.numel(), columns, given) if transposed else 0
    if strip > 0:
        return unpadded(_scattered(layout, kept, columns, strip, given), dense.shape[1])
    if transposed:
        by = layout.transposed(columns)
        pattern: tuple[Any, ...] = (by.blocks, by.start, by.rows, 1, by.order)
    else:
        pattern = (layout.blocks, layout.indptr, layout.indices, 0, 0)
    out = pages.empty((pattern[1].numel() - 1, given.shape[1]), given.dtype)
    args = (*pattern, kept, given.shape[1], given, out)
    run("sparse.product", dense.dtype, pattern[0].numel() - 1, kept.numel() * given.shape[1], 0, args)
    return unpadded(out, dense.shape[1])


CACHED = 2**19
"""Bytes of results that stay in a core's own cache."""
NARROWEST, WIDEST = 16, 128
CROWDED = 16
"""Entries per column from which on fetching a row for each costs more than adding to one in place."""


def _strip(entries: int, columns: int, dense: Tensor) -> int:
    """How wide the strips are in which results are added up row by row; 0 where the transpose is the better way.

    That is where columns hold few entries, a strip of all results is too large for the cache, or there are fewer strips
    than threads.
    """
    if entries < CROWDED * columns:
        return 0
    most = min(WIDEST, CACHED // (columns * dense.element_size()), dense.shape[1] // torch.get_num_threads())
    return most // LANES * LANES if most >= NARROWEST else 0


def _scattered(layout: Layout, values: Tensor, columns: int, strip: int, dense: Tensor) -> Tensor:
    rows, width = dense.shape
    out = pages.empty((columns, width), dense.dtype)
    args = (rows, columns, layout.indptr, layout.indices, values, width, strip, dense, out)
    run("sparse.scattered", dense.dtype, -(-width // strip), values.numel() * width, 0, args)
    return out


@operation(
    "drop(Tensor values, Tensor keys, float p) -> Tensor",
    fake=lambda values, keys, p: like(values),
)
def drop(values: Tensor, keys: Tensor, p: float) -> Tensor:
    """Dropout by a hash of each value's place under two keys (``[2]``, below ``2^32``).

    Several times faster than drawing a number for each. Exact in ``p`` to ``2^-32``; the same bits for any number of
    threads.
    """
    given, out = values.contiguous(), pages.empty_like(values)
    if p >= 1:
        return out.zero_()
    blocks = even_blocks(given.numel())
    one, two = keys.tolist()
    args = (blocks, one, two, min(round(p * 2**32), 2**32 - 1), 1 / (1 - p), given, out)
    run("sparse.drop", values.dtype, blocks.numel() - 1, given.numel(), 0, args)
    return out


def draw_keys(generator: torch.Generator | None) -> Tensor:
    """Two keys for :func:`drop`."""
    return torch.randint(0, 2**32, (2,), generator=generator)
