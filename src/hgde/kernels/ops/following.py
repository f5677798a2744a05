"""Trajectories of solvers with several stages, along edges with constant weights, as one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.compiler.load import prepare
from hgde.graph import Graph
from hgde.kernels.ahead import PARTS
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import reversed_values
from hgde.kernels.cpu.sizes import PARTIALS, PROJECTED, at_width, scratch
from hgde.kernels.cpu.threads import Given, SharedCall
from hgde.kernels.ops.diffusion import goes_both_ways, is_small
from hgde.kernels.ops.register import Array, like, operation, ordered_total, padded, told, unpadded
from hgde.kernels.ops.trajectory import RESIDUAL, Gradients, Three, Trajectory, three
from hgde.kernels.plans import Plan

KERNELS = PARTS["stages"]
"""For graphs whose edges go both ways; the gradient of others is :data:`ONE_WAY`."""
ONE_WAY = "programs.backward"
SCHEMA = (
    "Tensor z, Tensor? z0, Tensor c, Tensor? eta, Tensor weight, Tensor? extra, Tensor indptr, Tensor indices, "
    "Tensor forth, Tensor back, Tensor numbers"
)


def prepare_for(z: Tensor, graph: Graph, learns: bool) -> None:
    """Begin to compile what following a plan needs, and its gradient if it ``learns``."""
    names = (KERNELS[0], KERNELS[1] if learns and goes_both_ways(graph, channels=False) else ONE_WAY)
    prepare([at_width(name, z.shape[1]) for name in names[: 2 if learns else 1]], z.dtype)


def shape_of(plan: Plan) -> list[int]:
    """The counts of a plan, as the operations take them."""
    return [plan.phases, plan.slots, plan.gradients, plan.final, plan.final_gradient, plan.start_gradient]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:11], *output[1:3])
    ctx.plain = inputs[11:15]


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    wanted = ctx.needs_input_grad
    found = follow_backward(grad, *ctx.saved_tensors, *ctx.plain, wanted[4])
    return *(g if w else None for g, w in zip(found, wanted, strict=False)), *(None,) * 10


def _shapes(z: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    shape, counts, keep, width = rest[10], rest[13], rest[14], (z.shape[1] + 7) // 8 * 8
    out = z.new_empty((counts[-1] if counts else z.shape[0], z.shape[1]))
    kept = z.new_empty(_kept_shape(keep, shape[0], z.shape[0], width), dtype=torch.float64)
    return out, z.new_empty((shape[1], z.shape[0], width)), kept, z.new_empty((), dtype=torch.int64)


def _kept_shape(keep: bool, phases: int, rows: int, width: int) -> tuple[int, int]:
    return phases - 1 if keep else 0, rows * (width + 1)


def keeps_sums(z: Tensor, graph: Graph) -> bool:
    """Whether evaluations that learn leave their sums for the gradient."""
    return goes_both_ways(graph, channels=False) and is_small(z.numel(), graph.num_edges)


class Following:
    """A plan (:class:`hgde.kernels.plans.Plan`) from a state at one place, with calls and buffers of its own. What a
    pass made stays until the next.

    Args:
        path: from that state.
        shape: the plan's counts (:func:`shape_of`).
        plan: what the passes follow, forward and backward, and its numbers.
        keep: whether evaluations leave their sums for the gradient (for edges that go both ways).
        slots, kept: of a forward pass, where only its gradient is asked for.
        wanted: whether weights of edges have a gradient.
    """

    def __init__(
        self, path: Trajectory, shape: Sequence[int], plan: tuple[Tensor, Tensor, Tensor], keep: bool = False,
        slots: Tensor | None = None, kept: Tensor | None = None, wanted: bool = False,
    ) -> None:  # fmt: skip
        self.path, self._plan, self._wanted = path, plan, wanted
        self._phases, count, self._gradients, self._final, self._last, self._start = shape
        self.slots = pages.empty((count, *path.z.shape), path.dtype) if slots is None else slots
        kept_shape = _kept_shape(keep, self._phases, path.rows, path.width)
        self.kept = pages.empty(kept_shape, torch.float64) if kept is None else kept
        self._lines = np.zeros((path.layout.num_blocks, PARTIALS))
        self._forth: SharedCall | None = None
        self._back: SharedCall | None = None

    @property
    def nbytes(self) -> int:
        """What the forward pass leaves for the gradient."""
        return self.slots.nbytes + self.kept.nbytes

    def _common(self, plan: Tensor) -> tuple[Any, ...]:
        path, layout, b = self.path, self.path.layout, pages.empty(2 * self.path.rows, torch.float64)
        return (
            *(self._phases, layout.num_blocks, path.blocks, path.rows, layout.indptr, layout.indices, layout.owners),
            *(path.width, self.slots, b, *path.weights, *path.flow, plan, self._plan[2]),
            torch.from_numpy(self._lines),
        )

    def _prepare_forward(self) -> SharedCall:
        path, phases = self.path, self._phases
        args = (*self._common(self._plan[0]), path.stage, int(len(self.kept) > 0), self.kept)
        work, name = phases * (path.work + 16 * path.z.numel()), at_width(KERNELS[0], path.width)
        return SharedCall(name, path.dtype, phases, path.layout.num_blocks, work, scratch(path.width), args)

    def forward(self, c: float, eta: Three) -> None:
        """The last state, to ``end``."""
        if self._forth is None:
            self._forth = self._prepare_forward()
        self._lines.fill(0)
        np.copyto(self.slots[0].numpy(), self.path.z.numpy())
        self._forth(**self.path.numbers(c, eta))

    @property
    def projected(self) -> int:
        """How many points the forward pass projected, until there is a gradient."""
        return int(self._lines[:, PROJECTED].sum())

    @property
    def end(self) -> Tensor:
        """The last state of the rows that are asked for."""
        return self.slots[self._final, : self.path.num_asked]

    def _prepare_backward(self) -> SharedCall:
        path, layout, phases = self.path, self.path.layout, self._phases
        self.into = into = Gradients(path, self._wanted)
        grads = pages.empty((self._gradients, *path.z.shape), path.dtype)
        self._grads, self._arriving, self.gz = grads.numpy(), grads[self._last].numpy(), grads[self._start]
        most, kernel, edges = layout.most_in_strip(path.width), KERNELS[1], into.values
        args = (
            *(*self._common(self._plan[1]), grads, Given("sums"), into.z0, into.extra),
            *(int(edges is not None), edges),
        )
        if path.reverse is not None:
            nodes, back = pages.empty(2 * path.rows, torch.float64), reversed_values(path.weight, path.reverse)
            args += (nodes, Given("own"), back, path.stage, len(self.kept), self.kept)
        else:
            kernel, by = ONE_WAY, layout.transposed(path.rows)
            args += (Given("tell"), most, by.blocks.numel() - 1, by.blocks, by.start, by.rows, by.order)
        work = 3 * phases * (path.work + 16 * path.z.numel())
        name, buffers = at_width(kernel, path.width), scratch(path.width, most)
        return SharedCall(name, path.dtype, 2 * phases + 1, layout.num_blocks, work, buffers, args)

    def backward(self, grad: Tensor, c: float, eta: Three) -> tuple[float, Array]:
        """From the gradient of the last state, padded: those of ``c`` and ``eta``. That of the first is left at ``gz``,
        those of weights and start ``into`` what collects them."""
        if self._back is None:
            self._back = self._prepare_backward()
        else:
            self.into.clear()
        self._lines.fill(0)
        if self.path.counts:
            self._grads.fill(0)
        self._arriving[: len(grad)] = grad.numpy()
        self._back(**self.into.buffers(), **self.path.numbers(c, eta))
        if self.path.starts_here:
            self.into.add_start(self.gz)
        total = ordered_total(self._lines)
        return float(total[0]), total[1:4]


@operation(
    f"follow({SCHEMA}, int[] shape, int mode, int code, int[] counts, bool keep) -> (Tensor, Tensor, Tensor, Tensor)",
    fake=_shapes,
    backward=_backward,
    save=_save,
)
def follow(
    z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, weight: Tensor, extra: Tensor | None, indptr: Tensor,
    indices: Tensor, forth: Tensor, back: Tensor, numbers: Tensor, shape: list[int], mode: int, code: int,
    counts: Sequence[int], keep: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The last state of a plan (:class:`hgde.kernels.plans.Plan`), all its slots, sums if it is to ``keep`` them (for
    edges that go both ways), points projected.

    ``counts`` as for :func:`hgde.kernels.ops.diffusion.diffuse`, an evaluation for a step.
    """
    first = None if z0 is None else padded(z0)
    path = Trajectory(padded(z), first, weight, None, None, extra, indptr, indices, mode, code, counts)
    pass_ = Following(path, shape, (forth, back, numbers), keep)
    pass_.forward(float(c), three(eta))
    out = pass_.end[:, : z.shape[1]].clone(memory_format=torch.contiguous_format)
    return out, pass_.slots, pass_.kept, torch.tensor(pass_.projected)


