"""Links against hard negatives, and what every link problem states of itself."""

from dataclasses import replace

import pytest
import torch

from hgde.data import Dataset
from hgde.data.settings import DataSettings
from hgde.data.splits import hard_negatives
from hgde.graph import Graph
from hgde.tasks.base import TaskError
from hgde.tasks.baselines import BASELINES, HELD_OUT
from hgde.tasks.links import LinkPrediction, LinkSettings
from hgde.tasks.metrics import PAIRS

COUNT = 40
#: All but the forest, which takes a second to grow.
PAIRWISE = [name for name in BASELINES if PAIRS in BASELINES.get(name).kinds and "forest" not in name]


def dataset():
    generator = torch.Generator().manual_seed(0)
    ring = torch.stack([torch.arange(COUNT), (torch.arange(COUNT) + 1) % COUNT])
    chords = torch.randint(0, COUNT, (2, 60), generator=generator)
    edges = torch.cat([ring, chords[:, chords[0] != chords[1]]], 1)
    return Dataset("chords", Graph.from_edges(edges, COUNT), torch.randn(COUNT, 5, generator=generator))


def pairs_of(table):
    return {(min(pair), max(pair)) for pair in table.T.tolist()}


def test_every_held_out_link_has_its_hard_negatives():
    data = dataset()
    problem = LinkPrediction.pose(data, LinkSettings(negatives="hard", negatives_per_edge=6), DataSettings(split=3))
    linked = pairs_of(data.graph.undirected_edges)
    for name, links in (("val", problem.extra.val_pos), ("test", problem.extra.test_pos)):
        part, count = problem.parts[name], links.shape[1]
        assert part.truth.tolist() == [1] * count + [0] * (6 * count)
        assert torch.equal(part.items[:, :count], links)
        negatives = part.items[:, count:]
        assert not pairs_of(negatives) & linked
        for place in range(count):
            for pair in negatives[:, 6 * place : 6 * place + 6].T.tolist():
                assert set(pair) & set(links[:, place].tolist()), "one end of the link is kept"
        again = hard_negatives(
            problem.graph, links, data.features, 6, problem.extra.seed, exclude=data.graph.undirected_edges
        )
        assert torch.equal(again.flatten(1), negatives)
    random = LinkPrediction.pose(data, LinkSettings(), DataSettings(split=3))
    assert random.parts["test"].size == 2 * problem.extra.test_pos.shape[1]


def test_a_link_problem_names_its_split():
    problem = LinkPrediction.pose(dataset(), LinkSettings(), DataSettings(split=3))
    assert (problem.split_name, problem.split_hash) == (problem.extra.name, problem.extra.hash)
    assert problem.graph is problem.extra.graph
    other = LinkPrediction.pose(dataset(), LinkSettings(), DataSettings(split=4))
    assert other.split_hash != problem.split_hash


def test_parts_of_links_that_hold_nothing_are_refused():
    split = LinkPrediction.pose(dataset(), LinkSettings(), DataSettings()).extra
    for name in ("train_pos", "val_pos"):
        with pytest.raises(TaskError, match="too few edges"):
            LinkPrediction.pose_on(dataset(), LinkSettings(), replace(split, **{name: split.train_pos[:, :0]}))


@pytest.mark.parametrize("name", PAIRWISE)
def test_baselines_of_links_score_every_held_out_pair_the_same_every_time(name):
    data = dataset()
    problem = LinkPrediction.pose(data, LinkSettings(), DataSettings()).with_features(data.features)
    one, two = BASELINES.get(name)(problem), BASELINES.get(name)(problem)
    assert sorted(one) == sorted(HELD_OUT)
    for part in HELD_OUT:
        assert one[part].shape == (problem.parts[part].size,)
        assert torch.equal(one[part], two[part])
