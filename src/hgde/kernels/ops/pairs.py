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

from hgde.geometry import numerics
from hgde.kernels.cpu.sizes import TILE, pairs_scratch
from hgde.kernels.cpu.threads import run
from hgde.kernels.ops.register import like, operation, ordered_sum
from hgde.kernels.reference import NEAR_BOUNDARY

#: Widths are padded to a multiple of this.
WIDTH = 16
#: Tiles to a run, at least, and how many runs there are at most.
TILES, MOST_RUNS = 4, 32
#: Below this ``w`` the logarithm is a series, which has as many terms for either precision.
CLOSE = {torch.float32: 0.1, torch.float64: 0.004}


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


@lru_cache(maxsize=32)
def one_way_rounds(tiles: int, sources: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Rounds in which each of ``n`` runs of rows meets each of ``n`` runs of sources, numbered from ``n`` on."""
    count = max(1, min(tiles, sources, MOST_RUNS // 4))
    return tuple(tuple((r, count + (r + turn) % count) for r in range(count)) for turn in range(count))


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
    """Nodes padded to whole tiles and what is known of each; rows first, then sources if these are others."""

    def __init__(self, z: Tensor, q: Tensor, y: Tensor | None, k: Tensor, c: Tensor) -> None:
        self.c, self.mutual = float(c), y is None
        self.count, self.heads = len(z), q.shape[1]
        tiles, others = -(-len(z) // TILE), 0 if y is None else -(-len(y) // TILE)
        self.rows, self.nodes = tiles * TILE, (tiles + others) * TILE
        q, k = q.transpose(0, 1).double(), k.transpose(0, 1).double()
        self.points = self.laid(z.double(), None if y is None else y.double())
        self.queries = self.laid(q, None)
        self.keys = self.laid(k, None) if self.mutual else self.laid(None, k)
        self.squares = dot(self.points, self.points)
        margin = numerics.limits(z.dtype).margin
        free = 1 - self.c * self.squares
        self.inside = (free >= margin).double()
        self.b = free.clamp_min(margin)
        self.keep = torch.zeros_like(free)
        self.keep[: len(z)] = 1
        self.keep[self.rows : self.rows + (0 if y is None else len(y))] = 1
        self.centre = ordered_sum(self.points) / max(float(self.keep.sum()), 1.0)
        self.width, self.head_width = self.points.shape[1], self.queries.shape[2]
        self.rounds = rounds(tiles) if self.mutual else one_way_rounds(tiles, others)
        if self.mutual:
            self.runs = _cut(0, tiles, run_count(tiles))
        else:
            count = len(self.rounds)
            self.runs = _cut(0, tiles, count) + _cut(tiles, others, count)
        near = self.b < NEAR_BOUNDARY
        self.exact = [
            z.dtype == torch.float64 or bool(near[TILE * first : TILE * last].any()) for first, last in self.runs
        ]
        self._sides: dict[torch.dtype, _Side] = {}

    def laid(self, rows: Tensor | None, sources: Tensor | None) -> Tensor:
        """Numbers of rows and of sources in their places ``[.., nodes, w]``, zeros elsewhere, widths padded."""
        given = rows if rows is not None else sources
        assert given is not None
        out = given.new_zeros(*given.shape[:-2], self.nodes, -(-given.shape[-1] // WIDTH) * WIDTH)
        if rows is not None:
            out[..., : rows.shape[-2], : rows.shape[-1]] = rows
        if sources is not None:
            out[..., self.rows : self.rows + sources.shape[-2], : sources.shape[-1]] = sources
        return out

    def side(self, dtype: torch.dtype) -> _Side:
        if dtype not in self._sides:
            z, q, k = (x.to(dtype) for x in (self.points, self.queries, self.keys))
            centred = (self.points - self.centre).to(dtype)
            self._sides[dtype] = _Side(z, centred, q, k, columns(z), columns(q), columns(k))
        return self._sides[dtype]

    def sums(self, *shape: int) -> Tensor:
        return torch.zeros(*shape, dtype=torch.float64)

    def visit(self, kernel: str, arguments: Any, extra: tuple[Any, ...]) -> None:
        """Run a kernel over all pairs, round by round, in single precision where no point is near the boundary."""
        scratch = pairs_scratch(self.heads)
        sizes = (self.nodes, self.width, self.head_width, self.heads)
        given: dict[torch.dtype, tuple[Any, ...]] = {}
        for games in self.rounds:
            for dtype in (torch.float32, torch.float64):
                jobs = [
                    (*self.runs[one], *self.runs[two])
                    for one, two in games
                    if (self.exact[one] or self.exact[two]) == (dtype == torch.float64)
                ]
                if not jobs:
                    continue
                work = sum((j[1] - j[0]) * (j[3] - j[2]) for j in jobs) * TILE * TILE * self.width
                if dtype not in given:
                    given[dtype] = (*sizes, *arguments(dtype), self.c, CLOSE[dtype], int(self.mutual), *extra)
                each = (torch.tensor(jobs, dtype=torch.int32), *given[dtype])
                run(f"pairs.{kernel}", dtype, len(jobs), work, scratch, each)


def _cut(first: int, tiles: int, count: int) -> list[tuple[int, int]]:
    """``tiles`` tiles from ``first`` on in ``count`` runs."""
    return [(first + tiles * r // count, first + tiles * (r + 1) // count) for r in range(count)]


def columns(x: Tensor) -> Tensor:
    """Rows ``[.., N, w]`` as tiles of columns ``[.., N / TILE, w, TILE]``."""
    return x.unflatten(-2, (-1, TILE)).transpose(-1, -2).contiguous()


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner products of rows, added in order: torch's own sum depends on the processor."""
    return (x * y).cumsum(-1)[..., -1].contiguous() if x.shape[-1] else x.new_zeros(x.shape[:-1])


def _parts(z: Tensor, heads: int) -> int:
    """How many numbers of their dtype keep a head's sums in double precision, beside ``v``, which is one head's own."""
    return (2 if z.dtype == torch.float32 else 1) - (1 if heads == 1 else 0)


def _keep(each: Tensor, v: Tensor) -> Tensor:
    rounded = each.to(v.dtype)
    rest = (each - rounded).to(v.dtype)
    parts = [*([] if len(each) == 1 else [rounded]), *([rest] if v.dtype == torch.float32 else [])]
    return torch.stack(parts) if parts else v.new_empty(0, *each.shape)


def _restore(kept: Tensor, v: Tensor, heads: int) -> Tensor:
    """The heads' sums ``[H, N, d]`` in double precision: rounded, they would spoil ``h_ij`` less its mean."""
    parts = kept.double()
    return (v.double() + ordered_sum(parts)) if heads == 1 else ordered_sum(parts)


def _shapes(z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    heads = q.shape[1]
    return like(z), z.new_empty(_parts(z, heads), heads, *z.shape), z.new_empty((len(z), heads), dtype=torch.float64)


@dataclass(frozen=True)
class Gathered:
    """What rows have from some sources, of each head and not yet divided: ``pull [H, n, d]`` and ``mass [H, n]``.

    What they have from others is added to it; ``b [n]`` is the rows' own.
    """

    pull: Tensor
    mass: Tensor
    b: Tensor

    def __add__(self, other: Gathered) -> Gathered:
        return Gathered(self.pull + other.pull, self.mass + other.mass, self.b)

    def divided(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """``v [n, d]``, what it leaves of the heads' own sums, and ``M [n, H]``."""
        each = (self.b / self.mass.clamp_min(1e-300))[..., None] * self.pull
        v = (ordered_sum(each) / len(each)).to(dtype)
        return v, _keep(each, v), self.mass.T.contiguous()


def gather_pairs(z: Tensor, q: Tensor, y: Tensor | None, k: Tensor, c: Tensor) -> Gathered:
    """What rows ``z`` with queries ``q`` have from sources ``y`` with keys ``k``; from one another without ``y``."""
    on = _Problem(z, q, y, k, c)
    mass, sums = on.sums(on.heads, on.nodes), on.sums(on.heads, 2, on.nodes)
    pull = on.sums(on.heads, on.nodes, on.width)

    def arguments(dtype: torch.dtype) -> tuple[Any, ...]:
        x = on.side(dtype)
        return x.z, x.zt, x.centred, x.q, x.qt, x.k, x.kt, on.b, on.keep

    on.visit("forward", arguments, (mass, sums, pull))
    across = on.b[:, None] * (pull - sums[:, 0, :, None] * (on.points - on.centre)) - sums[:, 1, :, None] * on.points
    return Gathered(across[:, : on.count, : z.shape[1]], mass[:, : on.count], on.b[: on.count])


def pair_gradients(
    grad: Tensor, z: Tensor, q: Tensor, y: Tensor | None, k: Tensor, c: Tensor, v: Tensor, kept: Tensor, mass: Tensor
) -> tuple[Tensor, ...]:
    """What pairs of rows and sources add to the gradients of ``z, q, y, k, c`` in double precision; without ``y`` there
    is none of it.

    ``v``, ``kept`` and ``mass`` are those of all sources: what some give is added to what others do.
    """
    on = _Problem(z, q, y, k, c)
    g = on.laid(grad.double(), None)
    a = dot(g, on.points)
    mean = on.laid(dot(grad.double(), _restore(kept, v, on.heads))[..., None], None)[..., 0].contiguous()
    share = on.laid((1 / (on.heads * mass.T.clamp_min(1e-300)))[..., None], None)[..., 0].contiguous()
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
    for_c = ordered_sum(spread - on.squares * bent).reshape(c.shape)
    found = _taken(total, 0, z), _taken(gq, 0, q)
    if y is None:
        return *found, _taken(gk, 0, k), for_c
    return *found, _taken(total, on.rows, y), _taken(gk, on.rows, k), for_c


def _taken(x: Tensor, first: int, like_this: Tensor) -> Tensor:
    """The part of padded rows ``[.., nodes, w]`` that belongs to a tensor ``[n, .., w]``."""
    part = x[..., first : first + like_this.shape[0], : like_this.shape[-1]]
    return part if like_this.dim() == 2 else part.transpose(0, 1)


def _rounded(gradients: tuple[Tensor, ...], dtype: torch.dtype) -> tuple[Tensor, ...]:
    return tuple(gradient.to(dtype).contiguous() for gradient in gradients)


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _all_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found: tuple[Tensor, ...] = all_pairs_backward(grad, *ctx.saved_tensors)
    return found


def _some_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found: tuple[Tensor, ...] = some_pairs_backward(grad, *ctx.saved_tensors)
    return found


@operation(
    "all_pairs(Tensor z, Tensor q, Tensor k, Tensor c) -> (Tensor, Tensor, Tensor)",
    fake=_shapes,
    backward=_all_gradients,
    save=_save,
)
def all_pairs(z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """``v_i = sum_j g_ij log_{z_i}(z_j)``, see :func:`hgde.kernels.tangent_sum_global`.

    Also what the backward pass reads: what ``v`` leaves of the heads' own sums, and ``M [N, H]``.
    """
    return gather_pairs(z, q, None, k, c).divided(z.dtype)


@operation(
    "all_pairs_backward(Tensor grad, Tensor z, Tensor q, Tensor k, Tensor c, Tensor v, Tensor kept, Tensor mass)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
    fake=lambda grad, z, q, k, c, v, kept, mass: (like(z), like(q), like(k), like(c)),
)
def all_pairs_backward(
    grad: Tensor, z: Tensor, q: Tensor, k: Tensor, c: Tensor, v: Tensor, kept: Tensor, mass: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of ``z, q, k, c`` from that of ``v``; derived in :mod:`hgde.kernels.cpu.pairs`."""
    return _rounded(pair_gradients(grad, z, q, None, k, c, v, kept, mass), z.dtype)


@operation(
    "some_pairs(Tensor z, Tensor q, Tensor y, Tensor k, Tensor c) -> (Tensor, Tensor, Tensor)",
    fake=lambda z, q, y, k, c: _shapes(z, q, k, c),
    backward=_some_gradients,
    save=_save,
)
def some_pairs(z: Tensor, q: Tensor, y: Tensor, k: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """:func:`all_pairs` with the sum over other points ``y [m, d]`` with keys ``k [m, H, e]``."""
    return gather_pairs(z, q, y, k, c).divided(z.dtype)


@operation(
    "some_pairs_backward(Tensor grad, Tensor z, Tensor q, Tensor y, Tensor k, Tensor c, Tensor v, Tensor kept,"
    " Tensor mass) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    fake=lambda grad, z, q, y, k, c, v, kept, mass: (like(z), like(q), like(y), like(k), like(c)),
)
def some_pairs_backward(
    grad: Tensor, z: Tensor, q: Tensor, y: Tensor, k: Tensor, c: Tensor, v: Tensor, kept: Tensor, mass: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of ``z, q, y, k, c``."""
    return _rounded(pair_gradients(grad, z, q, y, k, c, v, kept, mass), z.dtype)
