"""Diffusion between all pairs of nodes in tiles: compiled forward, one tile of plain torch at a time backward.

Tiles depend on the number of nodes alone, each runs on one thread, and their sums are added in order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels import reference
from hgde.kernels.cpu.load import function
from hgde.kernels.cpu.threads import REAL, buffer, run_pieces
from hgde.kernels.ops.register import like, operation, padded

ROWS = 128
COLUMNS = 2048
_SCRATCH = 9 * 64


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found: tuple[Tensor, ...] = all_pairs_backward(grad, *ctx.saved_tensors)
    return found


@operation(
    "all_pairs(Tensor z, Tensor q, Tensor k, Tensor c) -> Tensor",
    fake=lambda z, q, k, c: like(z),
    backward=_gradient,
    save=_save,
)
def all_pairs(z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> Tensor:
    """``v_i = sum_j g_ij log_{z_i}(z_j)``, see :func:`hgde.kernels.tangent_sum_global`."""
    points = padded(z)
    queries, keys = q.transpose(0, 1).contiguous(), k.transpose(0, 1).contiguous()
    squares = points.double().square().sum(-1)
    margin = numerics.limits(z.dtype).margin
    b = (1 - float(c) * squares).clamp_min(margin)
    out = torch.empty_like(points)
    count = -(-len(z) // ROWS)

    def piece(index: int) -> None:
        with torch.no_grad():
            _tile(
                slice(index * ROWS, min((index + 1) * ROWS, len(z))), points, queries, keys, squares, b, float(c), out
            )

    run_pieces(piece, count)
    return out[:, : z.shape[1]].contiguous()


def _kernel(name: str, like_rows: Tensor, rows: int, *args: Any) -> None:
    plain = (a.data_ptr() if isinstance(a, Tensor) else a for a in args)
    function(name, REAL[like_rows.dtype])(0, rows, buffer(_SCRATCH), *plain)


def _tile(
    part: slice, z: Tensor, queries: Tensor, keys: Tensor, squares: Tensor, b: Tensor, c: float, out: Tensor
) -> None:
    heads, nodes = queries.shape[0], len(z)
    rows, own = z[part], queries[:, part]
    close = 2.0**-10 if z.dtype == torch.float32 else 2.0**-26
    mass = None if heads == 1 else _masses(own, keys)
    pull, sums = torch.zeros_like(rows), torch.zeros(len(rows), 3, dtype=torch.float64)
    for start in range(0, nodes, COLUMNS):
        columns = z[start : start + COLUMNS]
        gram = rows @ columns.T
        if mass is None:
            weight = own[0] @ keys[0, start : start + COLUMNS].T
        else:
            weight = torch.zeros_like(gram)
            for h in range(heads):
                score = own[h] @ keys[h, start : start + COLUMNS].T
                _kernel("pairs.affinity", z, len(rows), len(columns), score, mass[h], 1 / heads, 1, weight)
        _kernel(
            *(
                "pairs.pair_rows",
                z,
                len(rows),
                len(columns),
                z.shape[1],
                gram,
                weight,
                int(mass is None),
                rows,
                columns,
            ),
            *(squares[part], b[part], squares[start:], b[start:], c, close, sums),
        )
        pull.addmm_(gram, columns)
    own_points = rows.double()
    v = b[part, None] * (pull - sums[:, 1:2] * own_points) - sums[:, 2:3] * own_points
    out[part] = (v / sums[:, :1] if mass is None else v).to(z.dtype)


def _masses(queries: Tensor, keys: Tensor) -> Tensor:
    """``sum_j sigmoid(q_ih · k_jh)``, ``[H, M]``."""
    heads, rows, nodes = queries.shape[0], queries.shape[1], keys.shape[1]
    total = torch.zeros(heads, rows, dtype=torch.float64)
    for h in range(heads):
        for start in range(0, nodes, COLUMNS):
            score = queries[h] @ keys[h, start : start + COLUMNS].T
            _kernel("pairs.affinity", score, rows, score.shape[1], score, total[h], 1.0, 0, 0)
    return total


@operation(
    "all_pairs_backward(Tensor grad, Tensor z, Tensor q, Tensor k, Tensor c) -> (Tensor, Tensor, Tensor, Tensor)",
    fake=lambda grad, z, q, k, c: (like(z), like(q), like(k), like(c)),
)
def all_pairs_backward(grad: Tensor, z: Tensor, q: Tensor, k: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """Gradients of ``z, q, k, c``: one tile of rows at a time is worked out again and differentiated."""
    tile = reference.tile_rows(len(z))
    count = -(-len(z) // tile)
    leaves = [tensor.detach() for tensor in (z, k, c)]
    totals = [torch.zeros_like(tensor, dtype=torch.float64) for tensor in (z, q, k, c)]
    wave = max(torch.get_num_threads(), 1)
    for first in range(0, count, wave):
        found: dict[int, tuple[Tensor, ...]] = {}

        def piece(index: int, first: int = first, found: dict[int, tuple[Tensor, ...]] = found) -> None:
            part = slice((first + index) * tile, (first + index + 1) * tile)
            given = [
                tensor.requires_grad_()
                for tensor in (*(leaf.detach() for leaf in leaves), z[part].detach(), q[part].detach())
            ]
            with torch.enable_grad():
                out = reference.global_rows(*given)
            found[index] = torch.autograd.grad(out, given, grad[part])

        run_pieces(piece, min(wave, count - first))
        for index in range(len(found)):
            part = slice((first + index) * tile, (first + index + 1) * tile)
            for_z, for_k, for_c, for_rows, for_q = found[index]
            totals[0] += for_z
            totals[0][part] += for_rows
            totals[1][part] += for_q
            totals[2] += for_k
            totals[3] += for_c
    return tuple(total.to(tensor.dtype) for total, tensor in zip(totals, (z, q, k, c), strict=True))