def _gradient_shapes(
    grad: Any, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, weight: Tensor, extra: Tensor | None,
    *rest: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    mode, wanted = rest[-4], rest[-1]

    def shaped(tensor: Tensor | None, present: bool = True) -> Tensor:
        return z.new_empty(0) if tensor is None or not present else like(tensor)

    first = shaped(z0, mode == RESIDUAL)
    return like(z), first, like(c), shaped(eta), shaped(weight, wanted), shaped(extra)


@operation(
    f"follow_backward(Tensor grad, {SCHEMA}, Tensor slots, Tensor kept, int[] shape, int mode, int code, "
    "int[] counts, bool wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    fake=_gradient_shapes,
)
def follow_backward(
    grad: Tensor, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, weight: Tensor, extra: Tensor | None,
    indptr: Tensor, indices: Tensor, forth: Tensor, back: Tensor, numbers: Tensor, slots: Tensor, kept: Tensor,
    shape: list[int], mode: int, code: int, counts: Sequence[int], wanted: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of ``z, z0, c, eta, weight, extra``; those of absent or unwanted ones are empty."""
    first, width, none = None if z0 is None else padded(z0), z.shape[1], z.new_empty(0)
    path = Trajectory(slots[0], first, weight, None, None, extra, indptr, indices, mode, code, counts)
    pass_ = Following(path, shape, (forth, back, numbers), slots=slots, kept=kept, wanted=wanted)
    gc, three_gradients = pass_.backward(padded(grad), float(c), three(eta))
    into = pass_.into
    gz = pass_.gz[:, :width].clone(memory_format=torch.contiguous_format)
    gz0 = unpadded(into.z0, width) if z0 is not None and mode == RESIDUAL else none
    geta = none if eta is None else told(three_gradients, eta)
    gextra = none if into.extra is None or extra is None else into.extra.to(extra.dtype)
    gweight = none if into.values is None else into.values
    return gz, gz0, told(gc, c), geta, gweight, gextra
