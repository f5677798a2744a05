"""Labels around a node: what is read of them, and that a node's own label is never among it."""

import numpy as np
import pytest
import torch

from hgde import Graph
from hgde.models.base import MODELS, Shape
from hgde.models.hgde import HGDE
from hgde.sections import SettingsError, from_dict
from hgde.tasks import TASKS
from hgde.tasks.base import Learner, Part
from hgde.tasks.evidence import LabelEvidence, evidence

RANDOM = np.random.RandomState(0)
CLASSES = 3


def random_graph(num_nodes=40, num_edges=50):
    return Graph.from_edges(RANDOM.randint(0, num_nodes, (2, num_edges)), num_nodes)


def test_a_nodes_own_label_is_not_among_what_it_sees():
    """With one label changed, the frequencies of all change a little; put right for these, what its node sees stays."""
    graph, nodes = random_graph(), np.arange(0, 40, 2)
    labels = np.arange(nodes.size) % CLASSES
    one, two = 4, 5  # of classes 1 and 2: swapped, so that frequencies stay
    swapped = labels.copy()
    swapped[[one, two]] = labels[[two, one]]
    before, after = (direction(evidence(graph, given, nodes, CLASSES)) for given in (labels, swapped))
    neighbours = graph.to_scipy()
    for own, other in ((nodes[one], nodes[two]), (nodes[two], nodes[one])):
        reach = neighbours + neighbours @ neighbours
        assert reach[own, other] == 0, "the two must not see each other, or the test says nothing"
        np.testing.assert_allclose(before[own], after[own], atol=1e-6)
    assert not np.allclose(before, after)


def direction(table):
    """Labels one and two steps away, whatever the scale of the whole table."""
    near, far = table[:, :CLASSES].astype(np.float64), table[:, CLASSES : 2 * CLASSES].astype(np.float64)
    lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in (near, far)]
    return np.concatenate(
        [part / np.maximum(length, 1e-9) for part, length in zip((near, far), lengths, strict=True)], 1
    )


def test_counts_by_hand():
    """A star: the centre has no label, of its leaves two are of class 0 and one of class 1."""
    star = Graph.from_edges(np.array([[0, 0, 0], [1, 2, 3]]), 4)
    table = evidence(star, np.array([0, 0, 1]), np.array([1, 2, 3]), 2)
    prior = np.array([3 / 5, 2 / 5])
    ratio = np.log((np.array([2, 1]) + prior) / (3 + 1) / prior)
    near, far = table[:, :2], table[:, 2:4]
    np.testing.assert_allclose(near[0] / np.linalg.norm(near[0]), ratio / np.linalg.norm(ratio), rtol=1e-5)
    np.testing.assert_allclose(near[1:], 0, atol=1e-6)
    # A leaf of class 0 sees one leaf of each class two steps away, the leaf of class 1 sees two of class 0.
    assert far[3, 0] > far[1, 0]
    assert far[1, 1] > far[3, 1]
    np.testing.assert_allclose(far[1], far[2])


def test_on_another_graph_nothing_is_known():
    graph = random_graph()
    part = LabelEvidence(40, CLASSES).eval()
    part.observe(graph, torch.zeros(10, dtype=torch.int64), torch.arange(10))
    with torch.no_grad():
        known, other, larger = part(graph), part(random_graph()), part(random_graph(55))
    assert other.shape == (40, CLASSES)
    assert larger.shape == (55, CLASSES)
    assert torch.equal(other, other[:1].expand_as(other))
    assert not torch.equal(known, other)
    again = LabelEvidence(40, CLASSES).eval()
    again.load_state_dict(part.state_dict())
    with torch.no_grad():
        assert torch.equal(again(graph), known)


def test_it_is_for_classes_alone():
    with pytest.raises(ValueError, match="one class per node"):
        LabelEvidence(40, CLASSES).observe(random_graph(), torch.rand(10), torch.arange(10))
    for task in ("links", "regression", "multilabel"):
        with pytest.raises(SettingsError, match="labels"):
            from_dict(TASKS.get(task).Settings, {"labels": True})


@pytest.mark.parametrize("name", ["hgde", "gcn", "mlp"])
def test_a_learner_adds_it_to_the_scores_of_any_model(name):
    """Some nodes read out by themselves, or all and then some: the same scores, and with labels others."""
    graph, features, chosen = random_graph(), torch.rand(40, 3), torch.tensor([3, 31, 39])
    kind, task = MODELS.get(name), TASKS.get("nodes")
    options = task.Settings(labels=True)
    model = kind(from_dict(kind.Settings, {"dropout": 0.0}), Shape(3, 40, CLASSES))
    fitted = task(options, ["a", "b", "c"])
    learner = Learner(model, fitted.head(model, 40), CLASSES).eval()
    with torch.no_grad():
        before = learner.outputs(features, graph)
        learner.observe(graph, Part(torch.arange(30), torch.arange(30) % CLASSES))
        after = learner.outputs(features, graph)
        torch.testing.assert_close(learner(features, graph, chosen), after[chosen])
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after - before, learner.evidence(graph) - learner.evidence(random_graph()))
    assert Learner(model, task(task.Settings(), ["a", "b", "c"]).head(model, 40), CLASSES).evidence is None


def test_a_nodes_own_features_are_read_apart_from_its_neighbours():
    """With everything that came along edges read as nothing, features of the node itself decide, no one else's."""
    graph, features = random_graph(), torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    settings = HGDE.Settings(width=4, time=2.0, own_readout=True)
    model = HGDE(settings, Shape(in_features=5, num_nodes=40, outputs=CLASSES)).eval()
    assert not model.reads_out_each
    whole = model(features, graph)
    torch.nn.init.zeros_(model.decoder.linear.weight)
    own = model(features, graph)
    assert not torch.allclose(whole, own)
    changed = features.clone()
    changed[7] += 1
    differs = ((model(changed, graph) - own).abs() > 1e-6).any(1)
    assert differs.nonzero().flatten().tolist() == [7]
    with pytest.raises(SettingsError, match="own_readout has no effect"):
        HGDE(settings, Shape(in_features=5, num_nodes=40, outputs=None))
