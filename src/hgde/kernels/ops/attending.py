"""Steps whose attention is worked out anew at every state: a whole trajectory in one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hgde.compiler.load import prepare
from hgde.kernels.ahead import PARTS
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.sizes import PARTIALS, PROJECTED, at_width, scratch
from hgde.kernels.cpu.threads import run_together
from hgde.kernels.ops.diffusion import RESIDUAL, Gradients, Trajectory, pointer
from hgde.kernels.ops.register import LANES, counted, like, operation, ordered_total, padded, told, unpadded

KERNELS = PARTS["attending"]
GIVEN = "Tensor z, Tensor? z0, Tensor c, Tensor? eta, Tensor scoring, Tensor? edge, Tensor indptr, Tensor indices"


def prepare_for(z: Tensor, learns: bool) -> None:
    """Begin to compile what a trajectory with attention needs, and its gradient if it ``learns``."""
    prepare([at_width(name, z.shape[1]) for name in (KERNELS if learns else KERNELS[:1])], z.dtype)


class _Attending:
    """What does not change along a trajectory, as the kernels take it."""

    def __init__(
        self, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, scoring: Tensor, edge: Tensor | None,
        indptr: Tensor, indices: Tensor, mode: int, code: int, slope: float, counts: Sequence[int],
    ) -> None:  # fmt: skip
        first, none = None if z0 is None else padded(z0), z.new_empty(0)
        self.path = Trajectory(z, first, c, eta, none, None, None, None, indptr, indices, mode, code, counts)
        self.layout, self.slope, self.z = self.path.layout, slope, z
        self.heads = scoring.shape[1] // 2
        self.scoring = padded(scoring.T)
        self.edge = None if edge is None else edge.contiguous()
        self.most = self.layout.most_in_strip(self.path.width, self.path.counts)
        self.work = self.path.work + 20 * self.heads * self.layout.num_entries
        self.buffers = scratch(self.path.width, self.most) + (2 + self.heads) * self.most + LANES

    def common(self, states: Tensor, kept: Tensor) -> tuple[Any, ...]:
        """Arguments of both kernels; what belongs to a state is there twice, this one's and the next's."""
        path, layout, keeps = self.path, self.layout, kept.numel() > 0
        b = pages.empty(2 * path.rows, torch.float64)
        scores = pages.empty(2 * path.rows * 2 * self.heads, torch.float64)
        return (
            *(len(states) + 1, layout.num_blocks, path.blocks, path.rows, layout.indptr, layout.indices),
            *(layout.owners, path.width, self.z, states, b, self.heads, self.scoring, scores, self.slope),
            *(int(self.edge is not None), pointer(self.edge), self.most, path.z0, path.mode, path.code, *path.eta),
            *(path.c, path.margin, int(keeps), kept, layout.num_entries if keeps else self.most),
        )


def _shapes(
    z: Tensor, z0: Any, c: Any, eta: Any, scoring: Tensor, edge: Any, indptr: Any, indices: Tensor, steps: int,
    mode: int, code: int, slope: float, keep: bool, counts: Sequence[int],
) -> tuple[Tensor, ...]:  # fmt: skip
    width, nodes, edges = (z.shape[1] + 7) // 8 * 8, z.shape[0], indices.shape[0]
    kept = z.new_empty((steps if keep else 0, nodes * width + 2 * edges), dtype=torch.float64)
    out = z.new_empty((counts[-1] if counts else nodes, z.shape[1]))
    return out, z.new_empty((steps - 1, nodes, width)), kept, z.new_empty((), dtype=torch.int64)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:8], *output[1:3])
    ctx.plain = *inputs[8:12], inputs[13]


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    wanted = ctx.needs_input_grad
    found = attend_backward(grad, *ctx.saved_tensors, *ctx.plain, wanted[5])
    return *(g if w else None for g, w in zip(found, wanted, strict=False)), *(None,) * 8


@operation(
    f"attend({GIVEN}, int steps, int mode, int code, float slope, bool keep, int[] counts) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    fake=_shapes,
    backward=_backward,
    save=_save,
)
def attend(
    z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, scoring: Tensor, edge: Tensor | None, indptr: Tensor,
    indices: Tensor, steps: int, mode: int, code: int, slope: float, keep: bool, counts: Sequence[int],
) -> tuple[Tensor, ...]:  # fmt: skip
    """``steps`` applications of the flow: last state, states between, what each step kept, points projected.

    ``counts`` as for :func:`hgde.kernels.ops.diffusion.diffuse`.
    """
    state = padded(z)
    pass_ = _Attending(state, z0, c, eta, scoring, edge, indptr, indices, mode, code, slope, counts)
    states, out = pages.empty((steps - 1, *state.shape), state.dtype), pass_.path.end(state)
    kept = pages.empty((steps if keep else 0, state.numel() + 2 * len(indices)), torch.float64)
    blocks = pass_.layout.num_blocks
    partial = torch.zeros(blocks, PARTIALS, dtype=torch.float64)
    args = (*pass_.common(states, kept), out, partial, pass_.path.stage)
    name = at_width(KERNELS[0], z.shape[1])
    run_together(name, z.dtype, steps + 1, blocks, steps * pass_.work, pass_.buffers, args)
    return unpadded(out, z.shape[1]), states, kept, counted(partial, PROJECTED)


def _gradient_shapes(
    grad: Any, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, scoring: Tensor, edge: Tensor | None,
    *rest: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    none, wanted, mode = z.new_empty(0), rest[-1], rest[-5]
    first = none if z0 is None or mode != RESIDUAL else like(z0)
    own = like(edge) if edge is not None and wanted else none
    return like(z), first, like(c), none if eta is None else like(eta), like(scoring), own


@operation(
    f"attend_backward(Tensor grad, {GIVEN}, Tensor states, Tensor kept, int steps, int mode, int code, float slope, "
    "int[] counts, bool wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    fake=_gradient_shapes,
)
def attend_backward(
    grad: Tensor, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, scoring: Tensor, edge: Tensor | None,
    indptr: Tensor, indices: Tensor, states: Tensor, kept: Tensor, steps: int, mode: int, code: int, slope: float,
    counts: Sequence[int], wanted: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of ``z, z0, c, eta, scoring, edge``; those of absent or unwanted ones are empty."""
    state, width, none = padded(z), z.shape[1], z.new_empty(0)
    pass_ = _Attending(state, z0, c, eta, scoring, edge, indptr, indices, mode, code, slope, counts)
    layout, path, heads = pass_.layout, pass_.path, pass_.heads
    into, gz = Gradients(path, state, False, tells=True), pages.empty_like(state)
    by, edges = layout.transposed(path.rows), layout.num_entries
    columns, cuts = (layout.num_blocks, path.blocks) if counts else (by.blocks.numel() - 1, by.blocks)
    gscores, each = pages.empty(path.rows * 2 * heads, torch.float64), pages.empty(edges * heads, z.dtype)
    if counts:
        # Of rows that a step did not move, senders hear nothing.
        for left in (gz, gscores, each, into.sums, into.tell):
            left.zero_()
    gedge = torch.zeros_like(pass_.edge) if pass_.edge is not None and wanted else none
    partial = torch.zeros(layout.num_blocks, PARTIALS, dtype=torch.float64)
    lines = torch.zeros(columns, 2 * heads * path.width + 1, dtype=torch.float64)
    args = (
        *(*pass_.common(states, kept), padded(grad), into.sums, gz, into.z0, gscores, int(gedge.numel() > 0), gedge),
        *(each, lines, into.tell, partial, columns, cuts, by.start, by.rows, by.order, path.stage),
    )
    name, work = at_width(KERNELS[1], width), 3 * steps * pass_.work
    run_together(name, z.dtype, 2 * steps + 1, layout.num_blocks, work, pass_.buffers, args)
    if z0 is None and mode == RESIDUAL:
        into.add_start(gz)
    total, scored = ordered_total(partial), ordered_total(lines)
    gz0 = unpadded(into.z0, width) if z0 is not None and mode == RESIDUAL else none
    geta = none if eta is None else told(total[1:4], eta)
    gscoring = told(scored[:-1].reshape(2 * heads, path.width)[:, :width].T, scoring)
    return unpadded(gz, width), gz0, told(total[0] + scored[-1], c), geta, gscoring, gedge
