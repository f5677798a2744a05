"""Steps whose attention is worked out anew at every state: a whole trajectory in one operation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.kernels.cpu.sizes import LOG, PARTIALS, PROJECTED
from hgde.kernels.ops import attention, maps
from hgde.kernels.ops.diffusion import RESIDUAL, Gradients, Trajectory
from hgde.kernels.ops.register import like, operation, ordered_sum, padded, unpadded


def _padded_rows(scoring: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(scoring, (0, 0, 0, width - scoring.shape[0]))


class _Scores:
    """Scores and weights at a state."""

    def __init__(self, scoring: Tensor, edge: Tensor | None, indptr: Tensor, indices: Tensor, slope: float) -> None:
        self.scoring, self.heads, self.edge, self.slope = scoring, scoring.shape[1] // 2, edge, slope
        self.pattern = (indptr, indices)

    def at(self, state: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """``log_o`` of a state, and both parts of its scores."""
        tangent = maps.at_origin(state, c, None, LOG)[0]
        target, source = (part.contiguous() for part in (tangent @ self.scoring).split(self.heads, 1))
        return tangent, target, source

    def weights(self, state: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of the edges, and each row's largest score and normaliser."""
        _, target, source = self.at(state, c)
        found: tuple[Tensor, Tensor, Tensor] = attention.attention(target, source, self.edge, *self.pattern, self.slope)
        return found


def _shapes(
    z: Tensor, z0: Any, c: Any, eta: Any, scoring: Tensor, edge: Any, indptr: Any, indices: Tensor, steps: int,
    mode: int, code: int, slope: float, keep: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    width, nodes, edges = (z.shape[1] + 7) // 8 * 8, z.shape[0], indices.shape[0]
    kept = z.new_empty((steps if keep else 0, nodes * width + 2 * edges), dtype=torch.float64)
    rows = z.new_empty((steps, 2, nodes, scoring.shape[1] // 2), dtype=torch.float64)
    between = z.new_empty((steps - 1, nodes, width))
    return like(z), between, kept, z.new_empty((steps, edges)), rows, z.new_empty((), dtype=torch.int64)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:8], *output[1:5])
    ctx.plain = inputs[8:12]


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    wanted = ctx.needs_input_grad
    found = attend_backward(grad, *ctx.saved_tensors, *ctx.plain, wanted[5])
    return *(g if w else None for g, w in zip(found, wanted, strict=False)), *(None,) * 7


@operation(
    "attend(Tensor z, Tensor? z0, Tensor c, Tensor? eta, Tensor scoring, Tensor? edge, Tensor indptr, Tensor indices, "
    "int steps, int mode, int code, float slope, bool keep) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    fake=_shapes,
    backward=_backward,
    save=_save,
)
def attend(
    z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, scoring: Tensor, edge: Tensor | None, indptr: Tensor,
    indices: Tensor, steps: int, mode: int, code: int, slope: float, keep: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """``steps`` applications of the flow: last state, states between, what each step kept, its weights ``[E]``, its
    rows' largest scores and normalisers, points projected."""
    state = padded(z)
    scores = _Scores(_padded_rows(scoring, state.shape[1]), edge, indptr, indices, slope)
    first = None if z0 is None else padded(z0)
    states = state.new_empty((steps - 1, *state.shape))
    kept = torch.empty((steps if keep else 0, state.numel() + 2 * len(indices)), dtype=torch.float64)
    weights = z.new_empty((steps, len(indices)))
    rows = torch.empty((steps, 2, len(z), scores.heads), dtype=torch.float64)
    path = Trajectory(state, first, c, eta, weights[0], None, None, None, indptr, indices, mode, code)
    partial, none = torch.zeros(path.layout.num_blocks, PARTIALS, dtype=torch.float64), states[:0]
    for k in range(steps):
        weights[k], rows[k, 0], rows[k, 1] = scores.weights(state, c)
        path.weigh(weights[k])
        out = states[k] if k < steps - 1 else torch.empty_like(state)
        path.forward(state, none, kept[k] if keep else kept, out, partial)
        state = out
    return unpadded(state, z.shape[1]), states, kept, weights, rows, partial[:, PROJECTED].sum().to(torch.int64)


def _gradient_shapes(
    grad: Any, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, scoring: Tensor, edge: Tensor | None,
    *rest: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    none, wanted, mode = z.new_empty(0), rest[-1], rest[-4]
    first = none if z0 is None or mode != RESIDUAL else like(z0)
    own = like(edge) if edge is not None and wanted else none
    return like(z), first, like(c), none if eta is None else like(eta), like(scoring), own


@operation(
    "attend_backward(Tensor grad, Tensor z, Tensor? z0, Tensor c, Tensor? eta, Tensor scoring, Tensor? edge, "
    "Tensor indptr, Tensor indices, Tensor states, Tensor kept, Tensor weights, Tensor rows, int steps, int mode, "
    "int code, float slope, bool wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    fake=_gradient_shapes,
)
def attend_backward(
    grad: Tensor, z: Tensor, z0: Tensor | None, c: Tensor, eta: Tensor | None, scoring: Tensor, edge: Tensor | None,
    indptr: Tensor, indices: Tensor, states: Tensor, kept: Tensor, weights: Tensor, rows: Tensor, steps: int,
    mode: int, code: int, slope: float, wanted: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of ``z, z0, c, eta, scoring, edge``; those of absent or unwanted ones are empty."""
    state, width, none = padded(z), z.shape[1], z.new_empty(0)
    scores = _Scores(_padded_rows(scoring, state.shape[1]), edge, indptr, indices, slope)
    first = None if z0 is None else padded(z0)
    path = Trajectory(state, first, c, eta, weights[0], None, None, None, indptr, indices, mode, code)
    into = Gradients(path, state, True)
    assert into.values is not None
    partial = torch.zeros(path.layout.num_blocks, PARTIALS, dtype=torch.float64)
    gscoring, gc = torch.zeros_like(scores.scoring), torch.zeros((), dtype=torch.float64)
    gedge = torch.zeros_like(edge) if edge is not None and wanted else none
    g = padded(grad)
    for k in range(steps - 1, -1, -1):
        at = state if k == 0 else states[k - 1]
        path.weigh(weights[k])
        into.values.zero_()
        g = path.backward(at, states[:0], kept[k] if len(kept) else kept, g, into, partial)
        tangent, target, source = scores.at(at, c)
        given = (target, source, edge, indptr, indices, rows[k, 0], rows[k, 1], slope, wanted)
        gtarget, gsource, more = attention.attention_backward(into.values, *given)
        both = torch.cat([gtarget, gsource], 1)
        gscoring.addmm_(tangent.T, both)
        back, gc_scores, _ = maps.at_origin_backward(both @ scores.scoring.T, at, c, None, LOG)
        g += back
        gc += gc_scores
        if gedge.numel():
            gedge += more
    total = ordered_sum(partial)
    gz0 = unpadded(into.z0, width) if z0 is not None and mode == RESIDUAL else none
    geta = none if eta is None else total[1:4].to(eta.dtype)
    curvature = (total[0] + gc).to(c.dtype).reshape(c.shape)
    return unpadded(g, width), gz0, curvature, geta, gscoring[:width].contiguous(), gedge
