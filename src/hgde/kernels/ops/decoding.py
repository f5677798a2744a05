"""A model's last layer as one operation; see :mod:`hgde.kernels.cpu.decoder`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.ahead import PARTS
from hgde.kernels.cpu.layout import even_blocks
from hgde.kernels.cpu.sizes import decoder_scratch
from hgde.kernels.cpu.threads import run
from hgde.kernels.ops.register import like, operation, ordered_total, padded, told, unpadded

KERNELS = PARTS["decoder"]


def _gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = decode_backward(grad, *ctx.saved_tensors)
    return tuple(g if w else None for g, w in zip(found, ctx.needs_input_grad, strict=True))


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, output[1])


def _shapes(z: Tensor, weight: Tensor, bias: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    nodes, outputs = z.shape[0], weight.shape[1]
    return z.new_empty((nodes, outputs)), z.new_empty((nodes, (outputs + 7) // 8 * 8))


def _arguments(z: Tensor, weight: Tensor, bias: Tensor, c: float) -> tuple[Any, ...]:
    """The bias is kept as a point of the unit ball."""
    points, (inputs, columns) = padded(z), weight.shape
    widths = inputs, columns, points.shape[1], (columns + 7) // 8 * 8
    margin = numerics.limits(z.dtype).margin
    return even_blocks(z.shape[0]), *widths, points, weight.contiguous(), bias.contiguous(), c, c**0.5, margin


def _run(kernel: str, args: tuple[Any, ...]) -> None:
    blocks, _, _, width, outputs, points = args[:6]
    work = 2 * points.shape[0] * width * (outputs + 8)
    run(kernel, points.dtype, blocks.numel() - 1, work, decoder_scratch(width, outputs), args)


@operation(
    "decode(Tensor z, Tensor weight, Tensor bias, Tensor c) -> (Tensor, Tensor)",
    fake=_shapes,
    backward=_gradient,
    save=_save,
)
def decode(z: Tensor, weight: Tensor, bias: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """``log_o(exp_o(log_o(z) W) ⊕ b / sqrt(c))``, and ``log_o(z) W``."""
    args = _arguments(z, weight, bias, float(c))
    nodes = z.shape[0]
    product, out = z.new_empty((nodes, args[4])), z.new_empty((nodes, weight.shape[1]))
    _run(KERNELS[0], (*args, product, out))
    return out, product


@operation(
    "decode_backward(Tensor grad, Tensor z, Tensor weight, Tensor bias, Tensor c, Tensor product) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    fake=lambda grad, z, weight, bias, c, product: (like(z), like(weight), like(bias), like(c)),
)
def decode_backward(
    grad: Tensor, z: Tensor, weight: Tensor, bias: Tensor, c: Tensor, product: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of ``z, weight, bias, c``."""
    number = float(c)
    args = _arguments(z, weight, bias, number)
    blocks, inputs, columns, width, outputs, points = args[:6]
    gz, matrix = torch.empty_like(points), width * outputs
    lines = torch.zeros(blocks.numel() - 1, matrix + outputs + 1, dtype=torch.float64)
    _run(KERNELS[1], (*args, product, grad.contiguous(), gz, lines))
    total = ordered_total(lines)
    gweight = total[:matrix].reshape(width, outputs)[:inputs, :columns]
    gpoint = total[matrix : matrix + columns]
    gc = total[-1] - 0.5 * number**-1.5 * float(gpoint @ bias.detach().numpy())
    return unpadded(gz, z.shape[1]), told(gweight, weight), told(number**-0.5 * gpoint, bias), told(gc, c)
