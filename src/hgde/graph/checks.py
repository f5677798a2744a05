"""Arrays that come from a file. Compiled kernels trust them, so nothing may point outside."""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.graph.features import SparseFeatures
from hgde.graph.graph import Graph

_FREE_COLUMNS = 1_000_000


def graph_problem(graph: Graph) -> str | None:
    """What is wrong with a graph, in words; ``None`` if nothing is."""
    if graph.indptr.numel() == 0:
        return "its rows do not cover its entries"
    problem = _csr_problem(graph.indptr, graph.indices, graph.indptr.numel() - 1, graph.indptr.numel() - 1)
    if problem is None and graph.weights is not None:
        weights = graph.weights
        if weights.shape != graph.indices.shape or weights.dtype != torch.float64 or not is_positive(weights):
            return "its weights are not a positive number for each edge"
    return problem


def is_positive(values: Tensor) -> bool:
    """Whether all are positive and finite."""
    return bool((torch.isfinite(values) & (values > 0)).all())


def sparse_problem(features: SparseFeatures) -> str | None:
    """What is wrong with a sparse matrix, in words; ``None`` if nothing is."""
    if features.values.shape != features.indices.shape:
        return "it has not one value for each entry"
    if features.values.is_floating_point() and not bool(torch.isfinite(features.values).all()):
        return "it holds a value that is infinite or not a number"
    if features.shape[1] > max(_FREE_COLUMNS, 100 * features.values.numel()):
        return f"{features.shape[1]:,} columns for {features.values.numel():,} entries"
    return _csr_problem(features.indptr, features.indices, *features.shape)


def _csr_problem(indptr: Tensor, indices: Tensor, rows: int, columns: int) -> str | None:
    if indptr.dtype != torch.int64 or indices.dtype != torch.int64 or indptr.dim() != 1 or indices.dim() != 1:
        return "its arrays are not whole numbers in one dimension"
    if indptr.numel() != rows + 1 or int(indptr[0]) != 0 or int(indptr[-1]) != indices.numel():
        return "its rows do not cover its entries"
    if bool((indptr[1:] < indptr[:-1]).any()):
        return "its rows overlap"
    if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < columns:
        return "an entry points outside"
    return None
