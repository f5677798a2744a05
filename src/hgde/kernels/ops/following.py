"""Trajectories of solvers with several stages, along edges with constant weights, as one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hgde.compiler.load import prepare
from hgde.graph import Graph
from hgde.kernels.ahead import PARTS
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import reversed_values
from hgde.kernels.cpu.sizes import PARTIALS, PROJECTED, at_width, scratch
from hgde.kernels.cpu.threads import lent, run_together
from hgde.kernels.ops.diffusion import RESIDUAL, Gradients, Trajectory, goes_both_ways, is_small, pointer
from hgde.kernels.ops.register import counted, like, operation, ordered_total, padded, told, unpadded
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


def _path(
    state: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, weight: Tensor, extra: Tensor | None,
    indptr: Tensor, indices: Tensor, mode: int, code: int, counts: Sequence[int],
) -> Trajectory:  # fmt: skip
    first = None if z0 is None else padded(z0)
    return Trajectory(state, first, c, eta, weight, None, None, extra, indptr, indices, mode, code, counts)


def _common(path: Trajectory, slots: Tensor, plan: Tensor, numbers: Tensor, partial: Tensor) -> tuple[Any, ...]:
    layout = path.layout
    return (
        *(layout.num_blocks, path.blocks, path.rows, layout.indptr, layout.indices, layout.owners, path.width, slots),
        *(pages.empty(2 * path.rows, torch.float64), *path.weights, path.z0, path.mode, path.code, *path.eta),
        *(path.c, path.margin, plan, numbers, partial),
    )


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
    state, (phases, count, _, final, _, _) = padded(z), shape
    slots = pages.empty((count, *state.shape), state.dtype)
    slots[0] = state
    path = _path(state, z0, c, eta, weight, extra, indptr, indices, mode, code, counts)
    blocks = path.layout.num_blocks
    partial = torch.zeros(blocks, PARTIALS, dtype=torch.float64)
    kept = pages.empty(_kept_shape(keep, phases, *state.shape), torch.float64)
    args = (phases, *_common(path, slots, forth, numbers, partial), path.stage, int(keep), kept)
    work = phases * (path.work + 16 * state.numel())
    run_together(at_width(KERNELS[0], path.width), z.dtype, phases, blocks, work, scratch(path.width), args)
    asked = counts[-1] if counts else len(z)
    out = slots[final, :asked, : z.shape[1]].clone(memory_format=torch.contiguous_format)
    return out, slots, kept, counted(partial, PROJECTED)


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
    width, (phases, _, count, _, last, start) = z.shape[1], shape
    state = slots[0]
    path = _path(state, z0, c, eta, weight, extra, indptr, indices, mode, code, counts)
    layout, into = path.layout, Gradients(path, state, wanted)
    grads = pages.empty((count, *state.shape), state.dtype)
    if counts:
        grads.numpy().fill(0)
    grads[last, : len(grad)] = padded(grad)
    partial = torch.zeros(layout.num_blocks, PARTIALS, dtype=torch.float64)
    most, kernel, edges = layout.most_in_strip(path.width), KERNELS[1], into.values
    args = (
        *(phases, *_common(path, slots, back, numbers, partial), grads, into.sums, into.z0, pointer(into.extra)),
        *(int(edges is not None), pointer(edges)),
    )
    if path.reverse is not None:
        nodes, own = pages.empty(2 * path.rows, torch.float64), lent("own", 2 * state.numel(), state.dtype)
        args += (nodes, own, reversed_values(path.weight, path.reverse), path.stage, len(kept), kept)
    else:
        kernel, by = ONE_WAY, layout.transposed(path.rows)
        args += (into.tell, most, by.blocks.numel() - 1, by.blocks, by.start, by.rows, by.order)
    work = 3 * phases * (path.work + 16 * state.numel())
    name, buffers = at_width(kernel, path.width), scratch(path.width, most)
    run_together(name, z.dtype, 2 * phases + 1, layout.num_blocks, work, buffers, args)
    if path.starts_here:
        into.add_start(grads[start])
    gz = grads[start, :, :width].clone(memory_format=torch.contiguous_format)
    total, none = ordered_total(partial), z.new_empty(0)
    gz0 = unpadded(into.z0, width) if z0 is not None and mode == RESIDUAL else none
    geta = none if eta is None else told(total[1:4], eta)
    gextra = none if into.extra is None or extra is None else into.extra.to(extra.dtype)
    gweight = none if into.values is None else into.values
    return gz, gz0, told(total[0], c), geta, gweight, gextra
