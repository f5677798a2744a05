"""Graphs with everything that goes wrong, and weights of every kind on them."""

import torch

from hgde.graph import Graph
from hgde.kernels import AttentionWeights, ChannelWeights, EdgeWeights


def awkward(directed: bool, nodes: int = 17, seed: int = 0) -> Graph:
    """A hub, isolated nodes, and, if directed, self-loops and repeated edges."""
    generator = torch.Generator().manual_seed(seed)
    some = torch.randint(0, nodes - 4, (2, 3 * nodes), generator=generator)
    hub = torch.stack([torch.zeros(nodes - 4, dtype=torch.int64), torch.arange(nodes - 4)])
    pairs = torch.cat([some, hub, hub if directed else hub[:, :0]], 1)
    return Graph.from_edges(pairs, nodes, undirected=not directed, self_loops=directed, merge_duplicates=not directed)


def graphs() -> dict[str, Graph]:
    return {
        "directed, loops, repeats, hub": awkward(True),
        "undirected, hub": awkward(False),
        "many strips": awkward(True, 150, 3),
        "one node": Graph.from_edges([], 1),
        "one loop": Graph.from_edges([(0, 0)], 1, self_loops=True),
        "no edges": Graph.from_edges([], 5),
    }


def points(nodes: int, width: int, seed: int = 0, spread: float = 0.5, dtype: torch.dtype = torch.float64):
    """Points about ``spread`` from the origin, none beyond 0.9."""
    x = vectors(nodes, width, seed, spread)
    return (x * (0.9 / x.norm(dim=-1, keepdim=True).clamp_min(0.9))).to(dtype)


def vectors(nodes: int, width: int, seed: int = 0, length: float = 1.0, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(nodes, width, generator=generator, dtype=torch.float64) * length / width**0.5).to(dtype)


WEIGHTS = ("edge", "attention", "channel")


def weights(kind: str, graph: Graph, width: int, dtype: torch.dtype = torch.float64):
    """``(tensors to differentiate, function from them to weights)``; rows sum to about one half."""
    generator = torch.Generator().manual_seed(7)

    def rand(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64).to(dtype)

    share = 0.5 / graph.degree.clamp_min(1)
    if kind == "edge":
        return (rand(graph.num_edges) * share[graph.rows].to(dtype),), EdgeWeights
    if kind == "attention":
        return (rand(graph.num_nodes, 2) - 0.5, rand(graph.num_nodes, 2) - 0.5), AttentionWeights
    index = torch.randint(0, 4, (graph.num_edges,), generator=generator)
    tensors = (rand(4, width), rand(graph.num_nodes, width) * share[:, None].to(dtype))
    return tensors, lambda table, scale: ChannelWeights(table, index, scale)
