"""A model's first layer on sparse features as one operation; see :mod:`hgde.kernels.cpu.encoder`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.ahead import PARTS
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import layout_of
from hgde.kernels.cpu.sizes import encoder_scratch
from hgde.kernels.cpu.threads import run_together
from hgde.kernels.ops.register import counted, like, operation, ordered_total, padded, told, unpadded

KERNELS = PARTS["encoder"]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:9], output[1])
    ctx.plain = inputs[9:]


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = encode_backward(grad, *ctx.saved_tensors, *ctx.plain)
    given = (None, None, None, None, None, *found)
    return *(g if w else None for g, w in zip(given, ctx.needs_input_grad, strict=False)), None, None


def _shapes(
    values: Any, keys: Any, indptr: Tensor, indices: Any, rows: Tensor | None, weight: Tensor, *rest: Any
) -> tuple[Tensor, ...]:
    nodes, width = indptr.shape[0] - 1 if rows is None else rows.shape[0], weight.shape[1]
    kept = weight.new_empty((nodes, (width + 7) // 8 * 8))
    return weight.new_empty((nodes, width)), kept, weight.new_empty((), dtype=torch.int64)


def _dropping(keys: Tensor | None, p: float) -> tuple[Any, ...]:
    if keys is None:
        return 0, 0, 0, 0, 1.0
    one, two = keys.tolist()
    return 1, one, two, min(round(p * 2**32), 2**32 - 1), 1 / (1 - p)


def _spaces(bias: Tensor, c: Tensor, c_out: Tensor, code: int) -> tuple[Any, ...]:
    """The bias is kept as a point of the unit ball."""
    scale = float(c)
    return padded(bias) * scale**-0.5, code, scale, float(c_out), numerics.limits(bias.dtype).margin


@operation(
    "encode(Tensor values, Tensor? keys, Tensor indptr, Tensor indices, Tensor? rows, Tensor weight, Tensor bias, "
    "Tensor c, Tensor c_out, float p, int code) -> (Tensor, Tensor, Tensor)",
    fake=_shapes,
    backward=_backward,
    save=_save,
)
def encode(
    values: Tensor, keys: Tensor | None, indptr: Tensor, indices: Tensor, rows: Tensor | None, weight: Tensor,
    bias: Tensor, c: Tensor, c_out: Tensor, p: float, code: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """``exp_o(act(log_o(exp_o(x W) ⊕ b / sqrt(c))))``, the product, and how many points were projected.

    The CSR matrix ``x``, or some ``rows`` of it, no row twice, has its values dropped with probability ``p`` under
    ``keys``, if there are any.
    """
    layout, dense, kept = layout_of(indptr, indices), padded(weight), values.contiguous()
    chosen, width = layout.chosen(rows, weight.shape[0]), dense.shape[1]
    parts, count = chosen.blocks.numel() - 1, chosen.rows.numel()
    product = pages.empty((count, width), dense.dtype)
    out, partial = pages.empty_like(product), torch.zeros(parts, 1, dtype=torch.float64)
    args = (
        *(parts, chosen.blocks, chosen.rows, layout.indptr, layout.indices, kept, *_dropping(keys, p), width, dense),
        *(*_spaces(bias, c, c_out, code), product, out, partial),
    )
    work = (chosen.columns.order.numel() + 4 * count) * width
    run_together("encoder.forward", dense.dtype, 1, parts, work, encoder_scratch(width), args)
    return unpadded(out, weight.shape[1]), product, counted(partial, 0)


@operation(
    "encode_backward(Tensor grad, Tensor values, Tensor? keys, Tensor indptr, Tensor indices, Tensor? rows, "
    "Tensor weight, Tensor bias, Tensor c, Tensor c_out, Tensor product, float p, int code) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    fake=lambda grad, values, keys, indptr, indices, rows, *given: tuple(like(tensor) for tensor in given[:4]),
)
def encode_backward(
    grad: Tensor, values: Tensor, keys: Tensor | None, indptr: Tensor, indices: Tensor, rows: Tensor | None,
    weight: Tensor, bias: Tensor, c: Tensor, c_out: Tensor, product: Tensor, p: float, code: int,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of ``weight, bias, c, c_out``."""
    layout, width, kept = layout_of(indptr, indices), product.shape[1], values.contiguous()
    chosen = layout.chosen(rows, weight.shape[0])
    by, parts = chosen.columns, chosen.blocks.numel() - 1
    gproduct, gweight = pages.empty_like(product), pages.empty((weight.shape[0], width), product.dtype)
    curvatures, points = (torch.zeros(parts, size, dtype=torch.float64) for size in (2, width))
    args = (
        *(parts, chosen.blocks, by.blocks.numel() - 1, by.blocks, by.start, by.rows, by.order, kept),
        *(*_dropping(keys, p), width, *_spaces(bias, c, c_out, code), product, padded(grad), gproduct, gweight),
        *(curvatures, points),
    )
    work = (by.order.numel() + 8 * product.shape[0]) * width
    run_together("encoder.backward", product.dtype, 2, parts, work, encoder_scratch(width), args)
    gpoint, scale = ordered_total(points)[: len(bias)], float(c)
    gc, gc_out = ordered_total(curvatures)
    gc = gc - 0.5 * scale**-1.5 * float(gpoint @ bias.detach().numpy())
    return unpadded(gweight, weight.shape[1]), told(scale**-0.5 * gpoint, bias), told(gc, c), told(gc_out, c_out)
