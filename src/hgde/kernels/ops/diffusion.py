"""Steps of diffusion along the edges of a graph: one pass per step, one node of autograd for all of them.

Saved for the backward pass: one state per step, and the weights. Edge scalars are worked out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.compiler.load import prepare
from hgde.geometry import numerics
from hgde.graph import Graph
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import even_blocks, layout_of, narrowed, reversed_values
from hgde.kernels.cpu.sizes import ELU, IDENTITY, LEAKY_RELU, PARTIALS, PROJECTED, RELU, TANH, at_width, scratch
from hgde.kernels.cpu.threads import lent, run, run_together
from hgde.kernels.ops.register import counted, like, operation, ordered_sum, ordered_total, padded, told, unpadded

TABLE_COPIES = 8
#: A step keeps its sums and what is dear of its edges if they take no more than this; else they are worked out again.
KEEP_BYTES = 2_000_000
TOLD = 4
NOTHING, LAST, ALL, ALL_AND_EDGES = range(4)
"""What is kept for the gradient besides states: the last step's sums, those of all, or with them numbers of edges."""
SUMS, MOVED, RESIDUAL = 0, 1, 2
ACTIVATION_CODES = {"identity": IDENTITY, "relu": RELU, "leaky_relu": LEAKY_RELU, "tanh": TANH, "elu": ELU}
_KERNELS = {
    False: ("trajectories.forward_edges", "trajectories.backward_edges"),
    True: ("trajectories.forward_channels", "trajectories.backward_channels"),
}
MUTUAL = "trajectories.backward_mutual"
"""The gradient where every edge has its reverse."""


def prepare_for(z: Tensor, graph: Graph, channels: bool, learns: bool) -> None:
    """Begin to compile what a trajectory with such weights needs, and its gradient if it ``learns``."""
    names = list(_KERNELS[channels][: 2 if learns else 1])
    if learns and goes_both_ways(graph, channels):
        names[1] = MUTUAL
    prepare([at_width(name, z.shape[1]) for name in names], z.dtype)


