"""Maps that act on rows alone, as differentiable functions: a compiled pass forward, one back, arguments saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.layout import Array, even_blocks
from hgde.kernels.pool import run_blocks

STRIP = 64
"""Rows worked on together."""


@dataclass(frozen=True, eq=False)
class Passes:
    """The two kernels of a map of ``c`` and several arrays ``[N, d]``.

    ``forward(begin, end, blocks, *arrays, c, margin, out)``, with a last argument that counts the points pulled back in
    each block if ``pulls_back``; ``backward(begin, end, blocks, *arrays, c, margin, grad, *grads, partial)``, which
    adds the gradient of ``c`` to ``partial`` of each block.
    """

    forward: Any
    backward: Any
    pulls_back: bool = False


def _array(tensor: Tensor) -> Array:
    return tensor.detach().contiguous().numpy()


def _number(c: Tensor, dtype: torch.dtype) -> float:
    """``c`` as torch would use it with points of ``dtype``: one ball for all maps and kernels."""
    return c.detach().to(dtype).item()


class _RowMap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, passes: Passes, c: Tensor, *points: Tensor) -> Tensor:
        ctx.save_for_backward(c, *points)
        ctx.passes = passes
        arrays = [_array(point) for point in points]
        dtype, size = points[0].dtype, arrays[0].size
        blocks, out = even_blocks(len(arrays[0])), np.empty_like(arrays[0])
        args = (blocks, *arrays, _number(c, dtype), numerics.limits(dtype).margin, out)
        if not passes.pulls_back:
            run_blocks(passes.forward, len(blocks) - 1, 8 * size, args)
            return torch.from_numpy(out)
        pulled = np.zeros(len(blocks) - 1)
        run_blocks(passes.forward, len(blocks) - 1, 8 * size, (*args, pulled))
        if numerics.counting_projections():
            numerics.record_projections(torch.tensor(int(pulled.sum())))
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        c, *points = ctx.saved_tensors
        found = _gradients(ctx.passes, c, points, grad)
        if torch.is_grad_enabled():
            found = [_Once.apply(gradient, grad, c, *points) for gradient in found]
        return None, *found


def _gradients(passes: Passes, c: Tensor, points: list[Tensor], grad: Tensor) -> list[Tensor]:
    arrays = [_array(point) for point in points]
    dtype, size = points[0].dtype, arrays[0].size
    blocks, grads = even_blocks(len(arrays[0])), [np.empty_like(array) for array in arrays]
    partial = np.zeros(len(blocks) - 1)
    args = (blocks, *arrays, _number(c, dtype), numerics.limits(dtype).margin, _array(grad), *grads, partial)
    run_blocks(passes.backward, len(partial), 16 * size, args)
    # Summed in the order of the blocks, whatever thread worked on them.
    total = torch.tensor(np.add.accumulate(partial)[-1], dtype=c.dtype).reshape(c.shape)
    return [total, *(torch.from_numpy(g) for g in grads)]


class _Once(torch.autograd.Function):
    """A gradient tied to all it came from. torch's own ``once_differentiable`` is silent, hence wrong, where only the
    saved arguments and not the incoming gradient are differentiated again."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError(
            "the compiled maps of the ball have no second derivative; "
            "choose plain torch with hgde.kernels.set_backend('reference') or HGDE_BACKEND=reference"
        )


def apply(passes: Passes, c: Tensor, *points: Tensor) -> Tensor:
    """The map on the rows of ``points [N, d]``, all of one shape and dtype on the CPU."""
    out: Tensor = _RowMap.apply(passes, c, *points)
    return out
