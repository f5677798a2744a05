"""Sparse features times a matrix, with dropout on the stored values; nothing is densified."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from hgde import randomness
from hgde.graph import SparseFeatures
from hgde.kernels.backend import Backend, use_fused


def drop_values(values: Tensor, p: float, generator: torch.Generator | None = None) -> Tensor:
    """Each value set to zero with probability ``p``, the rest divided by ``1 - p``."""
    if generator is None:
        return functional.dropout(values, p)
    keep = torch.rand(values.shape, generator=generator, device=values.device) >= p
    return values * keep / (1 - p) if p < 1 else torch.zeros_like(values)


def sparse_matmul(
    features: SparseFeatures,
    weight: Tensor,
    dropout: float = 0.0,
    training: bool = False,
    generator: torch.Generator | None = None,
    backend: Backend = "auto",
) -> Tensor:
    """``dropout(features) @ weight``: ``[N, F] x [F, d] -> [N, d]``, differentiable in ``weight``.

    Cost ``nnz d`` forward and backward. The backward pass gathers over the transpose, which is worked out once per
    pattern, so its result does not depend on the number of threads.
    """
    if weight.dim() != 2 or weight.shape[0] != features.shape[1]:
        raise ValueError(f"weight must be [{features.shape[1]}, width] for these features, got {list(weight.shape)}")
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout is a probability between 0 and 1, got {dropout}")
    generator = randomness.generator() if generator is None else generator
    values = features.values
    drops = training and dropout > 0
    if not values.requires_grad and use_fused(backend, values, weight):
        from hgde.kernels import fused_sparse

        kept = fused_sparse.drop(values, dropout, generator) if drops else values
        return fused_sparse.matmul(features, kept, weight)
    if drops:
        values = drop_values(values, dropout, generator)
    gathered = values[:, None] * weight[features.indices]
    return weight.new_zeros(features.shape[0], weight.shape[1]).index_add(0, features.rows, gathered)
