"""Negatives that are hard to tell from links: for each link, pairs of one of its ends with a node that looks related.

After Li et al., "Evaluating Graph Neural Networks for Link Prediction: Current Pitfalls and New Benchmarking" (HeaRT,
NeurIPS 2023): with random negatives almost every pair is far apart and anything that counts common neighbours scores
well. Here the candidates of a node are ranked by three heuristics, each of which has an equal say.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph, GraphError

Array = np.ndarray[Any, Any]

_BLOCK = 256
_HOPS = 4
_UNRANKED = np.iinfo(np.int64).max // 4


def hard_negatives(
    graph: Graph,
    positives: Tensor,
    features: Features | None = None,
    k: int = 100,
    seed: int = 0,
    *,
    exclude: Tensor | None = None,
) -> Tensor:
    """For each of ``positives`` ``[2, M]`` the ``k`` hardest pairs that are no links, ``[2, M, k]`` with ``u < v``.

    Of each link ``(a, b)``, ``ceil(k / 2)`` pairs keep ``a`` and the others ``b``. The partners of a node are those
    that come first in any of three rankings: resource allocation over common neighbours,
    ``sum_{c in N(a) and N(x)} 1 / d_c``; distance in hops, up to 4; cosine of the features. Ties, and places that no
    ranking fills, are drawn at random.

    Args:
        graph: the graph of training edges, from which all heuristics are taken.
        positives: links to be distinguished from the negatives.
        features: ``[N, F]``; without, two rankings are used.
        k: negatives per link.
        seed: of the draws.
        exclude: further pairs that are links, ``[2, X]``, so that none is taken for a negative.

    Cost: for each distinct end ``O(E + N F)``; memory ``256 N`` numbers.

    >>> from hgde import load
    >>> graph = load("tree-random", num_nodes=60).graph
    >>> hard_negatives(graph, graph.undirected_edges[:, :5], k=4).shape
    torch.Size([2, 5, 4])
    """
    if k < 2:
        raise GraphError(f"each link needs at least 2 negatives, one per end, got k={k}")
    pairs = positives.cpu().numpy()
    ends, place = np.unique(pairs, return_inverse=True)
    place = place.reshape(pairs.shape)
    known = _known_links(graph, positives, exclude)
    half = (k + 1) // 2
    partners = np.empty((ends.size, half), dtype=np.int64)
    random = np.random.RandomState(seed)
    rankings = _Rankings(graph, features)
    for start in range(0, ends.size, _BLOCK):
        nodes = ends[start : start + _BLOCK]
        free = np.ones((nodes.size, graph.num_nodes), dtype=bool)
        free[known[nodes].nonzero()] = False
        free[np.arange(nodes.size), nodes] = False
        partners[start : start + nodes.size] = _choose(rankings(nodes), free, half, random, nodes)
    first = partners[place[0]]
    second = partners[place[1]][:, : k - half]
    fixed = np.concatenate([np.repeat(pairs[:1].T, half, 1), np.repeat(pairs[1:].T, k - half, 1)], axis=1)
    others = np.concatenate([first, second], axis=1)
    result = np.stack([np.minimum(fixed, others), np.maximum(fixed, others)])
    return torch.from_numpy(result).to(positives.device)


def _known_links(graph: Graph, positives: Tensor, exclude: Tensor | None) -> Any:
    """A symmetric matrix that is non-zero wherever there is a link."""
    lists = [graph.edge_index.cpu(), positives.cpu()] + ([] if exclude is None else [exclude.cpu()])
    return Graph.from_edges(torch.cat(lists, dim=1), graph.num_nodes).to_scipy()


class _Rankings:
    """Scores of all nodes as partners of some, one ``[B, N]`` table per heuristic; 0 where it has nothing to say."""

    def __init__(self, graph: Graph, features: Features | None) -> None:
        from scipy.sparse import diags

        simple = Graph.from_edges(graph.undirected_edges.cpu(), graph.num_nodes)
        self.adjacency = simple.to_scipy().astype(np.float64)
        degree = simple.degree.numpy().astype(np.float64)
        self.shared = diags(1 / np.maximum(degree, 1)) @ self.adjacency
        self.rows = None if features is None else _unit_rows(features)

    def __call__(self, nodes: Array) -> list[Array]:
        tables = [(self.adjacency[nodes] @ self.shared).toarray(), self._closeness(nodes)]
        if self.rows is not None:
            cosine = self.rows[nodes] @ self.rows.T
            tables.append(cosine if isinstance(cosine, np.ndarray) else cosine.toarray())
        return tables

    def _closeness(self, nodes: Array) -> Array:
        """``1 / hops``, 0 beyond 4."""
        reached = np.zeros((self.adjacency.shape[0], nodes.size), dtype=bool)
        reached[nodes, np.arange(nodes.size)] = True
        score = np.zeros(reached.shape)
        for hops in range(1, _HOPS + 1):
            fresh = ((self.adjacency @ reached.astype(np.float64)) > 0) & ~reached
            score[fresh] = 1 / hops
            reached |= fresh
        return score.T


def _unit_rows(features: Features) -> Any:
    if isinstance(features, SparseFeatures):
        unit = features.to(torch.float64).row_normalised(2)
        return unit.to_scipy()
    dense = features.detach().cpu().double()
    return (dense / dense.norm(dim=1, keepdim=True).clamp_min(1e-300)).numpy()


def _choose(tables: list[Array], free: Array, count: int, random: np.random.RandomState, nodes: Array) -> Array:
    """For each row the ``count`` columns that stand first in any of the tables, only free ones."""
    short = np.flatnonzero(free.sum(1) < count)
    if short.size:
        raise GraphError(
            f"node {nodes[short[0]]} has {int(free[short[0]].sum())} nodes without a link to it, {count} are needed as "
            "negatives: ask for fewer per link"
        )
    best = np.full(free.shape, _UNRANKED, dtype=np.float64)
    rows = np.arange(free.shape[0])[:, None]
    for scores in tables:
        # Equal to nine digits is a tie, and ties are drawn: which of them comes first must not hang on a library.
        drawn = scores * (1 + 1e-9 * random.random_sample(scores.shape))
        drawn[~free] = 0
        top = np.argpartition(-drawn, count - 1, axis=1)[:, :count]
        order = np.argsort(-drawn[rows, top], axis=1)
        top = top[rows, order]
        rank = np.where(drawn[rows, top] > 0, np.arange(count)[None, :], _UNRANKED).astype(np.float64)
        best[rows, top] = np.minimum(best[rows, top], rank)
    best += random.random_sample(best.shape)
    unranked = best >= _UNRANKED  # a random number is lost beside one so large
    best[unranked] = count + random.random_sample(int(unranked.sum()))
    best[~free] = np.inf
    chosen = np.argpartition(best, count - 1, axis=1)[:, :count]
    return np.asarray(chosen[rows, np.argsort(best[rows, chosen], axis=1)])
