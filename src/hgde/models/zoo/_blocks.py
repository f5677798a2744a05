"""All pairs of nodes in blocks of rows: memory linear in the nodes, each block worked out again for the gradient."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hgde.randomness import generator

NUMBERS = 4_000_000
"""How many entries of the table of all pairs exist at once."""


def by_rows(function: Callable[..., Tensor], rows: Tensor, *others: Tensor) -> Tensor:
    """``function(rows_block, *others)`` for blocks of ``rows``, joined; at most :data:`NUMBERS` pairs at once."""
    size = max(1, NUMBERS // max(1, rows.shape[0]))
    if rows.shape[0] <= size or not torch.is_grad_enabled():
        return torch.cat([function(block, *others) for block in rows.split(size)])
    return torch.cat([checkpoint(function, block, *others, use_reentrant=False) for block in rows.split(size)])


def dropout_seed(device: torch.device) -> int:
    """A seed for the dropout inside one pass over blocks, which must be the same when a block is worked out again."""
    return int(torch.randint(2**62, (), generator=generator(), device=device))
