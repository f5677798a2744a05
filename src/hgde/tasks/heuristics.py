"""Links by rules of thumb: what pairs have in common in the training graph, or how their features differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.tasks.base import Array, Problem
from hgde.tasks.baselines import HELD_OUT, Predictions, baseline, feature_matrix
from hgde.tasks.metrics import PAIRS

_MOST_TRAINING_PAIRS = 20_000
_KATZ = 0.05


def _adjacency(problem: Problem) -> Any:
    """The training graph as 0 and 1, undirected, without loops."""
    matrix = problem.graph.to_scipy().astype(np.float64).tocsr()
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix = matrix.maximum(matrix.T).tocsr()
    matrix.data[:] = 1
    return matrix


def _for_pairs(problem: Problem, score: Any) -> Predictions:
    """Scores of both parts as log-odds; only their order means anything, zero standing for nothing in common."""
    return {name: _as_odds(score(*problem.parts[name].items.cpu().numpy())) for name in HELD_OUT}


def _as_odds(values: Array) -> Tensor:
    odds = torch.from_numpy(np.asarray(values, dtype=np.float64).ravel())
    return odds - 0.5 * odds[odds > 0].min() if bool((odds > 0).any()) else odds - 1


def _shared(left: Any, right: Any, u: Array, v: Array) -> Array:
    """``sum_w left_uw right_vw`` for pairs, a piece at a time so that memory stays small."""
    pieces = [
        np.asarray(left[u[k : k + 20_000]].multiply(right[v[k : k + 20_000]]).sum(1)).ravel()
        for k in range(0, len(u), 20_000)
    ]
    return np.concatenate(pieces) if pieces else np.zeros(0)


@baseline("common-neighbours", PAIRS)
def common_neighbours(problem: Problem) -> Predictions:
    """How many neighbours the two nodes share."""
    matrix = _adjacency(problem)
    return _for_pairs(problem, lambda u, v: _shared(matrix, matrix, u, v))


@baseline("adamic-adar", PAIRS)
def adamic_adar(problem: Problem) -> Predictions:
    """Shared neighbours, each counted ``1 / log(degree)``. Adamic and Adar, Friends and neighbors on the web, 2003."""
    import scipy.sparse as sp

    matrix = _adjacency(problem)
    degree = np.asarray(matrix.sum(1)).ravel()
    weighted = matrix @ sp.diags(1 / np.log(np.maximum(degree, 2)))
    return _for_pairs(problem, lambda u, v: _shared(weighted.tocsr(), matrix, u, v))


@baseline("preferential-attachment", PAIRS)
def preferential_attachment(problem: Problem) -> Predictions:
    """The product of the two degrees. Barabási and Albert, 1999."""
    degree = np.asarray(_adjacency(problem).sum(1)).ravel()
    return _for_pairs(problem, lambda u, v: degree[u] * degree[v])


@baseline("katz", PAIRS)
def katz(problem: Problem) -> Predictions:
    """Walks between the two nodes, ``sum_k b^k (A^k)_uv`` up to four steps, ``b = 0.05`` over the mean degree's root.

    ``(A^4)_uv = <A^2 row u, A^2 row v>``: the second power is all that is stored. Katz, 1953.
    """
    matrix = _adjacency(problem)
    rate = _KATZ / max(1.0, np.sqrt(matrix.sum() / max(matrix.shape[0], 1)))
    square = (matrix @ matrix).tocsr()

    def score(u: Array, v: Array) -> Array:
        one, two = _shared(_identity_rows(matrix), matrix, u, v), _shared(matrix, matrix, u, v)
        three, four = _shared(square, matrix, u, v), _shared(square, square, u, v)
        return rate * one + rate**2 * two + rate**3 * three + rate**4 * four

    return _for_pairs(problem, score)


def _identity_rows(matrix: Any) -> Any:
    import scipy.sparse as sp

    return sp.identity(matrix.shape[0], format="csr")


@baseline("feature-likeness", PAIRS)
def feature_likeness(problem: Problem) -> Predictions:
    """Cosine of the two rows of features."""
    from sklearn.preprocessing import normalize

    x = normalize(feature_matrix(problem))

    def score(u: Array, v: Array) -> Array:
        if hasattr(x, "tocsr"):
            return _shared(x, x, u, v)
        return np.einsum("ij,ij->i", x[u], x[v])

    return {name: torch.from_numpy(score(*problem.parts[name].items.cpu().numpy())) for name in HELD_OUT}


@baseline("feature-forest", PAIRS)
def feature_forest(problem: Problem) -> Predictions:
    """A random forest on the absolute differences of the two rows of features (of at most 20,000 training edges and as
    many non-edges); wide features are reduced to 64 principal directions first."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.ensemble import RandomForestClassifier

    x = feature_matrix(problem)
    if x.shape[1] > 128:
        x = TruncatedSVD(64, random_state=0).fit_transform(x)
    x = x.toarray() if hasattr(x, "toarray") else np.asarray(x)
    generator = torch.Generator().manual_seed(0)
    edges = problem.parts["train"].items.cpu()
    edges = edges[:, torch.randperm(edges.shape[1], generator=generator)[:_MOST_TRAINING_PAIRS]]
    others = problem.extra.to("cpu").sample_training_negatives(edges.shape[1], generator)
    pairs = torch.cat([edges, others], 1).numpy()
    linked = np.r_[np.ones(edges.shape[1], int), np.zeros(others.shape[1], int)]
    forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=0, n_jobs=1)
    forest.fit(np.abs(x[pairs[0]] - x[pairs[1]]), linked)

    def odds(u: Array, v: Array) -> Tensor:
        chance = forest.predict_proba(np.abs(x[u] - x[v]))[:, 1]
        return torch.logit(torch.from_numpy(chance).clamp(1e-6, 1 - 1e-6))

    return {name: odds(*problem.parts[name].items.cpu().numpy()) for name in HELD_OUT}