class Trajectory:
    """What does not change along the steps of a trajectory."""

    def __init__(
        self, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, weight: Tensor, scale: Tensor | None,
        index: Tensor | None, extra: Tensor | None, indptr: Tensor, indices: Tensor, mode: int, code: int,
        counts: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.layout, self.counts = layout_of(indptr, indices), tuple(counts)
        self.blocks = self.layout.stages(self.counts)
        self.stage = self.layout.num_blocks + 1 if self.counts else 0
        self.rows, self.width = z.shape
        self.dtype, self.channels = z.dtype, index is not None
        self.c, self.margin = float(c), numerics.limits(z.dtype).margin
        self.mode, self.code = mode, code
        self.eta = (0.0, 0.0, 0.0) if eta is None else tuple(eta.tolist())
        self.z0 = z if z0 is None else z0
        self.starts_here = z0 is None and mode == RESIDUAL
        self.extra = None if extra is None else extra.contiguous()
        given = (int(extra is not None), pointer(self.extra))
        if index is None:
            self.weight = weight.contiguous()
            self.weights: tuple[Any, ...] = (self.weight, given[1], given[0])
        else:
            assert scale is not None
            self.weight, self.index = padded(weight), narrowed(index)
            self.scale = padded(scale)
            self.weights = (self.weight, self.index, *given, self.scale)
        self.work = (self.layout.num_entries + 8 * self.rows) * self.width

    def end(self, state: Tensor) -> Tensor:
        """Where the last state goes."""
        return pages.empty((self.counts[-1], self.width), state.dtype) if self.counts else pages.empty_like(state)

    @property
    def reverse(self) -> Tensor | None:
        """The reverse of each edge, where an edge and its reverse are visited together on the way back."""
        return None if self.channels else self.layout.reverse

    def _common(self, z: Tensor, states: Tensor, kept: Tensor, b: Tensor, keep: int, apart: int) -> tuple[Any, ...]:
        layout, steps = self.layout, len(states) + 1
        return (
            *(steps, layout.num_blocks, self.blocks, self.rows, layout.indptr, layout.indices, layout.owners),
            *(self.width, z, states, b, *self.weights, self.z0, self.mode, self.code, *self.eta, self.c, self.margin),
            *(keep, kept, kept.shape[1], apart),
        )

    def forward(self, z: Tensor, states: Tensor, kept: Tensor, out: Tensor, partial: Tensor) -> None:
        """From ``z`` through ``states`` to ``out``, all written but ``z``."""
        steps, b = len(states) + 1, pages.empty(2 * self.rows, torch.float64)
        apart = (kept.shape[1] - z.numel() - self.rows) // 2
        args = (*self._common(z, states, kept, b, len(kept), apart), out, partial)
        if not self.channels:
            args += (self.stage,)
        blocks, buffers = self.layout.num_blocks, scratch(self.width)
        name = at_width(_KERNELS[self.channels][0], self.width)
        run_together(name, self.dtype, steps + 1, blocks, steps * self.work, buffers, args)

    def backward(
        self, z: Tensor, states: Tensor, kept: Tensor, grad: Tensor, into: Gradients, partial: Tensor
    ) -> Tensor:
        """The gradient at ``z`` from that at the end; the others are added to ``into``."""
        layout, gz, steps = self.layout, pages.empty_like(z), len(states) + 1
        b, keep, apart = pages.empty(self.rows, torch.float64), len(kept), layout.num_entries
        if self.reverse is None and kept.shape[1] == z.numel() + self.rows:
            keep, apart = 0, layout.most_in_strip(self.width)
        told, kernel = into.values, _KERNELS[self.channels][1]
        given: tuple[Any, ...] = (pointer(into.extra),)
        if self.channels:
            assert into.table is not None
            told = into.extra
            group = -(-layout.num_blocks // into.copies)
            given = (into.scale, into.table, into.table[0].numel(), group)
        args = (*self._common(z, states, kept, b, keep, apart), grad, into.sums, gz, into.z0, *given)
        args += (int(told is not None), pointer(told))
        if self.reverse is not None:
            kernel, nodes = MUTUAL, pages.empty(2 * self.rows, torch.float64)
            own, back = lent("own", 2 * z.numel(), z.dtype), reversed_values(self.weight, self.reverse)
            args += (nodes, partial, own, back, int(self.starts_here), self.stage)
        else:
            by = layout.transposed(self.rows)
            args += (into.tell, partial, by.blocks.numel() - 1, by.blocks, by.start, by.rows, by.order)
        buffers = scratch(self.width, layout.most_in_strip(self.width, self.counts))
        name, work = at_width(kernel, self.width), 3 * steps * self.work
        run_together(name, self.dtype, 2 * steps + 1, layout.num_blocks, work, buffers, args)
        return gz


def pointer(tensor: Tensor | None) -> Tensor | int:
    """A tensor for a kernel, or the null pointer."""
    return 0 if tensor is None else tensor


class Gradients:
    """Where a backward pass collects what the weights and the first state receive; the latter only where it is not
    joined with the gradient of the state that it is."""

    def __init__(self, step: Trajectory, z: Tensor, wanted: bool, tells: bool = False, is_joined: bool = False) -> None:
        self.sums = lent("sums", 2 * z.numel(), z.dtype)
        told = TOLD * step.layout.num_entries if tells or step.reverse is None else 0
        self.tell = lent("tell", told, z.dtype)
        has_start = step.mode == RESIDUAL and not is_joined
        self.z0 = torch.from_numpy(np.zeros_like(z.numpy())) if has_start else z
        self.copies = 1
        self.values = pages.empty_like(step.weight).zero_() if wanted and not step.channels else None
        self.extra: Tensor | None = None
        if step.extra is not None and not step.channels:
            self.extra = torch.zeros(len(z), dtype=torch.float64)
        elif step.extra is not None and wanted:
            self.extra = torch.zeros_like(step.extra)
        self.scale: Tensor | None = None
        self.table: Tensor | None = None
        if step.channels:
            # Copies of the table together take no more room than a state.
            self.copies = max(1, min(TABLE_COPIES, len(z) // max(len(step.weight), 1)))
            self.table = torch.zeros(self.copies, *step.weight.shape, dtype=torch.float64)
            self.scale = torch.zeros_like(z)

    def add_start(self, gz: Tensor) -> None:
        """Where the start is the first state itself. numpy adds on this thread: torch would wake others, which spin for
        a while."""
        np.add(gz.numpy(), self.z0.numpy(), out=gz.numpy())


def kept_shape(keep: int, steps: int, rows: int, width: int, edges: int) -> tuple[int, int]:
    """Steps of which something is kept, and how many numbers of each: sums, one of each row, two of each edge."""
    return (0, 1, steps, steps)[keep], rows * (width + 1) + (2 * edges if keep == ALL_AND_EDGES else 0)


def what_to_keep(z: Tensor, graph: Graph, channels: bool) -> int:
    """What a trajectory that learns keeps."""
    keeps_all = is_small(z.numel(), graph.num_edges)
    if goes_both_ways(graph, channels):
        return ALL if keeps_all else LAST
    return ALL_AND_EDGES if keeps_all else NOTHING


def is_small(size: int, edges: int) -> bool:
    """Whether what a step may keep takes little, for a state of so many numbers."""
    return 8 * (size + 2 * edges) <= KEEP_BYTES


def goes_both_ways(graph: Graph, channels: bool) -> bool:
    """Whether an edge and its reverse are visited together on the way back, as far as can be known before a run."""
    if channels or torch.compiler.is_compiling() or graph.indices.device.type != "cpu":
        return False
    return layout_of(graph.indptr, graph.indices).reverse is not None


def _saved(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    z, z0, c, eta, weight, scale, index, extra, indptr, indices, steps, mode, code, _, counts = inputs
    ctx.save_for_backward(z, z0, c, eta, weight, scale, index, extra, indptr, indices, output[1], output[2])
    ctx.plain = steps, mode, code, counts


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    wanted = ctx.needs_input_grad
    saved = ctx.saved_tensors
    gz, gz0, gc, geta, gweight, gscale, gextra = diffuse_backward(
        grad, *saved, *ctx.plain, wanted[4] or (wanted[7] and saved[6] is not None)
    )
    found = (gz, gz0, gc, geta, gweight, gscale, None, gextra)
    return *(g if w else None for g, w in zip(found, wanted, strict=False)), *(None,) * 7


def _shapes(
    z: Tensor, z0: Any, c: Any, eta: Any, weight: Any, scale: Any, index: Any, extra: Any, indptr: Any, indices: Any,
    steps: int, mode: int, code: int, keep: int, counts: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    width = (z.shape[1] + 7) // 8 * 8
    states = z.new_empty((steps - 1, z.shape[0], width))
    kept = z.new_empty(kept_shape(keep, steps, z.shape[0], width, indices.shape[0]), dtype=torch.float64)
    out = z.new_empty((counts[-1] if counts else z.shape[0], z.shape[1]))
    return out, states, kept, z.new_empty((), dtype=torch.int64)


@operation(
    "diffuse(Tensor z, Tensor? z0, Tensor c, Tensor? eta, Tensor weight, Tensor? scale, Tensor? index, Tensor? extra, "
    "Tensor indptr, Tensor indices, int steps, int mode, int code, int keep, int[] counts) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    fake=_shapes,
    backward=_backward,
    save=_saved,
)
def diffuse(
    z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, weight: Tensor, scale: Tensor | None,
    index: Tensor | None, extra: Tensor | None, indptr: Tensor, indices: Tensor, steps: int, mode: int, code: int,
    keep: int, counts: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """``steps`` applications of the flow: last state, states between, what each step kept, points projected.

    ``weight [E]`` with ``extra [N]`` the weight of the origin, or a table ``weight [K, d]`` with ``scale``, ``index``
    and ``extra [E]`` the edges' own weights. With ``counts`` (:class:`hgde.kernels.reach.Reach`, weights of edges
    alone) each state is worked out for so many of its first rows.
    """
    state, first = pages.settle(padded(z)), None if z0 is None else padded(z0)
    path = Trajectory(state, first, c, eta, weight, scale, index, extra, indptr, indices, mode, code, counts)
    states, out = pages.empty((steps - 1, *state.shape), state.dtype), path.end(state)
    kept = pages.empty(kept_shape(keep, steps, path.rows, path.width, path.layout.num_entries), torch.float64)
    partial = torch.zeros(path.layout.num_blocks, PARTIALS, dtype=torch.float64)
    path.forward(state, states, kept, out, partial)
    projected = counted(partial, PROJECTED)
    return unpadded(out, z.shape[1]), states, kept, projected


def _gradient_shapes(
    grad: Tensor, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, weight: Tensor, scale: Tensor | None,
    index: Any, extra: Tensor | None, indptr: Any, indices: Any, states: Any, kept: Any, steps: int, mode: int,
    code: int, counts: Sequence[int], wanted: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    def shape(tensor: Tensor | None, present: bool = True) -> Tensor:
        return z.new_empty(0) if tensor is None or not present else like(tensor)

    channels = scale is not None
    weights, more = shape(weight, wanted or channels), shape(extra, wanted or not channels)
    return like(z), shape(z0, mode == RESIDUAL), like(c), shape(eta), weights, shape(scale), more


@operation(
    "diffuse_backward(Tensor grad, Tensor z, Tensor? z0, Tensor c, Tensor? eta, Tensor weight, Tensor? scale, "
    "Tensor? index, Tensor? extra, Tensor indptr, Tensor indices, Tensor states, Tensor kept, int steps, int mode, "
    "int code, int[] counts, bool wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    fake=_gradient_shapes,
)
def diffuse_backward(
    grad: Tensor, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, weight: Tensor, scale: Tensor | None,
    index: Tensor | None, extra: Tensor | None, indptr: Tensor, indices: Tensor, states: Tensor, kept: Tensor,
    steps: int, mode: int, code: int, counts: Sequence[int], wanted: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of ``z, z0, c, eta, weight, scale, extra``; those of absent or unwanted ones are empty."""
    state, first, width = padded(z), None if z0 is None else padded(z0), z.shape[1]
    path = Trajectory(state, first, c, eta, weight, scale, index, extra, indptr, indices, mode, code, counts)
    is_joined = path.starts_here and path.reverse is not None
    into = Gradients(path, state, wanted, is_joined=is_joined and steps == 1)
    partial = torch.zeros(path.layout.num_blocks, PARTIALS, dtype=torch.float64)
    g = path.backward(state, states, kept, padded(grad), into, partial)
    if path.starts_here and not is_joined:
        into.add_start(g)
    total, none = ordered_total(partial), z.new_empty(0)
    gz0 = unpadded(into.z0, width) if z0 is not None and mode == RESIDUAL else none
    geta = none if eta is None else told(total[1:4], eta)
    gextra = none if into.extra is None or extra is None else into.extra.to(extra.dtype)
    gweight, gscale = none if into.values is None else into.values, none
    if into.table is not None and into.scale is not None:
        gweight = unpadded(ordered_sum(into.table).to(weight.dtype), width)
        gscale = unpadded(into.scale, width)
    return unpadded(g, width), gz0, told(total[0], c), geta, gweight, gscale, gextra


def _advance_saved(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.plain = inputs[5:]


def _advance_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = advance_backward(grad, *ctx.saved_tensors, *ctx.plain)
    return *(g if w else None for g, w in zip(found, ctx.needs_input_grad, strict=False)), None, None


def _row_arguments(
    z: Tensor, v: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, mode: int, code: int
) -> tuple[Any, ...]:
    points = padded(z)
    first = points if z0 is None else padded(z0)
    three = (0.0, 0.0, 0.0) if eta is None else tuple(eta.tolist())
    margin = numerics.limits(z.dtype).margin
    return even_blocks(len(z)), points.shape[1], points, padded(v), first, mode, code, *three, float(c), margin


@operation(
    "advance(Tensor z, Tensor v, Tensor? z0, Tensor c, Tensor? eta, int mode, int code) -> (Tensor, Tensor)",
    fake=lambda z, v, z0, c, eta, mode, code: (like(z), z.new_empty((), dtype=torch.int64)),
    backward=_advance_gradient,
    save=_advance_saved,
)
def advance(
    z: Tensor, v: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, mode: int, code: int
) -> tuple[Tensor, Tensor]:
    """The exponential of ``v`` at ``z`` and, by ``mode``, its residual; with how many points were projected."""
    args = _row_arguments(z, v, z0, c, eta, mode, code)
    out, blocks = pages.empty_like(args[2]), args[0].numel() - 1
    partial = torch.zeros(blocks, PARTIALS, dtype=torch.float64)
    run("rows.advance", z.dtype, blocks, 8 * z.numel(), scratch(args[1]), (*args, out, partial))
    return unpadded(out, z.shape[1]), counted(partial, PROJECTED)


@operation(
    "advance_backward(Tensor grad, Tensor z, Tensor v, Tensor? z0, Tensor c, Tensor? eta, int mode, int code) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    fake=lambda grad, z, v, z0, c, eta, mode, code: (
        *(like(z), like(v), z.new_empty(0) if z0 is None else like(z0), like(c)),
        z.new_empty(0) if eta is None else like(eta),
    ),
)
def advance_backward(
    grad: Tensor, z: Tensor, v: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, mode: int, code: int
) -> tuple[Tensor, ...]:
    """Gradients of ``z, v, z0, c, eta``."""
    args = _row_arguments(z, v, z0, c, eta, mode, code)
    width, blocks = z.shape[1], args[0].numel() - 1
    gz, gv, gz0 = (pages.empty_like(args[2]) for _ in range(3))
    partial = torch.zeros(blocks, PARTIALS, dtype=torch.float64)
    gz0.zero_()
    given = (*args, padded(grad), gz, gv, gz0, partial)
    run("rows.advance_backward", z.dtype, blocks, 16 * z.numel(), scratch(args[1]), given)
    total, none = ordered_sum(partial), z.new_empty(0)
    if z0 is None and mode == RESIDUAL:
        gz += gz0
    geta = none if eta is None else total[1:4].to(eta.dtype)
    gc = total[0].to(c.dtype).reshape(c.shape)
    return unpadded(gz, width), unpadded(gv, width), none if z0 is None else unpadded(gz0, width), gc, geta
