"""What the compiled passes need to know about a graph, worked out once and kept with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from hgde.graph import Graph

MAX_BLOCKS = 64
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Layout:
    """Narrow indices of a graph's rows, its neighbours in both directions, and the blocks its rows are worked in.

    ``blocks [B + 1]`` cuts the rows into parts of about equal numbers of edges and depends on the graph alone.
    ``around, neighbours, in_edge, out_edge``: CSR over all neighbours of a node, with the edge's place in either
    direction (-1 where there is none); equal numbers of parallel edges are paired.
    """

    indptr: Array
    indices: Array
    blocks: Array
    around: Array
    neighbours: Array
    in_edge: Array
    out_edge: Array
    around_blocks: Array

    @property
    def num_blocks(self) -> int:
        return len(self.blocks) - 1


_layouts: WeakKeyDictionary[Graph, Layout] = WeakKeyDictionary()


def layout_of(graph: Graph) -> Layout:
    """The layout of a graph on the CPU; the first call costs a sort of the edges."""
    found = _layouts.get(graph)
    if found is None:
        found = _layouts[graph] = _build(graph)
    return found


def row_blocks(indptr: Array) -> Array:
    """Boundaries of at most :data:`MAX_BLOCKS` runs of rows with about equal work (edges, and a few for the row)."""
    rows = len(indptr) - 1
    count = max(1, min(MAX_BLOCKS, rows // 128))
    work = indptr.astype(np.int64) + 4 * np.arange(rows + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], count + 1))
    cuts[0], cuts[-1] = 0, rows
    return np.maximum.accumulate(cuts).astype(np.int64)


@lru_cache(maxsize=32)
def even_blocks(rows: int) -> Array:
    """Blocks of rows that all take the same work."""
    return row_blocks(np.zeros(rows + 1, np.int64))


def _copies(key: Array) -> Array:
    """For sorted keys, how many equal ones come before each."""
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.zeros(0, np.int64)
    return np.arange(len(key)) - np.repeat(start, np.diff(np.append(start, len(key))))


def _build(graph: Graph) -> Layout:
    index_type = np.int32 if max(graph.num_nodes, graph.num_edges) < 2**31 - 1 else np.int64
    # Unsigned: a negative index would count from the end, and compiled code would test every one for it.
    node_type = np.uint32 if index_type is np.int32 else np.uint64
    indptr64 = graph.indptr.numpy()
    indptr, indices = indptr64.astype(index_type), graph.indices.numpy().astype(node_type)
    blocks = row_blocks(indptr64)
    out_indptr, out_targets, out_order = (part.numpy() for part in graph.by_source)
    edges = np.arange(graph.num_edges, dtype=index_type)
    if graph.is_symmetric:
        out_edge = out_order.astype(index_type)
        return Layout(indptr, indices, blocks, indptr, indices, edges, out_edge, blocks)
    nodes = max(graph.num_nodes, 1)
    in_key = graph.rows.numpy() * nodes + graph.indices.numpy()
    owner = np.repeat(np.arange(graph.num_nodes), np.diff(out_indptr))
    out_key = owner * nodes + out_targets
    in_name = np.stack([in_key, _copies(in_key)], 1)
    out_name = np.stack([out_key, _copies(out_key)], 1)
    names, place = np.unique(np.concatenate([in_name, out_name]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    in_edge, out_edge = np.full(len(names), -1, index_type), np.full(len(names), -1, index_type)
    in_edge[place[: len(in_name)]] = edges
    out_edge[place[len(in_name) :]] = out_order
    node, neighbour = names[:, 0] // nodes, names[:, 0] % nodes
    around = np.zeros(graph.num_nodes + 1, np.int64)
    around[1:] = np.cumsum(np.bincount(node, minlength=graph.num_nodes))
    return Layout(
        indptr,
        indices,
        blocks,
        around.astype(index_type),
        neighbour.astype(node_type),
        in_edge,
        out_edge,
        row_blocks(around),
    )
