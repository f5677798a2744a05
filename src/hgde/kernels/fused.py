"""Fused CPU diffusion with hand-written gradients. Saved for the backward pass: one state per step, and the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.weak import WeakIdKeyDictionary

from hgde.geometry import numerics
from hgde.graph import Graph
from hgde.kernels import rows
from hgde.kernels.attention import attention_values
from hgde.kernels.lanes import LANES
from hgde.kernels.layout import Array, Layout, even_blocks, layout_of
from hgde.kernels.pool import run_blocks
from hgde.kernels.reference import resolve_activation
from hgde.kernels.strips import ACTIVATION_CODES
from hgde.kernels.weights import AttentionWeights, ChannelWeights, LocalWeights

TABLE_COPIES = 8
#: States no larger than this are kept together with their sums, which saves the backward pass one visit of the edges.
KEEP_BYTES = 1_000_000
_PARTIALS = 5
_COUNT = 4
_NO_ETA = np.zeros(3)
_narrow_index: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _array(tensor: Tensor) -> Array:
    return tensor.detach().contiguous().numpy()


def _code(activation: str) -> int:
    resolve_activation(activation)
    return ACTIVATION_CODES[activation]


def _report(partial: Array) -> None:
    if numerics.counting_projections():
        numerics.record_projections(torch.tensor(int(partial[:, _COUNT].sum())))


def _narrow(index: Tensor) -> Array:
    found = _narrow_index.get(index)
    if found is None:
        found = _narrow_index[index] = _array(index).astype(np.int32)
    return found


class _Step:
    """The arguments of one step that do not change along a trajectory."""

    def __init__(
        self,
        layout: Layout,
        weights: tuple[Tensor, ...],
        index: Array | None,
        c: Tensor,
        mode: int,
        code: int,
        eta: Tensor | None,
    ) -> None:
        self.layout = layout
        self.values = _array(weights[0]) if index is None else None
        self.table = None if index is None else _array(weights[0])
        self.scale = None if index is None else _array(weights[1])
        self.index = index
        self.c = float(c)
        self.mode, self.code = mode, code
        self.eta = _NO_ETA if eta is None else _array(eta).astype(np.float64)
        self.margin = numerics.limits(weights[0].dtype).margin

    def _common(self, z: Array, z0: Array) -> tuple[Any, ...]:
        return (
            *(self.layout.blocks, self.layout.indptr, self.layout.indices, z),
            *(self.values, self.table, self.index, self.scale),
            *(self.c, self.margin, self.mode, self.code, z0, self.eta),
        )

    def work(self, z: Array) -> int:
        return (len(self.layout.indices) + 4 * len(z)) * z.shape[1]

    def forward(self, z: Array, z0: Array, kept: Array, partial: Array) -> Array:
        out = np.empty_like(z)
        args = (*self._common(z, z0), kept, out, partial)
        run_blocks(rows.forward_blocks, self.layout.num_blocks, self.work(z), args)
        return out

    def backward(self, z: Array, z0: Array, kept: Array, grad: Array, into: _Gradients, partial: Array) -> Array:
        """The gradient at ``z``; the others are added to ``into``."""
        layout, gz = self.layout, np.empty_like(z)
        args = (*self._common(z, z0), kept, grad, into.packed, gz, into.z0, into.scale, partial)
        run_blocks(rows.backward_rows, layout.num_blocks, self.work(z), args)
        blocks = len(layout.around_blocks) - 1
        group = -(-blocks // into.copies)
        pairs = (
            *(layout.around_blocks, group, layout.around, layout.neighbours, layout.in_edge, layout.out_edge),
            *(into.packed, self.values, self.table, self.index, self.c, self.margin),
            *(gz, into.values, into.table, partial),
        )
        align = 1 if self.table is None else group
        run_blocks(rows.backward_edges, blocks, 2 * self.work(z), pairs, align)
        return gz


class _Gradients:
    """Where a backward pass collects what the weights and the first state receive."""

    def __init__(self, step: _Step, z: Array) -> None:
        self.packed = np.empty((z.shape[0], 2 * z.shape[1]), z.dtype)
        self.z0 = np.zeros_like(z) if step.mode == 2 else z
        self.copies = 1
        self.values: Array | None = None
        self.scale: Array | None = None
        self.table: Array | None = None
        if step.table is None:
            assert step.values is not None
            self.values = np.zeros_like(step.values)
        else:
            # Copies of the table together take no more room than a state.
            self.copies = max(1, min(TABLE_COPIES, len(z) // max(len(step.table), 1)))
            self.table = np.zeros((self.copies, *step.table.shape), z.dtype)
            self.scale = np.zeros_like(z)

    def weights(self) -> tuple[Tensor, Tensor | None]:
        if self.table is None:
            assert self.values is not None
            return torch.from_numpy(self.values), None
        assert self.scale is not None
        return torch.from_numpy(self.table.sum(0)), torch.from_numpy(self.scale)


def _ordered_sum(partial: Array) -> Array:
    """Lines added one after the other: the same bits however they were computed."""
    return partial.sum(0) if len(partial) == 0 else np.add.accumulate(partial, 0)[-1]


class _Diffuse(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        z0: Tensor | None,
        c: Tensor,
        eta: Tensor | None,
        weight: Tensor,
        scale: Tensor | None,
        layout: Layout,
        index: Array | None,
        steps: int,
        mode: int,
        code: int,
    ) -> Tensor:
        weights = (weight,) if scale is None else (weight, scale)
        step = _Step(layout, weights, index, c, mode, code, eta)
        first = None if z0 is None else _array(z0)
        states = [_array(z)]
        partial = np.zeros((layout.num_blocks, _PARTIALS))
        keep = states[0].nbytes <= KEEP_BYTES and any(ctx.needs_input_grad)
        sums = [np.empty_like(states[0]) if keep else states[0][:0] for _ in range(steps)]
        for kept in sums:
            states.append(step.forward(states[-1], states[-1] if first is None else first, kept, partial))
        _report(partial)
        ctx.save_for_backward(z, z0, c, eta, weight, scale)
        ctx.step, ctx.states, ctx.sums = step, states[1:-1], sums
        return torch.from_numpy(states[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, z0, c, eta, _, _ = ctx.saved_tensors
        step: _Step = ctx.step
        states = [_array(z), *ctx.states]
        first = None if z0 is None else _array(z0)
        into = _Gradients(step, states[0])
        blocks = max(step.layout.num_blocks, len(step.layout.around_blocks) - 1)
        partial = np.zeros((blocks, _PARTIALS))
        g = _array(grad)
        for state, kept in zip(reversed(states), reversed(ctx.sums), strict=True):
            g = step.backward(state, state if first is None else first, kept, g, into, partial)
        total = _ordered_sum(partial)
        grad_z = torch.from_numpy(g)
        grad_z0 = None
        if step.mode == 2 and z0 is not None:
            grad_z0 = torch.from_numpy(into.z0)
        grad_weight, grad_scale = into.weights()
        grad_eta = None if eta is None else torch.from_numpy(total[1:4]).to(eta.dtype)
        grad_c = torch.tensor(total[0], dtype=c.dtype).reshape(c.shape)
        return grad_z, grad_z0, grad_c, grad_eta, grad_weight, grad_scale, *([None] * 5)


class _Advance(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, v: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, mode: int, code: int
    ) -> Tensor:
        ctx.save_for_backward(z, v, z0, c, eta)
        ctx.mode, ctx.code = mode, code
        out = np.empty_like(_array(z))
        args, partial = _Advance.arguments(ctx, z, v, z0, c, eta)
        run_blocks(rows.advance_blocks, len(partial), 8 * z.numel(), (*args, out, partial))
        _report(partial)
        return torch.from_numpy(out)

    @staticmethod
    def arguments(
        ctx: Any, z: Tensor, v: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None
    ) -> tuple[tuple[Any, ...], Array]:
        points = _array(z)
        blocks = even_blocks(len(points))
        three = _NO_ETA if eta is None else _array(eta).astype(np.float64)
        first = points if z0 is None else _array(z0)
        margin = numerics.limits(z.dtype).margin
        args = (blocks, points, _array(v), float(c), margin, ctx.mode, ctx.code, first, three)
        return args, np.zeros((len(blocks) - 1, _PARTIALS))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, v, z0, c, eta = ctx.saved_tensors
        args, partial = _Advance.arguments(ctx, z, v, z0, c, eta)
        points = args[1]
        gz, gv, gz0 = np.empty_like(points), np.empty_like(points), np.zeros_like(points)
        args = (*args, _array(grad), gz, gv, gz0, partial)
        run_blocks(rows.advance_blocks_backward, len(partial), 16 * z.numel(), args)
        total = _ordered_sum(partial)
        if z0 is None and ctx.mode == 2:
            gz += gz0
        grad_eta = None if eta is None else torch.from_numpy(total[1:4]).to(eta.dtype)
        grad_c = torch.tensor(total[0], dtype=c.dtype).reshape(c.shape)
        grad_z0 = None if z0 is None else torch.from_numpy(gz0)
        return torch.from_numpy(gz), torch.from_numpy(gv), grad_z0, grad_c, grad_eta, None, None


def _apply(
    z: Tensor,
    graph: Graph,
    weights: LocalWeights,
    c: Tensor,
    steps: int,
    z0: Tensor | None,
    eta: Tensor | None,
    mode: int,
    code: int,
) -> Tensor:
    index: Array | None = None
    scale: Tensor | None = None
    width = z.shape[1]
    if isinstance(weights, ChannelWeights):
        weight, scale, index = _padded(weights.table), _padded(weights.scale), _narrow(weights.index)
    else:
        weight = attention_values(graph, weights) if isinstance(weights, AttentionWeights) else weights.values
    first = None if z0 is None else _padded(z0)
    out: Tensor = _Diffuse.apply(_padded(z), first, c, eta, weight, scale, layout_of(graph), index, steps, mode, code)
    return _unpadded(out, width)


def _padded(rows: Tensor) -> Tensor:
    """Rows lengthened by zeros to a multiple of eight; every map here leaves those zeros."""
    missing = -rows.shape[1] % LANES
    return rows if missing == 0 else torch.nn.functional.pad(rows, (0, missing))


def _unpadded(rows: Tensor, width: int) -> Tensor:
    return rows if rows.shape[1] == width else rows[:, :width].contiguous()


def tangent_sum(z: Tensor, graph: Graph, weights: LocalWeights, c: Tensor) -> Tensor:
    """:func:`hgde.kernels.tangent_sum` in one pass."""
    return _apply(z, graph, weights, c, 1, None, None, 0, 0)


def diffuse_steps(
    z: Tensor,
    graph: Graph,
    weights: LocalWeights,
    c: Tensor,
    steps: int,
    z0: Tensor | None,
    eta: Tensor | None,
    activation: str,
) -> Tensor:
    """:func:`hgde.kernels.diffuse_steps`, one pass per step and one autograd node for all of them."""
    if steps == 0:
        return z
    if eta is None:
        return _apply(z, graph, weights, c, steps, None, None, 1, _code(activation))
    return _apply(z, graph, weights, c, steps, z if z0 is None else z0, eta, 2, _code(activation))


def advance(z: Tensor, v: Tensor, c: Tensor, z0: Tensor | None, eta: Tensor | None, activation: str) -> Tensor:
    """:func:`hgde.kernels.advance` in one pass over the rows."""
    mode, first = (1, None) if eta is None else (2, None if z0 is None else _padded(z0))
    return _unpadded(_Advance.apply(_padded(z), _padded(v), first, c, eta, mode, _code(activation)), z.shape[1])


__all__ = ["advance", "attention_values", "diffuse_steps", "tangent_sum"]
