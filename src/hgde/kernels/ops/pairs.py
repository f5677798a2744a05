"""Diffusion between all pairs of nodes: tiles that both directions of a pair share, forward and backward.

Nodes are cut into runs of tiles. As in a tournament, every run meets every other once, in rounds in which no run has
two opponents: the pairs of a round write to different nodes and may run side by side, and what a node receives comes in
the order of the rounds. Runs and rounds depend on the number of nodes alone, so the result has the same bits at any
number of threads, and no sum is held twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from hgde.geometry import numerics
from hgde.kernels.cpu.sizes import TILE, pairs_scratch
from hgde.kernels.cpu.threads import run
from hgde.kernels.ops.register import like, operation, ordered_sum
from hgde.kernels.reference import NEAR_BOUNDARY

#: Widths are padded to a multiple of this.
WIDTH = 16
#: Tiles to a run, at least, and how many runs there are at most.
TILES, MOST_RUNS = 4, 32


@lru_cache(maxsize=32)
def rounds(tiles: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Rounds of pairs of runs, the first of runs with themselves; a run is known by its number."""
    count = run_count(tiles)
    games: list[tuple[tuple[int, int], ...]] = [tuple((r, r) for r in range(count))]
    seats = [*range(count), *([-1] if count % 2 else [])]
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        met = zip(seats[:half], reversed(seats[half:]), strict=True)
        games.append(tuple((min(p), max(p)) for p in met if min(p) >= 0))
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return tuple(games)


