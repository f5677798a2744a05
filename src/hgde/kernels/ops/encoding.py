"""A model's first layer on sparse features as one operation; see :mod:`hgde.kernels.cpu.encoder`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.ahead import PARTS
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import layout_of
from hgde.kernels.cpu.sizes import encoder_scratch
from hgde.kernels.cpu.threads import Given, SharedCall
from hgde.kernels.ops.register import like, operation, ordered_total, padded, told, unpadded

KERNELS = PARTS["encoder"]
Keys = tuple[int, int]
"""What dropout hashes places under."""


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


class Encoding:
    """The layer on some rows of some features, with calls and buffers of its own.

    The CSR matrix ``values, indptr, indices`` of so many columns, or some ``rows`` of it, no row twice; ``drops`` says
    whether its values are dropped with probability ``p``. What a pass made stays until the next one.
    """

    def __init__(
        self, values: Tensor, indptr: Tensor, indices: Tensor, rows: Tensor | None, columns: int, width: int,
        drops: bool, p: float, code: int, product: Tensor | None = None,
    ) -> None:  # fmt: skip
        self.layout, self._values = layout_of(indptr, indices), values.contiguous()
        self._chosen = self.layout.chosen(rows, columns)
        self.columns, self.width, self._code = columns, (width + 7) // 8 * 8, code
        self.dtype, self._parts, self._count = values.dtype, len(self._chosen.blocks) - 1, len(self._chosen.rows)
        self._dropping = (int(drops), Given("one"), Given("two"), *_threshold(drops, p))
        self._spaces = Given("point"), code, Given("c"), Given("c_out"), numerics.limits(self.dtype).margin
        shape = self._count, self.width
        self.product = pages.empty(shape, self.dtype) if product is None else product
        if product is None:
            self.out = pages.empty(shape, self.dtype)
        self._forth: SharedCall | None = None
        self._back: SharedCall | None = None

    def _prepare_forward(self) -> SharedCall:
        layout, chosen, width = self.layout, self._chosen, self.width
        self._projected = np.zeros(self._parts)
        args = (
            *(self._parts, chosen.blocks, chosen.rows, layout.indptr, layout.indices, self._values, *self._dropping),
            *(width, Given("weight"), *self._spaces, self.product, self.out, torch.from_numpy(self._projected)),
        )
        work = (len(chosen.columns.order) + 4 * self._count) * width
        return SharedCall(KERNELS[0], self.dtype, 1, self._parts, work, encoder_scratch(width), args)

    def forward(self, keys: Keys, weight: Tensor, bias: Tensor, c: float, c_out: float) -> None:
        """Points, to ``out``, and the product for the gradient."""
        if self._forth is None:
            self._forth = self._prepare_forward()
        else:
            self._projected.fill(0)
        dense, point = padded(weight), padded(bias) * c**-0.5
        self._forth(one=keys[0], two=keys[1], weight=dense, point=point, c=c, c_out=c_out)

    @property
    def projected(self) -> int:
        """How many points the forward pass projected."""
        return int(self._projected.sum())

    def _prepare_backward(self) -> SharedCall:
        by, width = self._chosen.columns, self.width
        gproduct = pages.empty_like(self.product)
        self._curvatures, self._points = (np.zeros((self._parts, size)) for size in (2, width))
        args = (
            *(self._parts, self._chosen.blocks, len(by.blocks) - 1, by.blocks, by.start, by.rows, by.order),
            *(self._values, *self._dropping, width, *self._spaces, self.product, Given("grad"), gproduct),
            *(Given("gweight"), torch.from_numpy(self._curvatures), torch.from_numpy(self._points)),
        )
        work = (len(by.order) + 8 * self._count) * width
        return SharedCall(KERNELS[1], self.dtype, 2, self._parts, work, encoder_scratch(width), args)

    def backward(
        self, grad: Tensor, keys: Keys, bias: Tensor, c: float, c_out: float
    ) -> tuple[Tensor, Tensor, float, float]:
        """From the gradient of the points, padded: those of ``weight``, padded, ``bias``, ``c`` and ``c_out``."""
        if self._back is None:
            self._back = self._prepare_backward()
        else:
            self._curvatures.fill(0)
            self._points.fill(0)
        gweight, point = pages.empty((self.columns, self.width), self.dtype), padded(bias) * c**-0.5
        self._back(one=keys[0], two=keys[1], point=point, c=c, c_out=c_out, grad=grad, gweight=gweight)
        gpoint = ordered_total(self._points)[: len(bias)]
        gc, gc_out = ordered_total(self._curvatures)
        gc = gc - 0.5 * c**-1.5 * float(gpoint @ bias.detach().numpy())
        return gweight, told(c**-0.5 * gpoint, bias), float(gc), float(gc_out)


def _threshold(drops: bool, p: float) -> tuple[int, float]:
    """Below which draw an entry is dropped, and what the others are multiplied by."""
    return (min(round(p * 2**32), 2**32 - 1), 1 / (1 - p)) if drops else (0, 1.0)


def keys_of(keys: Tensor | None) -> Keys:
    """Two keys as numbers."""
    return (0, 0) if keys is None else tuple(keys.tolist())


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

    The bias is kept as a point of the unit ball; dropout happens under ``keys``, if there are any.
    """
    layer = Encoding(values, indptr, indices, rows, weight.shape[0], weight.shape[1], keys is not None, p, code)
    layer.forward(keys_of(keys), weight, bias, float(c), float(c_out))
    return unpadded(layer.out, weight.shape[1]), layer.product, torch.tensor(layer.projected)


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
    layer = Encoding(
        values, indptr, indices, rows, weight.shape[0], weight.shape[1], keys is not None, p, code, product
    )
    gweight, gbias, gc, gc_out = layer.backward(padded(grad), keys_of(keys), bias, float(c), float(c_out))
    return unpadded(gweight, weight.shape[1]), gbias, told(gc, c), told(gc_out, c_out)
