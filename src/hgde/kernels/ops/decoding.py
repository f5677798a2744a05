"""A model's last layer as one operation; see :mod:`hgde.kernels.cpu.decoder`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.cpu.layout import even_blocks
from hgde.kernels.cpu.sizes import scratch
from hgde.kernels.cpu.threads import run
from hgde.kernels.ops.register import like, operation, ordered_total, padded, told, unpadded

KERNELS = ("decoder.forward", "decoder.backward")


def _gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = decode_backward(grad, *ctx.saved_tensors)
    return tuple(g if w else None for g, w in zip(found, ctx.needs_input_grad, strict=True))


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, output[1])


def _shapes(z: Tensor, weight: Tensor, bias: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    nodes, outputs = z.shape[0], weight.shape[1]
    return z.new_empty((nodes, outputs)), z.new_empty((nodes, (outputs + 7) // 8 * 8))


def _arguments(z: Tensor, weight: Tensor, bias: Tensor, c: float) -> tuple[Any, ...]:
    """The bias is kept as a point of the unit ball. Rows of the matrix are as many as a padded point is long."""
    points, matrix = padded(z), padded(weight)
    if len(matrix) < points.shape[1]:
        matrix = torch.cat([matrix, matrix.new_zeros(points.shape[1] - len(matrix), matrix.shape[1])])
    margin = numerics.limits(z.dtype).margin
    return even_blocks(len(z)), *matrix.shape, points, matrix, padded(bias) * c**-0.5, c, margin


def _run(kernel: str, args: tuple[Any, ...]) -> None:
    blocks, width, outputs, points = args[:4]
    work = 2 * len(points) * width * (outputs + 8)
    run(kernel, points.dtype, blocks.numel() - 1, work, scratch(max(width, outputs)), args)


@operation(
    "decode(Tensor z, Tensor weight, Tensor bias, Tensor c) -> (Tensor, Tensor)",
    fake=_shapes,
    backward=_gradient,
    save=_save,
)
def decode(z: Tensor, weight: Tensor, bias: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """``log_o(exp_o(log_o(z) W) ⊕ b / sqrt(c))``, and ``log_o(z) W``."""
    args = _arguments(z, weight, bias, float(c))
    product = args[3].new_empty((len(z), args[2]))
    out = torch.empty_like(product)
    _run(KERNELS[0], (*args, product, out))
    return unpadded(out, weight.shape[1]), product


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
    blocks, width, outputs, points = args[:4]
    gz, matrix = torch.empty_like(points), width * outputs
    lines = torch.zeros(blocks.numel() - 1, matrix + outputs + 1, dtype=torch.float64)
    _run(KERNELS[1], (*args, product, padded(grad), gz, lines))
    total = ordered_total(lines)
    gweight = total[:matrix].reshape(width, outputs)[: weight.shape[0], : weight.shape[1]]
    gpoint = total[matrix : matrix + len(bias)]
    gc = total[-1] - 0.5 * number**-1.5 * float(gpoint @ bias.detach().numpy())
    return unpadded(gz, z.shape[1]), told(gweight, weight), told(number**-0.5 * gpoint, bias), told(gc, c)
