"""A model's last layer as one operation; see :mod:`hgde.kernels.cpu.decoder`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.ahead import PARTS
from hgde.kernels.cpu.layout import even_blocks
from hgde.kernels.cpu.sizes import decoder_scratch
from hgde.kernels.cpu.threads import Given, SplitCall
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


class Decoding:
    """The layer on points at one place, ``z [n, d]`` padded, with calls and buffers of its own.

    A matrix has ``inputs`` rows and so many ``columns``. What a pass made stays until the next one.
    """

    def __init__(self, z: Tensor, inputs: int, columns: int, product: Tensor | None = None) -> None:
        self._points, self._inputs, self._columns = z, inputs, columns
        self.nodes, self._width, self._outputs = len(z), z.shape[1], (columns + 7) // 8 * 8
        self.product = z.new_empty((self.nodes, self._outputs)) if product is None else product
        self._forth: SplitCall | None = None
        self._back: SplitCall | None = None

    def _prepare(self, kernel: str, more: tuple[Any, ...]) -> SplitCall:
        z, width, outputs, blocks = self._points, self._width, self._outputs, even_blocks(self.nodes)
        args = (
            *(blocks, self._inputs, self._columns, width, outputs, z, Given("weight"), Given("bias")),
            *(Given("c"), Given("root_c"), numerics.limits(z.dtype).margin, self.product, *more),
        )
        work, buffers = 2 * self.nodes * width * (outputs + 8), decoder_scratch(width, outputs)
        return SplitCall(kernel, z.dtype, len(blocks) - 1, work, buffers, args)

    def forward(self, weight: Tensor, bias: Tensor, c: float) -> Tensor:
        """Scores; the product stays for the gradient."""
        if self._forth is None:
            self._forth = self._prepare(KERNELS[0], (Given("out"),))
        out = self._points.new_empty((self.nodes, self._columns))
        self._forth(weight=weight.contiguous(), bias=bias.contiguous(), c=c, root_c=c**0.5, out=out)
        return out

    def backward(self, grad: Tensor, weight: Tensor, bias: Tensor, c: float) -> tuple[Tensor, Tensor, float]:
        """Gradients of ``weight``, ``bias`` and ``c``; that of the points, padded, is left at ``gz``."""
        matrix, columns = self._width * self._outputs, self._columns
        if self._back is None:
            self.gz = torch.empty_like(self._points)
            self._lines = np.zeros((len(even_blocks(self.nodes)) - 1, matrix + self._outputs + 1))
            self._back = self._prepare(KERNELS[1], (Given("grad"), self.gz, torch.from_numpy(self._lines)))
        else:
            self._lines.fill(0)
        given = weight.contiguous(), bias.contiguous(), grad.contiguous()
        self._back(weight=given[0], bias=given[1], c=c, root_c=c**0.5, grad=given[2])
        total = ordered_total(self._lines)
        gweight = total[:matrix].reshape(self._width, self._outputs)[: self._inputs, :columns]
        gpoint = total[matrix : matrix + columns]
        gc = total[-1] - 0.5 * c**-1.5 * float(gpoint @ bias.detach().numpy())
        return told(gweight, weight), told(c**-0.5 * gpoint, bias), float(gc)


@operation(
    "decode(Tensor z, Tensor weight, Tensor bias, Tensor c) -> (Tensor, Tensor)",
    fake=_shapes,
    backward=_gradient,
    save=_save,
)
def decode(z: Tensor, weight: Tensor, bias: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """``log_o(exp_o(log_o(z) W) ⊕ b / sqrt(c))``, and ``log_o(z) W``; the bias is kept as a point of the unit ball."""
    layer = Decoding(padded(z), weight.shape[0], weight.shape[1])
    return layer.forward(weight, bias, float(c)), layer.product


@operation(
    "decode_backward(Tensor grad, Tensor z, Tensor weight, Tensor bias, Tensor c, Tensor product) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    fake=lambda grad, z, weight, bias, c, product: (like(z), like(weight), like(bias), like(c)),
)
def decode_backward(
    grad: Tensor, z: Tensor, weight: Tensor, bias: Tensor, c: Tensor, product: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of ``z, weight, bias, c``."""
    layer = Decoding(padded(z), weight.shape[0], weight.shape[1], product)
    gweight, gbias, gc = layer.backward(grad, weight, bias, float(c))
    return unpadded(layer.gz, z.shape[1]), gweight, gbias, told(gc, c)
