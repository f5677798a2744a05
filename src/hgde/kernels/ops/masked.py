"""Sums over all places under a mask, see :mod:`hgde.kernels.cpu.masked`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from hgde.kernels.cpu.layout import even_blocks
from hgde.kernels.cpu.masked import TOGETHER
from hgde.kernels.cpu.threads import lent, run
from hgde.kernels.ops.register import LANES, operation, unpadded


def _wide(rows: Tensor) -> Tensor:
    return functional.pad(rows, (0, -rows.shape[-1] % (2 * LANES))).contiguous()


def _arguments(
    blocks: Tensor, mask: Tensor, cuts: Tensor, order: Tensor, given: Tensor, out: Tensor
) -> tuple[Any, ...]:
    rows, nodes = mask.shape
    by_place, lines = lent("places", rows * nodes, mask.dtype), even_blocks(rows)
    args = (lines, nodes, mask.contiguous(), order.int(), by_place)
    run("masked.permuted", mask.dtype, lines.numel() - 1, mask.numel(), 0, args)
    return blocks, rows, nodes, given.shape[2], by_place, cuts.int(), cuts.argsort().int(), given, out


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, None, masked_sums_backward(grad, *ctx.saved_tensors)


@operation(
    "masked_sums(Tensor mask, Tensor cuts, Tensor order, Tensor table) -> Tensor",
    fake=lambda mask, cuts, order, table: table.new_empty(mask.shape[0], 2, table.shape[2]),
    backward=_backward,
    save=_save,
)
def masked_sums(mask: Tensor, cuts: Tensor, order: Tensor, table: Tensor) -> Tensor:
    """``sum_{j < cut_i} m_i,order(j) table_j0`` and ``sum_{j >= cut_i} m_i,order(j) table_j1``: ``[n, 2, d]``.

    ``mask [n, N]``, ``cuts [n]``, ``order [N]``, ``table [N, 2, d]``; differentiable in the table. Cost ``n N d``.
    """
    given = _wide(table)
    out = torch.zeros(len(mask), *given.shape[1:], dtype=given.dtype)
    blocks = even_blocks(-(-len(mask) // TOGETHER))
    args = _arguments(blocks, mask, cuts, order, given, out)
    run("masked.sums", table.dtype, blocks.numel() - 1, mask.numel() * given.shape[2], 0, args)
    return unpadded(out, table.shape[2])


@operation(
    "masked_sums_backward(Tensor grad, Tensor mask, Tensor cuts, Tensor order) -> Tensor",
    fake=lambda grad, mask, cuts, order: grad.new_empty(mask.shape[1], 2, grad.shape[2]),
)
def masked_sums_backward(grad: Tensor, mask: Tensor, cuts: Tensor, order: Tensor) -> Tensor:
    given = _wide(grad)
    out = torch.zeros(mask.shape[1], *given.shape[1:], dtype=given.dtype)
    blocks = even_blocks(mask.shape[1])
    args = _arguments(blocks, mask, cuts, order, given, out)
    run("masked.gradients", grad.dtype, blocks.numel() - 1, mask.numel() * given.shape[2], 0, args)
    return unpadded(out, grad.shape[2])
