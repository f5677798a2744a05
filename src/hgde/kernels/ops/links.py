"""Log-odds of pairs by the Fermi-Dirac rule in one pass, and their gradient in one pass over the nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.ahead import PARTS
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.sizes import CHUNK, LINK_SCALARS
from hgde.kernels.cpu.threads import run
from hgde.kernels.ops.register import like, operation, ordered_total, padded, told, unpadded

KERNELS = PARTS["links"]
FLAT_KERNELS = PARTS["flat_links"]
#: Nodes to a block of the backward pass.
NODES = 64


def _ends(pairs: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """The two ends of pairs in 32 bits; refused if they are not nodes."""
    if pairs.numel():
        low, high = torch.aminmax(pairs)
        if int(low) < 0 or int(high) >= nodes:
            raise IndexError(
                f"pairs must name nodes from 0 to {nodes - 1}, found {int(low)} to {int(high)}; "
                "check that they belong to this graph"
            )
    ends = pairs.to(torch.int32)
    return ends[0].contiguous(), ends[1].contiguous()


def _of_nodes(points: Tensor, c: float, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """``B = 1 - c|z|^2`` held at the limit, ``|z|^2`` and ``1 / B``, both 0 for points held there."""
    squares = torch.empty(len(points), dtype=torch.float64)
    run("links.norms", dtype, len(points), points.numel(), 1, (points.shape[1], points, squares))
    margin = numerics.limits(dtype).margin
    free = 1 - c * squares
    inside = free >= margin
    b = free.clamp_min(margin)
    return b, squares * inside, inside / b


def _shapes(z: Tensor, pairs: Tensor, c: Tensor, r: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    count = pairs.shape[1]
    return z.new_empty(count), *(z.new_empty(count, dtype=torch.float64) for _ in range(3))


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    for_z, for_c, for_r, for_t = link_logits_backward(grad, *ctx.saved_tensors)
    return for_z, None, for_c, for_r, for_t


@operation(
    "link_logits(Tensor z, Tensor pairs, Tensor c, Tensor r, Tensor t) -> (Tensor, Tensor, Tensor, Tensor)",
    fake=_shapes,
    backward=_gradients,
    save=_save,
)
def link_logits(z: Tensor, pairs: Tensor, c: Tensor, r: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    """``(r - d^2) / t``, and ``psi``, ``delta``, ``df/dc`` of each pair, see :mod:`hgde.kernels.cpu.links`."""
    points, count = padded(z), pairs.shape[1]
    first, second = _ends(pairs, len(z))
    b, held, _ = _of_nodes(points, float(c), z.dtype)
    out = pages.empty(count, z.dtype)
    psi, across, slope = (pages.empty(count, torch.float64) for _ in range(3))
    width = points.shape[1]
    args = (count, width, first, second, points, b, held, float(c), float(r), 1 / float(t), out, psi, across, slope)
    run("links.logits", z.dtype, -(-count // CHUNK), count * width, LINK_SCALARS * CHUNK, args)
    return out, psi, across, slope


@operation(
    "link_logits_backward(Tensor grad, Tensor z, Tensor pairs, Tensor c, Tensor r, Tensor t, Tensor out, Tensor psi,"
    " Tensor across, Tensor slope) -> (Tensor, Tensor, Tensor, Tensor)",
    fake=lambda grad, z, pairs, c, r, t, out, psi, across, slope: (like(z), like(c), like(r), like(t)),
)
def link_logits_backward(
    grad: Tensor, z: Tensor, pairs: Tensor, c: Tensor, r: Tensor, t: Tensor, out: Tensor, psi: Tensor, across: Tensor,
    slope: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of ``z, c, r, t``."""
    points = padded(z)
    for_f = grad.double() * (-1 / float(t))
    _, _, bend = _of_nodes(points, float(c), z.dtype)
    gz = _around_nodes(points, pairs, bend, 8 * for_f * psi, across)
    each = zip((for_f * slope, -for_f, for_f * out), (c, r, t), strict=True)
    return unpadded(gz, z.shape[1]), *(told(ordered_total(terms.numpy()), to) for terms, to in each)


def _around_nodes(points: Tensor, pairs: Tensor, bend: Tensor, weight: Tensor, across: Tensor) -> Tensor:
    """What the pairs around each node add up to, ``[N, width]``."""
    nodes, width, count = *points.shape, pairs.shape[1]
    first, second = _ends(pairs, nodes)
    start = torch.empty(nodes + 1, dtype=torch.int32)
    pair, other = (pages.empty(2 * count, torch.int32) for _ in range(2))
    run("links.around", points.dtype, 1, 0, 1, (nodes, count, first, second, start, pair, other))
    found = pages.empty_like(points)
    args = (nodes, NODES, width, start, pair, other, points, bend, weight, across, found)
    run("links.gradient", points.dtype, -(-nodes // NODES), 2 * count * width, width, args)
    return found


def _save_points(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradient_of_points(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return pair_squares_backward(grad, *ctx.saved_tensors), None


@operation(
    "pair_squares(Tensor z, Tensor pairs) -> Tensor",
    fake=lambda z, pairs: z.new_empty(pairs.shape[1]),
    backward=_gradient_of_points,
    save=_save_points,
)
def pair_squares(z: Tensor, pairs: Tensor) -> Tensor:
    """``|z_i - z_j|^2`` of each pair."""
    points, count = padded(z), pairs.shape[1]
    first, second = _ends(pairs, len(z))
    out, width = pages.empty(count, z.dtype), points.shape[1]
    run("links.squares", z.dtype, -(-count // CHUNK), count * width, 1, (count, width, first, second, points, out))
    return out


@operation("pair_squares_backward(Tensor grad, Tensor z, Tensor pairs) -> Tensor", fake=lambda grad, z, pairs: like(z))
def pair_squares_backward(grad: Tensor, z: Tensor, pairs: Tensor) -> Tensor:
    points = padded(z)
    no_bend, no_length = torch.zeros(len(z), dtype=torch.float64), torch.zeros(pairs.shape[1], dtype=torch.float64)
    return unpadded(_around_nodes(points, pairs, no_bend, 2 * grad.double(), no_length), z.shape[1])
