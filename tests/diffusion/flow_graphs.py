"""Random graphs of many kinds: trees, hubs, dense, sparse with several components, with and without weights."""

from __future__ import annotations

import torch

from hgde.graph import Graph

KINDS = ("tree", "hub", "dense", "disconnected")


def random_graph(seed: int, weighted: bool | None = None) -> Graph:
    """An undirected graph with symmetric weights; the kind goes round with the seed."""
    random = torch.Generator().manual_seed(seed)
    kind = KINDS[seed % len(KINDS)]
    count = int(torch.randint(2, 40, (), generator=random))
    if kind == "tree":
        pairs = [(int(torch.randint(0, i, (), generator=random)), i) for i in range(1, count)]
    elif kind == "hub":
        pairs = [(0, i) for i in range(1, count)] + [(1, i) for i in range(2, count, 5)]
    else:
        share = 0.6 if kind == "dense" else 0.5 / count
        table = torch.rand(count, count, generator=random).triu(1) > 1 - share
        pairs = [(int(i), int(j)) for i, j in table.nonzero()]
    graph = Graph.from_edges(pairs, count)
    if weighted is None:
        weighted = seed % 3 == 0
    return (
        with_weights(graph, 10 ** (2 * torch.rand(graph.num_edges, generator=random).double() - 1))
        if weighted
        else graph
    )


def with_weights(graph: Graph, values: torch.Tensor) -> Graph:
    """The graph with weights, those of the two directions of an edge made equal."""
    dense = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    dense[graph.rows, graph.indices] = values
    dense = torch.maximum(dense, dense.T)
    return Graph(graph.indptr, graph.indices, dense[graph.rows, graph.indices])
