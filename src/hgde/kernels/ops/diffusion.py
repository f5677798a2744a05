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
from hgde.kernels.cpu.layout import even_blocks, layout_of, reversed_values
from hgde.kernels.cpu.sizes import ELU, IDENTITY, LEAKY_RELU, PARTIALS, PROJECTED, RELU, TANH, at_width, scratch
from hgde.kernels.cpu.threads import Given, SharedCall, run
from hgde.kernels.ops.register import (
    Array,
    counted,
    like,
    operation,
    ordered_sum,
    ordered_total,
    padded,
    told,
    unpadded,
)
from hgde.kernels.ops.trajectory import RESIDUAL, Gradients, Three, Trajectory, three

#: A step keeps its sums and what is dear of its edges if they take no more than this; else they are worked out again.
KEEP_BYTES = 2_000_000
NOTHING, LAST, ALL, ALL_AND_EDGES = range(4)
"""What is kept for the gradient besides states: the last step's sums, those of all, or with them numbers of edges."""
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


class Steps:
    """Some steps from a state at one place, with calls and buffers of its own. What a pass made stays until the next.

    Args:
        path: from that state.
        keep: what steps keep for the gradient.
        states, kept: of a forward pass, where only its gradient is asked for.
        wanted: whether weights of edges have a gradient.
    """

    def __init__(
        self, path: Trajectory, steps: int, keep: int = NOTHING, states: Tensor | None = None,
        kept: Tensor | None = None, wanted: bool = False,
    ) -> None:  # fmt: skip
        self.path, self._steps, self._wanted = path, steps, wanted
        self.states = pages.empty((steps - 1, *path.z.shape), path.dtype) if states is None else states
        shape = kept_shape(keep, steps, path.rows, path.width, path.layout.num_entries)
        self.kept = pages.empty(shape, torch.float64) if kept is None else kept
        if states is None:
            self.end = pages.empty((path.num_asked, path.width), path.dtype)
        self._lines = np.zeros((path.layout.num_blocks, PARTIALS))
        self._forth: SharedCall | None = None
        self._back: SharedCall | None = None

    @property
    def nbytes(self) -> int:
        """What the forward pass leaves for the gradient."""
        return self.states.nbytes + self.kept.nbytes

    def _common(self, size: int, keep: int, apart: int) -> tuple[Any, ...]:
        path, layout, kept = self.path, self.path.layout, self.kept
        b = pages.empty(size * path.rows, torch.float64)
        return (
            *(self._steps, layout.num_blocks, path.blocks, path.rows, layout.indptr, layout.indices, layout.owners),
            *(path.width, path.z, self.states, b, *path.weights, *path.flow, keep, kept, kept.shape[1], apart),
        )

    def _prepare_forward(self) -> SharedCall:
        path, kept, steps = self.path, self.kept, self._steps
        apart = (kept.shape[1] - path.z.numel() - path.rows) // 2
        args = (*self._common(2, len(kept), apart), self.end, torch.from_numpy(self._lines))
        if not path.channels:
            args += (path.stage,)
        name, blocks = at_width(_KERNELS[path.channels][0], path.width), path.layout.num_blocks
        return SharedCall(name, path.dtype, steps + 1, blocks, steps * path.work, scratch(path.width), args)

    def forward(self, c: float, eta: Three) -> None:
        """The last state, to ``end``."""
        if self._forth is None:
            self._forth = self._prepare_forward()
        self._lines.fill(0)
        self._forth(**self.path.numbers(c, eta))

    @property
    def projected(self) -> int:
        """How many points the forward pass projected, until there is a gradient."""
        return int(self._lines[:, PROJECTED].sum())

    def _prepare_backward(self) -> SharedCall:
        path, layout, kept, steps = self.path, self.path.layout, self.kept, self._steps
        is_joined = path.starts_here and path.reverse is not None
        self._adds_start = path.starts_here and not is_joined
        self.into = into = Gradients(path, self._wanted, is_joined=is_joined and steps == 1)
        self.gz = pages.empty_like(path.z)
        keep, apart = len(kept), layout.num_entries
        if path.reverse is None and kept.shape[1] == path.z.numel() + path.rows:
            keep, apart = 0, layout.most_in_strip(path.width)
        told, kernel = into.values, _KERNELS[path.channels][1]
        given: tuple[Any, ...] = (into.extra,)
        if path.channels:
            assert into.table is not None
            told = into.extra
            group = -(-layout.num_blocks // into.copies)
            given = (into.scale, into.table, into.table[0].numel(), group)
        args = (*self._common(1, keep, apart), Given("grad"), Given("sums"), self.gz, into.z0, *given)
        args += (int(told is not None), told)
        partial = torch.from_numpy(self._lines)
        if path.reverse is not None:
            kernel, nodes = MUTUAL, pages.empty(2 * path.rows, torch.float64)
            back = reversed_values(path.weight, path.reverse)
            args += (nodes, partial, Given("own"), back, int(path.starts_here), path.stage)
        else:
            by = layout.transposed(path.rows)
            args += (Given("tell"), partial, by.blocks.numel() - 1, by.blocks, by.start, by.rows, by.order)
        buffers = scratch(path.width, layout.most_in_strip(path.width, path.counts))
        name, work = at_width(kernel, path.width), 3 * steps * path.work
        return SharedCall(name, path.dtype, 2 * steps + 1, layout.num_blocks, work, buffers, args)

    def backward(self, grad: Tensor, c: float, eta: Three) -> tuple[float, Array]:
        """From the gradient of the last state, padded: those of ``c`` and ``eta``. That of the first is left at ``gz``,
        those of weights and start ``into`` what collects them."""
        if self._back is None:
            self._back = self._prepare_backward()
        else:
            self.into.clear()
        self._lines.fill(0)
        self._back(grad=grad, **self.into.buffers(), **self.path.numbers(c, eta))
        if self._adds_start:
            self.into.add_start(self.gz)
        total = ordered_total(self._lines)
        return float(total[0]), total[1:4]


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
    path = Trajectory(state, first, weight, scale, index, extra, indptr, indices, mode, code, counts)
    pass_ = Steps(path, steps, keep)
    pass_.forward(float(c), three(eta))
    return unpadded(pass_.end, z.shape[1]), pass_.states, pass_.kept, torch.tensor(pass_.projected)


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
    path = Trajectory(state, first, weight, scale, index, extra, indptr, indices, mode, code, counts)
    pass_ = Steps(path, steps, states=states, kept=kept, wanted=wanted)
    gc, three_gradients = pass_.backward(padded(grad), float(c), three(eta))
    into, none = pass_.into, z.new_empty(0)
    gz0 = unpadded(into.z0, width) if z0 is not None and mode == RESIDUAL else none
    geta = none if eta is None else told(three_gradients, eta)
    gextra = none if into.extra is None or extra is None else into.extra.to(extra.dtype)
    gweight, gscale = none if into.values is None else into.values, none
    if into.table is not None and into.scale is not None:
        gweight = unpadded(ordered_sum(into.table).to(weight.dtype), width)
        gscale = unpadded(into.scale, width)
    return unpadded(pass_.gz, width), gz0, told(gc, c), geta, gweight, gscale, gextra


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
    margin = numerics.limits(z.dtype).margin
    return even_blocks(len(z)), points.shape[1], points, padded(v), first, mode, code, *three(eta), float(c), margin


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
