"""Compiled tiles of the all-pairs sum: matrix products by torch, everything between them in one pass over the tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.compiled import compiled
from hgde.kernels.layout import Array
from hgde.kernels.pool import run_blocks
from hgde.kernels.scalars import artanh_ratio, artanh_ratio32, sigmoid, sigmoid32

ROWS = 256
COLUMNS = 2048


@compiled
def _affinity_rows(begin: int, end: int, score: Any, total: Any, out: Any) -> None:
    """``total_i += sum_j sigmoid(score_ij)``; with ``out`` also ``out_ij += sigmoid(score_ij) / total_i``."""
    kind = score.dtype.type
    for i in range(begin, end):
        mass, over = kind(0), kind(1) / total[i]
        for j in range(score.shape[1]):
            value = sigmoid32(score[i, j]) if score.itemsize == 4 else kind(sigmoid(score[i, j]))
            if out is not None:
                out[i, j] += value * over
            else:
                mass += value
        if out is None:
            total[i] += mass


@compiled
def _pair_rows(
    begin: int, end: int, gram: Any, weight: Any, single: bool, rows: Any, columns: Any, p_row: Any, p_col: Any,
    c: float, margin: float, close: float, sums: Any,
) -> None:  # fmt: skip
    """Turn ``gram_ij = <x_i, y_j>`` into ``s_ij`` in place; ``sums_i += (sum sigmoid, sum s, sum s spread)``.

    With ``single`` the weights are still scores of the only head, normalised at the end.
    """
    kind = gram.dtype.type
    c_, margin_, close_, zero, one, two = kind(c), kind(margin), kind(close), kind(0), kind(1), kind(2)
    n = gram.shape[1]
    for i in range(begin, end):
        b = max(one - c_ * p_row[i], margin_)
        mass, total, pushed, suspect = kind(0), kind(0), kind(0), kind(0)
        if gram.itemsize == 4:
            for j in range(n):
                spread = c_ * max(p_row[i] + p_col[j] - two * gram[i, j], kind(0))
                product = b * max(one - c_ * p_col[j], margin_)
                den = product + spread
                over = one / den
                a = sigmoid32(weight[i, j]) if single else weight[i, j]
                s = a * b * over * artanh_ratio32(spread * over, den / product)
                gram[i, j] = s
                mass += a
                total += s
                pushed += s * spread
                suspect += one if den < close_ else zero
        else:
            for j in range(n):
                spread = c_ * max(p_row[i] + p_col[j] - two * gram[i, j], kind(0))
                product = b * max(one - c_ * p_col[j], margin_)
                den = product + spread
                over = one / den
                a = sigmoid(weight[i, j]) if single else weight[i, j]
                s = a * b * over * artanh_ratio(spread * over, den / product)
                gram[i, j] = s
                mass += a
                total += s
                pushed += s * spread
                suspect += one if den < close_ else zero
        if suspect > 0:
            # Pairs close together near the boundary: the distance must come from differences after all.
            total, pushed = kind(0), kind(0)
            for j in range(n):
                product = b * max(one - c_ * p_col[j], margin_)
                spread = c_ * max(p_row[i] + p_col[j] - two * rows_dot(rows, columns, i, j), kind(0))
                if product + spread < two * close_:
                    delta = kind(0)
                    for k in range(rows.shape[1]):
                        t = columns[j, k] - rows[i, k]
                        delta += t * t
                    spread = c_ * delta
                    den = product + spread
                    a = kind(sigmoid(weight[i, j])) if single else weight[i, j]
                    gram[i, j] = kind(a * b / den * artanh_ratio(float(spread / den), float(den / product)))
                total += gram[i, j]
                pushed += gram[i, j] * spread
        sums[i, 0] += mass
        sums[i, 1] += total
        sums[i, 2] += pushed


@compiled
def rows_dot(rows: Any, columns: Any, i: int, j: int) -> Any:
    total = rows.dtype.type(0)
    for k in range(rows.shape[1]):
        total += rows[i, k] * columns[j, k]
    return total


def forward(z: Tensor, q: Tensor, k: Tensor, c: float) -> Tensor:
    """``v [N, d]`` for points ``z [N, d]`` and ``q, k [N, H, e]``."""
    with torch.no_grad():
        return _forward(z.detach().contiguous(), q.detach(), k.detach(), c)


def _forward(z: Tensor, q: Tensor, k: Tensor, c: float) -> Tensor:
    nodes, heads = q.shape[0], q.shape[1]
    queries, keys = q.transpose(0, 1).contiguous(), k.transpose(0, 1).contiguous()
    norms = z.square().sum(-1)
    margin = numerics.limits(z.dtype).margin
    close = 2.0**-10 if z.dtype == torch.float32 else 2.0**-26
    out = torch.empty_like(z)
    for a in range(0, nodes, ROWS):
        rows, p_row = z[a : a + ROWS], norms[a : a + ROWS]
        total = None if heads == 1 else _totals(queries[:, a : a + ROWS], keys)
        pull, sums = torch.zeros_like(rows), np.zeros((len(rows), 3), _numpy(z).dtype)
        for b in range(0, nodes, COLUMNS):
            columns = z[b : b + COLUMNS]
            gram = rows @ columns.T
            if total is None:
                weight = queries[0, a : a + ROWS] @ keys[0, b : b + COLUMNS].T
            else:
                weight = torch.zeros_like(gram)
                for h in range(heads):
                    score = queries[h, a : a + ROWS] @ keys[h, b : b + COLUMNS].T
                    args = (_numpy(score), total[h], _numpy(weight))
                    run_blocks(_affinity_rows, len(rows), 20 * gram.numel(), args)
            pair = (
                *(_numpy(gram), _numpy(weight), total is None, _numpy(rows), _numpy(columns)),
                *(_numpy(p_row), _numpy(norms[b : b + COLUMNS]), c, margin, close, sums),
            )
            run_blocks(_pair_rows, len(rows), 20 * gram.numel(), pair)
            pull.addmm_(gram, columns)
        found = torch.from_numpy(sums)
        conformal = (1 - c * p_row).clamp_min(margin)
        v = conformal[:, None] * (pull - found[:, 1:2] * rows) - found[:, 2:3] * rows
        out[a : a + ROWS] = v / (found[:, :1] if total is None else 1.0)
    return out


def _totals(queries: Tensor, keys: Tensor) -> Array:
    """``heads * sum_j sigmoid(q_ih · k_jh)``, ``[H, M]``."""
    heads, rows, nodes = queries.shape[0], queries.shape[1], keys.shape[1]
    total = np.zeros((heads, rows), _numpy(queries).dtype)
    for h in range(heads):
        for b in range(0, nodes, COLUMNS):
            score = queries[h] @ keys[h, b : b + COLUMNS].T
            run_blocks(_affinity_rows, rows, 20 * score.numel(), (_numpy(score), total[h], None))
    return total * heads


def _numpy(tensor: Tensor) -> Any:
    return tensor.numpy()
