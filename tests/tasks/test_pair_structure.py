"""The graph around a pair: by hand, without the pair's own edge, and through a run on links."""

import math

import numpy as np
import torch

from hgde import Graph
from hgde.data.sets.taxonomy_sim import make
from hgde.pipeline import fit, make_settings
from hgde.tasks.pair_structure import pair_structure

SQUARE = Graph.from_edges(np.array([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]]), 5)
"""0-1-2-3-0 with the diagonal 0-2; node 4 is alone."""


def test_numbers_by_hand():
    diagonal, absent, alone = pair_structure(SQUARE, torch.tensor([[0, 1, 1], [2, 3, 4]])).double()
    log2, log3 = math.log(2), math.log(3)
    expected = [math.log1p(2), math.log1p(2 / log2), math.log1p(1.0), 2 * math.log(3), 0.0]
    np.testing.assert_allclose(diagonal, expected, rtol=1e-6)  # 1 and 3 are shared; degrees 3 without their own edge
    expected = [math.log1p(2), math.log1p(2 / log3), math.log1p(2 / 3), 2 * math.log(3), 0.0]
    np.testing.assert_allclose(absent, expected, rtol=1e-6)
    np.testing.assert_allclose(alone, [0, 0, 0, math.log(3), math.log(3)], rtol=1e-6)


def test_an_edge_is_seen_as_if_it_were_not_there():
    edges = SQUARE.undirected_edges
    for pair in edges.T:
        pair = pair[:, None]
        without = SQUARE.without_pairs(pair)
        # Weights of common neighbours are of other nodes than the two, whose degrees stay.
        np.testing.assert_allclose(pair_structure(SQUARE, pair), pair_structure(without, pair), rtol=1e-6)


def test_order_of_ends_and_loops_do_not_matter():
    pairs = torch.tensor([[0, 1, 4], [2, 3, 1]])
    looped = Graph.from_edges(np.array([[0, 1, 2, 3, 0, 1], [1, 2, 3, 0, 2, 1]]), 5)
    torch.testing.assert_close(pair_structure(SQUARE, pairs), pair_structure(SQUARE, pairs.flip(0)))
    torch.testing.assert_close(pair_structure(SQUARE, pairs), pair_structure(looped, pairs))


def test_on_a_tree_held_out_leaves_are_not_taken_for_strangers():
    """Held out, a leaf has degree 0, which no end of a training edge has: without care the score is below chance."""
    settings = make_settings(
        {
            "preset": "none",
            "task": {"name": "links", "structure": True},
            "model": {"width": 4, "time": 1.0, "eta": [0.0, 0.0, 1.0]},
            "training": {"epochs": 40, "lr": 0.05},
            "run": {"threads": 1},
        }
    )
    result = fit(settings, dataset=make(num_nodes=400, cross_links=0.0))
    assert result.summary.mean() > 0.6
    fitted = result.models[0]
    assert fitted.evaluate()["test"]["roc_auc"] == result.summary.mean()
    table = fitted.predict()
    truth, chance = (table[name].astype(float) for name in ("truth", "probability"))
    assert chance[truth == 1].mean() > chance[truth == 0].mean()
