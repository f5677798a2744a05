"""Weights of edges and sums of them over nodes, with or without a loop at every node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch
from torch import Tensor

from hgde.graph import Graph, PieceGraph

T = TypeVar("T")


def edge_weights(graph: Graph, dtype: torch.dtype = torch.float64) -> Tensor:
    """``w_ij`` in edge order, ``[E]``: the graph's own, or ones."""
    if graph.weights is None:
        return torch.ones(graph.num_edges, dtype=dtype, device=graph.device)
    return graph.weights.to(dtype)


def degrees(graph: Graph, dtype: torch.dtype = torch.float64, *, self_loops: bool = False) -> tuple[Tensor, Tensor]:
    """Sums of the weights that arrive at and that leave each node, ``[N]`` each.

    ``self_loops`` counts a loop of weight one at every node that has none. A piece of a larger graph gives the degrees
    that its nodes have in the whole.
    """
    if isinstance(graph, PieceGraph):
        arriving, leaving = graph.degrees.to(dtype)
        added = (~graph.loops).to(dtype)
        return (arriving + added, leaving + added) if self_loops else (arriving, leaving)
    arriving, leaving = (torch.zeros(graph.num_nodes, dtype=dtype, device=graph.device) for _ in range(2))
    weights = edge_weights(graph, dtype)
    arriving.index_add_(0, graph.rows, weights)
    leaving.index_add_(0, graph.indices, weights)
    if self_loops:
        added = missing_loops(graph).to(dtype)
        arriving, leaving = arriving + added, leaving + added
    return arriving, leaving


def missing_loops(graph: Graph) -> Tensor:
    """Which nodes have no edge to themselves, ``[N]``."""
    loops = torch.zeros(graph.num_nodes, dtype=torch.int64, device=graph.device)
    return loops.index_add_(0, graph.rows, (graph.rows == graph.indices).long()) == 0


class Remembered(Generic[T]):
    """What was worked out for the last graph, per dtype. Holds the graph, so that its identity stays valid."""

    def __init__(self, compute: Callable[[Graph, torch.dtype], T]) -> None:
        self._compute = compute
        self._last: tuple[Graph | None, dict[torch.dtype, T]] = (None, {})

    def __call__(self, graph: Graph, dtype: torch.dtype) -> T:
        if torch.compiler.is_compiling():
            return self._compute(graph, dtype)
        # Graph and values change together, so that threads with graphs of their own never mix them up.
        known, values = self._last
        if known is not graph:
            values = {}
            self._last = (graph, values)
        if dtype not in values:
            values[dtype] = self._compute(graph, dtype)
        return values[dtype]

    def change(self, change: Callable[[T], T]) -> None:
        """Put something else, of the same value, in the place of what is known."""
        graph, values = self._last
        self._last = (graph, {dtype: change(value) for dtype, value in values.items()})
