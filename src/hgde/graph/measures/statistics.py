"""What can be measured about a graph: sizes, components, degrees, homophily."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.graph.graph import Graph


@dataclass(frozen=True)
class GraphStatistics:
    """Counts of a graph. Edges are counted once, without self-loops; homophily is ``None`` without labels."""

    num_nodes: int
    num_edges: int
    num_self_loops: int
    num_components: int
    largest_component: int
    num_isolated: int
    min_degree: int
    mean_degree: float
    median_degree: float
    max_degree: int
    edge_homophily: float | None


def component_labels(graph: Graph) -> Tensor:
    """The number of each node's (weakly) connected component, ``[N]``, counted in order of first nodes."""
    from scipy.sparse.csgraph import connected_components

    if graph.num_nodes == 0:
        return torch.zeros(0, dtype=torch.int64, device=graph.device)
    _, labels = connected_components(graph.to_scipy(), directed=True, connection="weak")
    return torch.from_numpy(labels.astype("int64")).to(graph.device)


def edge_homophily(graph: Graph, labels: Tensor) -> float | None:
    """Share of the undirected edges whose ends have the same label; edges at unlabelled nodes are not counted."""
    u, v = graph.undirected_edges
    known = (labels[u] >= 0) & (labels[v] >= 0)
    count = int(known.sum())
    return float((labels[u] == labels[v])[known].double().mean()) if count else None


def graph_statistics(graph: Graph, labels: Tensor | None = None) -> GraphStatistics:
    """Counts, components, degrees and homophily. A node's degree counts its neighbours, itself left out."""
    edges = graph.undirected_edges
    degree = torch.bincount(edges.reshape(-1), minlength=graph.num_nodes)
    sizes = torch.bincount(component_labels(graph))
    empty = graph.num_nodes == 0
    return GraphStatistics(
        num_nodes=graph.num_nodes,
        num_edges=int(edges.shape[1]),
        num_self_loops=int((graph.rows == graph.indices).sum()),
        num_components=int(sizes.numel()),
        largest_component=0 if empty else int(sizes.max()),
        num_isolated=int((degree == 0).sum()),
        min_degree=0 if empty else int(degree.min()),
        mean_degree=0.0 if empty else float(degree.double().mean()),
        median_degree=0.0 if empty else float(degree.double().quantile(0.5)),
        max_degree=0 if empty else int(degree.max()),
        edge_homophily=None if labels is None else edge_homophily(graph, labels),
    )
