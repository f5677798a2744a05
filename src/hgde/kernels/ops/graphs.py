"""Edges sorted by the node that receives, as one operation that ``torch.compile`` and ``torch.export`` keep whole."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from hgde.graph import Graph
from hgde.kernels.ops.register import operation


def _fake(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    return edge_index.new_empty(num_nodes + 1), edge_index.new_empty(edge_index.shape[1])


@operation("by_receiver(Tensor edge_index, int num_nodes) -> (Tensor, Tensor)", fake=_fake)
def by_receiver(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """``indptr, indices`` of the directed edges ``edge_index [2, E]``, all of them kept."""
    made: Any = Graph.from_edges(edge_index, num_nodes, undirected=False, self_loops=True, merge_duplicates=False)
    return made.indptr, made.indices
