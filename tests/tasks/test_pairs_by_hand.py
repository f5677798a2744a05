"""What the graph around a pair says, counted by hand, and a decoder that looks at it."""

import math

import pytest
import torch

from hgde import randomness
from hgde.data import Dataset
from hgde.data.settings import DataSettings
from hgde.geometry import Euclidean
from hgde.graph import Graph
from hgde.models.base import Model
from hgde.sections import choose
from hgde.tasks.base import Learner, Predicted
from hgde.tasks.decoders import DECODERS
from hgde.tasks.links import LinkPrediction, LinkSettings
from hgde.tasks.pair_structure import COUNT, WithStructure, pair_structure

#: A square with a diagonal, a tail, a node alone, and a loop that does not count.
EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4), (1, 1)]
GRAPH = Graph.from_edges(EDGES, 6, self_loops=True)
PAIRS = torch.tensor([[0, 1, 0, 4, 2, 4], [2, 3, 1, 1, 5, 3]])


def by_hand(u, v):
    near = {node: {b for e in EDGES for a, b in (e, e[::-1]) if a == node and b != node} for node in range(6)}
    common = [len(near[node]) for node in near[u] & near[v]]
    own = v in near[u]
    ends = [math.log1p(len(near[node]) - own) for node in (u, v)]
    return [
        math.log1p(len(common)),
        math.log1p(sum(1 / math.log(degree) for degree in common)),
        math.log1p(sum(1 / degree for degree in common)),
        ends[0] + ends[1],
        abs(ends[0] - ends[1]),
    ]


def test_counts_around_a_pair():
    made = pair_structure(GRAPH, PAIRS)
    assert made.shape == (6, COUNT)
    assert made.dtype == torch.float32
    for row, (u, v) in zip(made.tolist(), PAIRS.T.tolist(), strict=True):
        assert row == pytest.approx(by_hand(u, v), rel=1e-6)
    assert torch.equal(pair_structure(GRAPH, PAIRS), made), "also from what is remembered"
    other = Graph.from_edges([(0, 1)], 6)
    assert pair_structure(other, PAIRS)[2].tolist() == [0.0] * 5, "the pair's own edge is left out"


def decoder():
    chosen = choose(DECODERS, "fermi-dirac", {"r": 1.5, "t": 0.7})
    return chosen.entry(chosen.options, Euclidean())


def test_what_is_around_is_added_to_the_log_odds():
    torch.manual_seed(0)
    head = WithStructure(decoder()).double()
    z = torch.randn(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    alone = head.decoder(z, PAIRS)
    assert torch.equal(head(z, PAIRS), alone), "without a graph the decoder answers alone"
    inner = torch.relu(pair_structure(GRAPH, PAIRS).double() @ head.hidden.weight.T + head.hidden.bias)
    assert inner.shape == (6, 16)
    torch.testing.assert_close(head(z, PAIRS, GRAPH), alone + (inner @ head.out.weight.T + head.out.bias)[:, 0])


class Points(Model):
    def __init__(self, points):
        super().__init__()
        self.points = points

    def embed(self, features, graph):
        return self.points


@pytest.mark.parametrize("structure", [False, True])
def test_links_look_around_when_asked(structure):
    ring = Graph.from_edges([(i, (i + 1) % 30) for i in range(30)] + [(i, (i + 2) % 30) for i in range(30)], 30)
    data = Dataset("ring", ring, torch.eye(30))
    problem = LinkPrediction.pose(data, LinkSettings(structure=structure), DataSettings()).with_features(torch.eye(30))
    model = Points(torch.randn(30, 2, generator=torch.Generator().manual_seed(0)))
    torch.manual_seed(0)
    learner = Learner(model, problem.task.head(model, 5), None).eval()
    assert isinstance(learner.head, WithStructure) == structure
    part = problem.parts["test"]
    points = learner.outputs(problem.inputs, problem.graph)
    seen, blind = learner.predict(points, part.items, problem.graph), learner.predict(points, part.items)
    assert torch.equal(seen, blind) != structure
    ids = torch.arange(30).numpy()
    with torch.no_grad():
        held_out = problem.task.held_out_table(Predicted(learner, points, ids), problem)["probability"][-part.size :]
    assert held_out == pytest.approx(torch.sigmoid(seen.detach().double()).numpy(), rel=1e-6)
    with randomness.use(torch.Generator().manual_seed(1)):
        loss = problem.task.loss(learner.train(), problem)
    edges = problem.parts["train"].items
    negatives = problem.extra.sample_training_negatives(edges.shape[1], torch.Generator().manual_seed(1))
    total = 0.0
    for sign, pairs in ((1, edges), (-1, negatives)):
        odds = learner.predict(points, pairs, problem.graph).detach().double()
        total += float(torch.log1p(torch.exp(-sign * odds)).mean())
    assert float(loss.detach()) == pytest.approx(total, rel=1e-5)
