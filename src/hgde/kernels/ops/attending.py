"""Steps whose attention is worked out anew at every state: a whole trajectory in one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.compiler.load import prepare
from hgde.kernels.ahead import PARTS
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.sizes import PARTIALS, PROJECTED, at_width, scratch
from hgde.kernels.cpu.threads import Given, SharedCall
from hgde.kernels.ops.register import LANES, Array, like, operation, ordered_total, padded, told, unpadded
from hgde.kernels.ops.trajectory import RESIDUAL, Gradients, Three, Trajectory, three

KERNELS = PARTS["attending"]
GIVEN = "Tensor z, Tensor? z0, Tensor c, Tensor? eta, Tensor scoring, Tensor? edge, Tensor indptr, Tensor indices"


def prepare_for(z: Tensor, learns: bool) -> None:
    """Begin to compile what a trajectory with attention needs, and its gradient if it ``learns``."""
    prepare([at_width(name, z.shape[1]) for name in (KERNELS if learns else KERNELS[:1])], z.dtype)


class Attending:
    """Some steps from a state at one place, with calls and buffers of its own. What a pass made stays until the next.

    Args:
        path: from that state, without weights.
        heads, edge, slope: of the attention, see :class:`hgde.kernels.AttentionRule`.
        keep: whether steps keep their sums and what is dear of their edges for the gradient.
        states, kept: of a forward pass, where only its gradient is asked for.
        wanted: whether the edges' own weights have a gradient.
    """

    def __init__(
        self, path: Trajectory, steps: int, heads: int, edge: Tensor | None, slope: float, keep: bool = False,
        states: Tensor | None = None, kept: Tensor | None = None, wanted: bool = False,
    ) -> None:  # fmt: skip
        self.path, self._steps, self._heads, self._slope = path, steps, heads, slope
        self._edge, layout = None if edge is None else edge.contiguous(), path.layout
        self.states = pages.empty((steps - 1, *path.z.shape), path.dtype) if states is None else states
        shape = (steps if keep else 0, path.z.numel() + 2 * layout.num_entries)
        self.kept = pages.empty(shape, torch.float64) if kept is None else kept
        self.gedge = torch.zeros_like(self._edge) if self._edge is not None and wanted else None
        self._most = layout.most_in_strip(path.width, path.counts)
        self._work = path.work + 20 * heads * layout.num_entries
        self._buffers = scratch(path.width, self._most) + (2 + heads) * self._most + LANES
        if states is None:
            self.end = pages.empty((path.num_asked, path.width), path.dtype)
        self._lines = np.zeros((layout.num_blocks, PARTIALS))
        self._forth: SharedCall | None = None
        self._back: SharedCall | None = None

    @property
    def nbytes(self) -> int:
        """What the forward pass leaves for the gradient."""
        return self.states.nbytes + self.kept.nbytes

    def _common(self) -> tuple[Any, ...]:
        """Arguments of both kernels; what belongs to a state is there twice, this one's and the next's."""
        path, layout, kept, heads = self.path, self.path.layout, self.kept, self._heads
        keeps = kept.numel() > 0
        b = pages.empty(2 * path.rows, torch.float64)
        scores = pages.empty(2 * path.rows * 2 * heads, torch.float64)
        return (
            *(self._steps, layout.num_blocks, path.blocks, path.rows, layout.indptr, layout.indices),
            *(layout.owners, path.width, path.z, self.states, b, heads, Given("scoring"), scores, self._slope),
            *(int(self._edge is not None), self._edge, self._most, *path.flow),
            *(int(keeps), kept, layout.num_entries if keeps else self._most),
        )

    def _prepare_forward(self) -> SharedCall:
        path, blocks, steps = self.path, self.path.layout.num_blocks, self._steps
        args = (*self._common(), self.end, torch.from_numpy(self._lines), path.stage)
        name = at_width(KERNELS[0], path.width)
        return SharedCall(name, path.dtype, steps + 1, blocks, steps * self._work, self._buffers, args)

    def forward(self, c: float, eta: Three, scoring: Tensor) -> None:
        """The last state, to ``end``."""
        if self._forth is None:
            self._forth = self._prepare_forward()
        self._lines.fill(0)
        self._forth(scoring=padded(scoring.T), **self.path.numbers(c, eta))

    @property
    def projected(self) -> int:
        """How many points the forward pass projected, until there is a gradient."""
        return int(self._lines[:, PROJECTED].sum())

    def _prepare_backward(self) -> SharedCall:
        path, layout, heads = self.path, self.path.layout, self._heads
        self.into, self.gz = Gradients(path, False, tells=True), pages.empty_like(path.z)
        by, edges = layout.transposed(path.rows), layout.num_entries
        columns, cuts = (layout.num_blocks, path.blocks) if path.counts else (by.blocks.numel() - 1, by.blocks)
        gscores, each = pages.empty(path.rows * 2 * heads, torch.float64), pages.empty(edges * heads, path.dtype)
        self._left = self.gz.numpy(), gscores.numpy(), each.numpy()
        self._scored = np.zeros((columns, 2 * heads * path.width + 1))
        args = (
            *(*self._common(), Given("grad"), Given("sums"), self.gz, self.into.z0, gscores),
            *(int(self.gedge is not None), self.gedge, each, torch.from_numpy(self._scored), Given("tell")),
            *(torch.from_numpy(self._lines), columns, cuts, by.start, by.rows, by.order, path.stage),
        )
        name, work, phases = at_width(KERNELS[1], path.width), 3 * self._steps * self._work, 2 * self._steps + 1
        return SharedCall(name, path.dtype, phases, layout.num_blocks, work, self._buffers, args)

    def backward(self, grad: Tensor, c: float, eta: Three, scoring: Tensor) -> tuple[float, Array, Tensor]:
        """From the gradient of the last state, padded: those of ``c``, ``eta`` and ``scoring``. That of the first is
        left at ``gz``, those of the start and of edges ``into`` what collects them and at ``gedge``."""
        if self._back is None:
            self._back = self._prepare_backward()
        else:
            self.into.clear()
            self._scored.fill(0)
        self._lines.fill(0)
        path, buffers = self.path, self.into.buffers()
        if path.counts:
            # Of rows that a step did not move, senders hear nothing.
            for left in (*self._left, *(buffer.numpy() for buffer in buffers.values())):
                left.fill(0)
        self._back(grad=grad, scoring=padded(scoring.T), **buffers, **path.numbers(c, eta))
        if path.starts_here:
            self.into.add_start(self.gz)
        total, scored = ordered_total(self._lines), ordered_total(self._scored)
        gscoring = told(scored[:-1].reshape(2 * self._heads, path.width)[:, : len(scoring)].T, scoring)
        return float(total[0] + scored[-1]), total[1:4], gscoring


def _path(
    z: Tensor, z0: Tensor | None, indptr: Tensor, indices: Tensor, mode: int, code: int, counts: Sequence[int]
) -> Trajectory:
    first, none = None if z0 is None else padded(z0), z.new_empty(0)
    return Trajectory(padded(z), first, none, None, None, None, indptr, indices, mode, code, counts)


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
    path = _path(z, z0, indptr, indices, mode, code, counts)
    pass_ = Attending(path, steps, scoring.shape[1] // 2, edge, slope, keep)
    pass_.forward(float(c), three(eta), scoring)
    return unpadded(pass_.end, z.shape[1]), pass_.states, pass_.kept, torch.tensor(pass_.projected)


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
    path, width, none = _path(z, z0, indptr, indices, mode, code, counts), z.shape[1], z.new_empty(0)
    pass_ = Attending(path, steps, scoring.shape[1] // 2, edge, slope, states=states, kept=kept, wanted=wanted)
    gc, three_gradients, gscoring = pass_.backward(padded(grad), float(c), three(eta), scoring)
    gz0 = unpadded(pass_.into.z0, width) if z0 is not None and mode == RESIDUAL else none
    geta = none if eta is None else told(three_gradients, eta)
    gedge = none if pass_.gedge is None else pass_.gedge
    return unpadded(pass_.gz, width), gz0, told(gc, c), geta, gscoring, gedge
