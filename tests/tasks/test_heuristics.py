"""Link heuristics against counts by hand, and a forest that finds links the features give away."""

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from hgde.graph import Graph, SparseFeatures
from hgde.tasks.heuristics import HEURISTICS, FeatureForest, score_pairs

# A square 0-1-2-3 with the diagonal 0-2, a tail 3-4, and node 5 alone.
GRAPH = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)], 6)
PAIRS = torch.tensor([[0, 1, 1, 0, 5], [2, 3, 4, 4, 0]])


def neighbours(node):
    return set(GRAPH.indices[GRAPH.indptr[node] : GRAPH.indptr[node + 1]].tolist())


def test_common_neighbours():
    expected = [float(len(neighbours(int(u)) & neighbours(int(v)))) for u, v in PAIRS.T]
    assert score_pairs("common-neighbours", GRAPH, None, PAIRS).tolist() == expected


def test_adamic_adar():
    expected = [
        sum(1 / math.log(len(neighbours(k))) for k in neighbours(int(u)) & neighbours(int(v))) for u, v in PAIRS.T
    ]
    torch.testing.assert_close(score_pairs("adamic-adar", GRAPH, None, PAIRS), torch.tensor(expected).double())


def test_katz_counts_paths():
    a = torch.tensor(GRAPH.to_scipy().toarray()).double()
    total = sum(0.005**n * torch.linalg.matrix_power(a, n) for n in range(1, 6))
    scores = HEURISTICS.get("katz")(GRAPH, None, PAIRS, block=2)
    torch.testing.assert_close(scores, total[PAIRS[0], PAIRS[1]])


def test_self_loops_count_for_nothing():
    looped = GRAPH.with_self_loops()
    for name in ("common-neighbours", "adamic-adar", "katz"):
        torch.testing.assert_close(score_pairs(name, looped, None, PAIRS), score_pairs(name, GRAPH, None, PAIRS))


@pytest.mark.parametrize("sparse", [True, False])
def test_the_forest_sees_features_only(sparse):
    rng = np.random.default_rng(0)
    group = np.arange(40) % 2
    matrix = rng.random((40, 5)) * 0.1 + group[:, None]
    features = SparseFeatures.from_scipy(csr_matrix(matrix)) if sparse else torch.tensor(matrix)
    pairs = torch.tensor(rng.integers(0, 40, (2, 300)))
    alike = torch.tensor(group)[pairs[0]] == torch.tensor(group)[pairs[1]]
    graph = Graph.from_edges(pairs[:, :150][:, alike[:150]], 40)
    arguments = {"negatives": pairs[:, :150][:, ~alike[:150]], "seed": 1}
    scores = score_pairs("feature-forest", graph, features, pairs[:, 150:], **arguments)
    assert ((scores > 0.5) == alike[150:]).float().mean() > 0.95
    assert torch.equal(scores, score_pairs("feature-forest", graph, features, pairs[:, 150:], **arguments))


def test_errors_say_what_is_missing():
    with pytest.raises(ValueError, match="negatives"):
        score_pairs("feature-forest", GRAPH, torch.ones(6, 2), PAIRS)
    with pytest.raises(ValueError, match=r"\[2, M\]"):
        score_pairs("katz", GRAPH, None, PAIRS.T)
    with pytest.raises(ValueError, match="links"):
        FeatureForest().fit(torch.ones(6, 2), PAIRS, PAIRS[:, :0])
    with pytest.raises(ValueError, match="katz"):
        score_pairs("kats", GRAPH, None, PAIRS)