def run_count(tiles: int) -> int:
    return max(1, min(MOST_RUNS, tiles // TILES // 2 * 2))


def run_starts(tiles: int) -> list[int]:
    count = run_count(tiles)
    return [tiles * r // count for r in range(count + 1)]


@dataclass(frozen=True)
class _Side:
    """What the kernels read, in one precision: rows ``[.., N, w]`` and, for each tile, columns ``[.., w, TILE]``."""

    z: Tensor
    centred: Tensor
    q: Tensor
    k: Tensor
    zt: Tensor
    qt: Tensor
    kt: Tensor


class _Problem:
    """Nodes padded to whole tiles, and the numbers of each: ``1 - c|z|^2``, whether it is one, its run's precision."""

    def __init__(self, z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> None:
        self.given, self.c = (z, q.transpose(0, 1), k.transpose(0, 1)), float(c)
        self.count, self.heads = len(z), q.shape[1]
        self.tiles = -(-len(z) // TILE)
        self.nodes = self.tiles * TILE
        self.points = _padded(z.double(), self.nodes)
        self.squares = dot(self.points, self.points)
        margin = numerics.limits(z.dtype).margin
        free = 1 - self.c * self.squares
        self.inside = (free >= margin).double()
        self.b = free.clamp_min(margin)
        self.keep = (torch.arange(self.nodes) < len(z)).double()
        self.centre = ordered_sum(self.points) / max(len(z), 1)
        self.width, self.head_width = self.points.shape[1], -(-q.shape[2] // WIDTH) * WIDTH
        starts = run_starts(self.tiles)
        self.runs = [(starts[r], starts[r + 1]) for r in range(len(starts) - 1)]
        near = self.b < NEAR_BOUNDARY
        self.exact = [
            z.dtype == torch.float64 or bool(near[TILE * first : TILE * last].any()) for first, last in self.runs
        ]
        self._sides: dict[torch.dtype, _Side] = {}

    def side(self, dtype: torch.dtype) -> _Side:
        if dtype not in self._sides:
            z = self.points.to(dtype)
            centred = (self.points - self.centre).to(dtype)
            q, k = (_padded(x.to(dtype), self.nodes) for x in self.given[1:])
            self._sides[dtype] = _Side(z, centred, q, k, columns(z), columns(q), columns(k))
        return self._sides[dtype]

    def sums(self, *shape: int) -> Tensor:
        return torch.zeros(*shape, dtype=torch.float64)

    def visit(self, kernel: str, arguments: Any, extra: tuple[Any, ...]) -> None:
        """Run a kernel over all pairs, round by round, in single precision where no point is near the boundary."""
        scratch = pairs_scratch(self.heads)
        for games in rounds(self.tiles):
            for dtype in (torch.float32, torch.float64):
                jobs = [
                    (*self.runs[one], *self.runs[two])
                    for one, two in games
                    if (self.exact[one] or self.exact[two]) == (dtype == torch.float64)
                ]
                if not jobs:
                    continue
                work = sum((j[1] - j[0]) * (j[3] - j[2]) for j in jobs) * TILE * TILE * self.width
                close = 0.1 if dtype == torch.float32 else 0.004
                sizes = (self.nodes, self.width, self.head_width, self.heads)
                tensors = (torch.tensor(jobs, dtype=torch.int32), *sizes, *arguments(dtype), self.c, close, *extra)
                run(f"pairs.{kernel}", dtype, len(jobs), work, scratch, tensors)


def _padded(x: Tensor, nodes: int) -> Tensor:
    return functional.pad(x, (0, -x.shape[-1] % WIDTH, 0, nodes - x.shape[-2])).contiguous()


def columns(x: Tensor) -> Tensor:
    """Rows ``[.., N, w]`` as tiles of columns ``[.., N / TILE, w, TILE]``."""
    return x.unflatten(-2, (-1, TILE)).transpose(-1, -2).contiguous()


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner products of rows, added in order: torch's own sum depends on the processor."""
    return (x * y).cumsum(-1)[..., -1].contiguous() if x.shape[-1] else x.new_zeros(x.shape[:-1])


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found: tuple[Tensor, ...] = all_pairs_backward(grad, *ctx.saved_tensors)
    return found


def _shapes(z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    heads = q.shape[1]
    each = z.new_empty((len(z), heads, z.shape[1]) if heads > 1 else (0,))
    return like(z), each, z.new_empty((len(z), heads), dtype=torch.float64)


@operation(
    "all_pairs(Tensor z, Tensor q, Tensor k, Tensor c) -> (Tensor, Tensor, Tensor)",
    fake=_shapes,
    backward=_gradient,
    save=_save,
)
def all_pairs(z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """``v_i = sum_j g_ij log_{z_i}(z_j)``, see :func:`hgde.kernels.tangent_sum_global`.

    Also what the backward pass reads: the heads' own sums ``[N, H, d]`` where there are several, and ``M [N, H]``.
    """
    on = _Problem(z, q, k, c)
    mass, sums = on.sums(on.heads, on.nodes), on.sums(on.heads, 2, on.nodes)
    pull = on.sums(on.heads, on.nodes, on.width)

    def arguments(dtype: torch.dtype) -> tuple[Any, ...]:
        x = on.side(dtype)
        return x.z, x.zt, x.centred, x.q, x.qt, x.k, x.kt, on.b, on.keep

    on.visit("forward", arguments, (mass, sums, pull))
    across = on.b[:, None] * (pull - sums[:, 0, :, None] * (on.points - on.centre)) - sums[:, 1, :, None] * on.points
    each = (on.b / mass.clamp_min(1e-300))[..., None] * across
    each = each[:, : on.count, : z.shape[1]].transpose(0, 1)
    v = ordered_sum(each.transpose(0, 1)) / on.heads
    held = each.to(z.dtype).contiguous() if on.heads > 1 else z.new_empty(0)
    return v.to(z.dtype), held, mass[:, : on.count].T.contiguous()


@operation(
    "all_pairs_backward(Tensor grad, Tensor z, Tensor q, Tensor k, Tensor c, Tensor v, Tensor each, Tensor mass)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
    fake=lambda grad, z, q, k, c, v, each, mass: (like(z), like(q), like(k), like(c)),
)
def all_pairs_backward(
    grad: Tensor, z: Tensor, q: Tensor, k: Tensor, c: Tensor, v: Tensor, each: Tensor, mass: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of ``z, q, k, c`` from that of ``v``; derived in :mod:`hgde.kernels.cpu.pairs`."""
    on = _Problem(z, q, k, c)
    g = _padded(grad.double(), on.nodes)
    a = dot(g, on.points)
    held = each.transpose(0, 1) if on.heads > 1 else v[None]
    mean = functional.pad(dot(grad.double(), held.double()), (0, on.nodes - on.count)).contiguous()
    share = functional.pad(1 / (on.heads * mass.T.clamp_min(1e-300)), (0, on.nodes - on.count)).contiguous()
    sums, gz, ge = on.sums(4, on.nodes), on.sums(on.nodes, on.width), on.sums(on.nodes, on.width)
    gq, gk = (on.sums(on.heads, on.nodes, on.head_width) for _ in range(2))

    def arguments(dtype: torch.dtype) -> tuple[Any, ...]:
        x, own = on.side(dtype), g.to(dtype)
        scaled = (on.b[:, None] * g).to(dtype)
        first = (x.z, x.zt, x.centred, own, columns(own), scaled, x.q, x.qt, x.k, x.kt)
        return (*first, on.b, on.keep, a, share, mean)

    on.visit("backward", arguments, (sums, gz, ge, gq, gk))
    pulled, changed, bent, spread = sums
    bent = bent * on.inside
    total = gz - pulled[:, None] * g - 2 * on.c * bent[:, None] * on.points
    total += 2 * on.c * (changed[:, None] * (on.points - on.centre) - ge)
    for_c = ordered_sum(spread - on.squares * bent)
    for_q, for_k = (x[:, : on.count, : q.shape[2]].transpose(0, 1).to(q.dtype).contiguous() for x in (gq, gk))
    return total[: on.count, : z.shape[1]].to(z.dtype).contiguous(), for_q, for_k, for_c.to(c.dtype).reshape(c.shape)
