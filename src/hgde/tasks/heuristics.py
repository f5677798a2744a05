"""Links without a trained model: counts of paths, and a random forest on differences of features.

Every entry of :data:`HEURISTICS` is a function ``(graph, features, pairs, *, negatives, seed) -> scores`` with
``graph`` the edges that may be seen, ``pairs [2, M]`` the pairs to score and ``scores [M]`` in double precision, larger
for likelier links. What a heuristic does not need, it ignores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hgde.graph import Features, Graph, SparseFeatures
from hgde.registry import Registry

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Heuristic = Callable[..., Tensor]

HEURISTICS: Registry[Heuristic] = Registry(
    "link heuristic", "heuristics", home=("hgde.tasks.heuristics",), accepts=callable
)


def score_pairs(
    name: str | Heuristic,
    graph: Graph,
    features: Features | None,
    pairs: Tensor,
    *,
    negatives: Tensor | None = None,
    seed: int = 0,
) -> Tensor:
    """Scores ``[M]`` of node pairs ``[2, M]`` by a heuristic.

    ``negatives [2, K]`` are pairs known not to be links, for heuristics that are fitted; their links are the edges of
    ``graph``.
    """
    if pairs.dim() != 2 or pairs.shape[0] != 2:
        raise ValueError(f"pairs must have shape [2, M] (one column per pair), got {list(pairs.shape)}")
    return HEURISTICS.get(name)(graph, features, pairs, negatives=negatives, seed=seed)


@HEURISTICS.register("common-neighbours")
def common_neighbours(graph: Graph, features: Features | None, pairs: Tensor, **_: Any) -> Tensor:
    """``|N(u) & N(v)|``; cost per pair: the smaller degree."""
    return _shared(binary_adjacency(graph), pairs, np.ones(graph.num_nodes))


@HEURISTICS.register("adamic-adar")
def adamic_adar(graph: Graph, features: Features | None, pairs: Tensor, **_: Any) -> Tensor:
    """``sum 1 / log(degree)`` over common neighbours (Adamic and Adar, Friends and neighbors on the web, 2003)."""
    adjacency = binary_adjacency(graph)
    degree = np.asarray(adjacency.sum(0)).ravel()
    # A common neighbour has at least two edges, so what is put for the others is never read.
    return _shared(adjacency, pairs, 1 / np.log(np.maximum(degree, 2)))


@HEURISTICS.register("katz")
def katz(
    graph: Graph,
    features: Features | None,
    pairs: Tensor,
    *,
    beta: float = 0.005,
    length: int = 5,
    block: int = 512,
    **_: Any,
) -> Tensor:
    """``sum_{l <= length} beta^l (number of paths of length l)`` (Katz, A new status index, 1953).

    Memory ``block N``, cost ``length E`` per distinct first node of a pair.
    """
    adjacency = binary_adjacency(graph)
    sources, place = np.unique(pairs[0].cpu().numpy(), return_inverse=True)
    targets = pairs[1].cpu().numpy()
    scores = np.zeros(targets.size)
    for start in range(0, sources.size, block):
        chosen = sources[start : start + block]
        paths = adjacency[chosen].toarray() * beta
        total = paths.copy()
        for _step in range(length - 1):
            paths = beta * (adjacency.T @ paths.T).T
            total += paths
        inside = (place >= start) & (place < start + block)
        scores[inside] = total[place[inside] - start, targets[inside]]
    return torch.from_numpy(scores)


class FeatureForest:
    """A random forest on ``|x_u - x_v|``: what features alone say about links.

    Args:
        trees: number of trees.
        seed: of the forest.
    """

    def __init__(self, trees: int = 100, seed: int = 0) -> None:
        from sklearn.ensemble import RandomForestClassifier

        self.forest = RandomForestClassifier(n_estimators=trees, min_samples_leaf=2, random_state=seed)

    def fit(self, features: Features, links: Tensor, negatives: Tensor) -> FeatureForest:
        """Learn from pairs that are links and pairs that are not, both ``[2, K]``."""
        if not links.shape[1] or not negatives.shape[1]:
            raise ValueError(
                f"a forest needs links and non-links to learn from, got {links.shape[1]} and {negatives.shape[1]}"
            )
        joined = torch.cat([links, negatives], dim=1)
        labels = np.repeat([1, 0], [links.shape[1], negatives.shape[1]])
        self.forest.fit(_differences(features, joined), labels)
        return self

    def predict(self, features: Features, pairs: Tensor) -> Tensor:
        """Probabilities ``[M]`` of links."""
        return torch.from_numpy(self.forest.predict_proba(_differences(features, pairs))[:, 1])


@HEURISTICS.register("feature-forest")
def feature_forest(
    graph: Graph,
    features: Features | None,
    pairs: Tensor,
    *,
    negatives: Tensor | None = None,
    seed: int = 0,
    **_: Any,
) -> Tensor:
    """:class:`FeatureForest` fitted on the graph's edges against ``negatives``."""
    if features is None or negatives is None:
        missing = "features" if features is None else "negatives, pairs that are not links"
        raise ValueError(f"feature-forest is fitted and needs {missing}")
    return FeatureForest(seed=seed).fit(features, graph.undirected_edges, negatives).predict(features, pairs)


def binary_adjacency(graph: Graph) -> csr_matrix:
    """0/1 adjacency without loops, in double precision."""
    from scipy.sparse import csr_matrix

    rows, columns = graph.rows.cpu().numpy(), graph.indices.cpu().numpy()
    kept = rows != columns
    size = graph.num_nodes
    return csr_matrix((np.ones(int(kept.sum())), (rows[kept], columns[kept])), shape=(size, size))


def _shared(adjacency: csr_matrix, pairs: Tensor, weights: np.ndarray[Any, Any]) -> Tensor:
    """``sum_k a_uk a_vk weights_k`` of every pair."""
    u, v = pairs.cpu().numpy()
    products = adjacency[u].multiply(adjacency[v])
    return torch.from_numpy(np.asarray(products @ weights, dtype=np.float64).ravel())


def _differences(features: Features, pairs: Tensor) -> Any:
    u, v = pairs
    if isinstance(features, SparseFeatures):
        matrix = features.to_scipy()
        return abs(matrix[u.cpu().numpy()] - matrix[v.cpu().numpy()]).tocsr()
    return (features[u] - features[v]).abs().detach().cpu().numpy()
