"""Arrays that come from a file. Compiled kernels trust them, so nothing may point outside."""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.graph.features import SparseFeatures
from hgde.graph.graph import Graph


def graph_problem(graph: Graph) -> str | None:
    """What is wrong with a graph, in words; ``None`` if nothing is."""
    if graph.indptr.numel() == 0:
        return "its rows do not cover its entries"
    problem = _csr_problem(graph.indptr, graph.indices, graph.indptr.numel() - 1, graph.indptr.numel() - 1)
    if problem is None and graph.weights is not None:
        weights = graph.weights
        if weights.shape != graph.indices.shape or weights.dtype != torch.float64 or not bool((weights > 0).all()):
            return "its weights are not a positive number for each edge"
    return problem


def sparse_problem(features: SparseFeatures) -> str | None:
    """What is wrong with a sparse matrix, in words; ``None`` if nothing is."""
    if features.values.shape != features.indices.shape:
        return "it has not one value for each entry"
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
