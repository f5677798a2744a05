"""Which rows a trajectory has to work on, where the last states of some nodes are all that is asked for.

The last step needs the rows of those nodes alone, the one before also their neighbours', and so on. Nodes are numbered
by distance from the nodes asked for, so that what a step works on is always the first rows; beyond the reach of all
steps nothing is worked out. A row's edges keep their order, so its sums are the same as those of the whole graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.graph import Graph
from hgde.kernels.cpu.attached import Attached
from hgde.kernels.cpu.layout import laid_out, layout_of, narrow

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Reach:
    """``rows [n]``: the nodes within reach, by distance, those asked for first and as given.  ``edges``: which edge of
    the graph each edge between them is.  ``counts``: how many rows each state is needed of, the first state's first.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.kernels import reach_of
    >>> path = Graph.from_edges([(n, n + 1) for n in range(9)])
    >>> reach = reach_of(path, torch.tensor([4]), steps=2)
    >>> reach.rows.tolist(), reach.counts
    ([4, 3, 5, 2, 6], (5, 3, 1))
    """

    rows: Tensor
    edges: Tensor
    counts: tuple[int, ...]
    pattern: tuple[Tensor, Tensor]

    def among_all(self, z: Tensor, graph: Graph) -> Tensor:
        """The rows at their places among all nodes of the graph; the others, which nothing depends on, are zero."""
        return z.new_zeros(graph.num_nodes, *z.shape[1:]).index_copy(0, self.rows, z)

    def of_edges(self, values: Tensor) -> Tensor:
        """A number for each edge of the graph, for the edges within reach; remembered as long as constant ones live."""
        if values.requires_grad:
            return values.index_select(0, self.edges)
        found = _chosen.get(values)
        if found is None or found[0] is not self:
            found = _chosen.put(values, (self, values.index_select(0, self.edges)))
        return found[1]


_known: Attached[tuple[Tensor, int, Reach | None]] = Attached()
_chosen: Attached[tuple[Reach, Tensor]] = Attached()


def reach_of(graph: Graph, nodes: Tensor, steps: int) -> Reach | None:
    """What ``steps`` steps to the states of ``nodes [n]`` need, remembered as long as these live.

    None where a node is asked for twice, or where some edge has no reverse. Where they need nearly everything, nothing
    is lost.

    >>> import torch
    >>> from hgde import Graph
    >>> path = Graph.from_edges([(n, n + 1) for n in range(9)])
    >>> reach_of(path, torch.tensor([0, 1]), steps=1).rows.tolist()
    [0, 1, 2]
    >>> reach_of(path, torch.tensor([0, 0]), steps=1) is None
    True
    """
    found = _known.get(nodes)
    if found is None or found[0] is not graph.indices or found[1] != steps:
        found = _known.put(nodes, (graph.indices, steps, _reach(graph, nodes.numpy(), steps)))
    return found[2]


def _reach(graph: Graph, nodes: Array, steps: int) -> Reach | None:
    whole = layout_of(graph.indptr, graph.indices)
    if whole.reverse is None or steps == 0 or len(nodes) == 0 or len(np.unique(nodes)) < len(nodes):
        return None
    indptr, indices = graph.indptr.numpy(), graph.indices.numpy()
    distance = _distances(indptr, indices, nodes, steps)
    within = np.flatnonzero(distance <= steps)
    nearest = within[np.argsort(distance[within], kind="stable")]
    rows = np.concatenate([nodes, nearest[len(nodes) :]])
    counts = np.searchsorted(distance[rows], np.arange(steps, -1, -1), side="right")
    degrees = np.diff(indptr)[rows]
    edges, owners = _entries(indptr, rows), np.repeat(np.arange(len(rows)), degrees)
    # Rows at the last distance are never stepped from: of their edges only the reverses of others' are needed.
    is_needed = np.minimum(distance[rows][owners], distance[indices[edges]]) < steps
    edges, owners = edges[is_needed], owners[is_needed]
    place, number = np.empty(graph.num_nodes, np.int64), np.empty(len(indices), np.int64)
    place[rows], number[edges] = np.arange(len(rows)), np.arange(len(edges))
    start = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(rows)))])
    reverse = narrow(number[whole.reverse.numpy()[edges]])
    pattern = laid_out(start, place[indices[edges]], reverse)
    return Reach(torch.from_numpy(rows), torch.from_numpy(edges), tuple(counts.tolist()), pattern)


def _distances(indptr: Array, indices: Array, nodes: Array, steps: int) -> Array:
    """Of every node from the given ones, along edges; ``steps + 1`` stands for all that is farther than ``steps``."""
    distance = np.full(len(indptr) - 1, steps + 1)
    distance[nodes] = 0
    for reached in range(1, steps + 1):
        nodes = np.unique(indices[_entries(indptr, nodes)])
        nodes = nodes[distance[nodes] > steps]
        distance[nodes] = reached
    return distance


def _entries(indptr: Array, rows: Array) -> Array:
    """The places of the entries of some rows, one row after the other."""
    degrees = np.diff(indptr)[rows]
    ends = np.cumsum(degrees)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(indptr[rows] - (ends - degrees), degrees)
