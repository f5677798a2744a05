"""Losses, scores, tables and refusals of every task, against loops written from their definitions."""

import math
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hgde import randomness
from hgde.data import Dataset, DataWarning
from hgde.data.settings import DataSettings
from hgde.data.splits import NodeSplit
from hgde.geometry import Euclidean, PoincareBall
from hgde.graph import Graph
from hgde.models.base import Model
from hgde.sections import SettingsError, choose
from hgde.tasks.base import Learner, Predicted, SelectNodes, TaskError
from hgde.tasks.decoders import DECODERS
from hgde.tasks.links import LinkPrediction, LinkSettings
from hgde.tasks.multilabel import MultiLabel, MultiLabelSettings
from hgde.tasks.nodes import NodeClassification, NodeSettings, disagreement, parse_class_weights
from hgde.tasks.parts import check_split
from hgde.tasks.regression import NodeRegression, RegressionSettings

COUNT = 12
GRAPH = Graph.from_edges(torch.stack([torch.arange(COUNT - 1), torch.arange(1, COUNT)]), COUNT)
SPLIT = NodeSplit(torch.tensor([0, 1, 2, 3, 4]), torch.tensor([5, 6, 7]), torch.tensor([8, 9]), "by hand")
LABELS = torch.tensor([0, 0, 0, 1, 2, 0, 1, 2, 1, 0, -1, -1])
WEIGHTS = torch.linspace(0.5, 2.0, COUNT, dtype=torch.float64)
IDS = np.array([f"n{k}" for k in range(COUNT)])


def logits(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def classes_of(**options):
    weights = options.pop("sample_weights", None)
    data = Dataset("made", GRAPH, torch.eye(COUNT), LABELS, class_names=["a", "b", "c"], sample_weights=weights)
    return NodeClassification.pose_on(data, NodeSettings(**options), SPLIT, allow_overlap=False)


class Fixed(Model):
    """Outputs that are given, one after another."""

    def __init__(self, *outputs):
        super().__init__()
        self.given = list(outputs)

    def forward(self, features, graph):
        return self.given.pop(0)


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("none", [1.0, 1.0, 1.0]),
        ("balanced", [5 / 9, 5 / 3, 5 / 3]),  # 3, 1 and 1 of 5 training nodes
        ("b=3, c=0.5", [1.0, 3.0, 0.5]),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_weighs_classes_and_nodes(text, scale, weighted):
    problem = classes_of(class_weight=text, sample_weights=WEIGHTS if weighted else None)
    part, predictions = problem.parts["train"], logits(5, 3)
    own = WEIGHTS[:5] if weighted else torch.ones(5).double()
    total, norm = 0.0, 0.0
    for row, truth, weight in zip(predictions, part.truth, own, strict=True):
        chance = math.exp(row[truth]) / sum(math.exp(value) for value in row)
        total += float(weight) * scale[truth] * -math.log(chance)
        norm += float(weight) * scale[truth]
    loss = problem.task.discrepancy(predictions, part.truth, part.weights)
    assert float(loss) == pytest.approx(total / norm)
    again = NodeClassification.from_fitted(problem.task.options, problem.task.fitted())
    assert again.classes == ["a", "b", "c"]
    assert float(again.discrepancy(predictions, part.truth, part.weights)) == pytest.approx(float(loss))
    assert problem.parts["val"].weights is None, "scores count every node once"


@pytest.mark.parametrize("text", ["a", "a=x", "a=-1", "a=inf", "a=1,b"])
def test_class_weights_that_mean_nothing_are_refused(text):
    with pytest.raises(SettingsError, match="class_weight must be"):
        parse_class_weights(text)
    with pytest.raises(SettingsError, match="class_weight must be"):
        NodeSettings(class_weight=text).check()


def test_class_weights_are_given_by_name():
    assert parse_class_weights("a=2, b=0") == {"a": 2.0, "b": 0.0}
    NodeSettings(class_weight="a=2").check()
    with pytest.raises(TaskError, match="names class 'z'"):
        classes_of(class_weight="z=1")


def test_two_passes_are_drawn_to_a_sharper_mean():
    problem = classes_of(consistency=0.7, consistency_temperature=0.5)
    problem = problem.with_features(torch.eye(COUNT, dtype=torch.float64))
    one, two = (logits(COUNT, 3, seed=seed).requires_grad_() for seed in (1, 2))
    learner = Learner(Fixed(one, two), SelectNodes(), 3)
    part = problem.parts["train"]
    loss = problem.task.loss(learner, problem)
    supervised = [problem.task.discrepancy(x[part.items], part.truth) for x in (one, two)]
    chances = [x.detach().softmax(-1) for x in (one, two)]
    mean = sum(chances) / 2
    sharp = mean**2 / (mean**2).sum(-1, keepdim=True)
    apart = sum((p - sharp).square().sum(-1).mean() for p in chances) / 2
    assert float(loss) == pytest.approx(float(sum(supervised) / 2 + 0.7 * apart))
    stacked = torch.stack([one, two])
    (slope,) = torch.autograd.grad(disagreement(stacked, 0.5), stacked)
    free = stacked.detach().requires_grad_()
    held = ((free.softmax(-1) - sharp).square().sum(-1).mean(),)
    torch.testing.assert_close(slope, torch.autograd.grad(held, free)[0])


def test_a_table_of_classes():
    problem = classes_of()
    outputs = logits(COUNT, 3)
    table = problem.task.held_out_table(Predicted(None, outputs, IDS), problem)
    chances = outputs.softmax(-1).numpy()
    assert list(table["prediction"]) == [["a", "b", "c"][k] for k in chances.argmax(1)]
    np.testing.assert_allclose(table["confidence"], chances.max(1))
    np.testing.assert_allclose(np.stack([table[f"p_{name}"] for name in "abc"], 1), chances)
    assert list(table["truth"]) == [*"aaabcabcba", "", ""]
    assert list(table["part"]) == ["train"] * 5 + ["val"] * 3 + ["test"] * 2 + ["", ""]
    with pytest.raises(TaskError, match="pairs are for a run on links"):
        problem.task.table(Predicted(None, outputs, IDS, torch.zeros(2, 1)))


def test_splits_that_cannot_be_used_are_refused():
    has_truth = LABELS >= 0

    def nodes(numbers):
        return torch.tensor(numbers, dtype=torch.int64)

    def refuse(train, val, test, words, **options):
        with pytest.raises(TaskError, match=words):
            check_split(
                NodeSplit(nodes(train), nodes(val), nodes(test), ""), has_truth, **{"allow_overlap": False} | options
            )

    refuse([0], [1], [12], "the test part names node 12, but there are 12 nodes")
    refuse([0], [1], [3, 12], "the test part names node 12")
    refuse([0], [1], [-1], "the test part names node -1")
    refuse([0], [11, 10], [2], r"node 11 of the validation part has no label \(2 have none\)")
    refuse([], [1], [2], "must not be empty")
    refuse([0], [], [2], "must not be empty")
    refuse([0, 1], [1], [2], "training and validation part share 1 nodes")
    refuse([0, 1], [3], [0, 1], "training and test part share 2 nodes")
    refuse([0], [3], [3], "validation and test part share 1 nodes")
    check_split(NodeSplit(nodes([0, 1]), nodes([1]), nodes([1]), ""), has_truth, allow_overlap=True)
    check_split(NodeSplit(nodes([0]), nodes([1]), nodes([]), ""), has_truth, allow_overlap=False)


@pytest.mark.parametrize(("count", "expected"), [(60, 27), (8, 1), (1500, 1000), (1007, 1000), (1006, 500)])
def test_few_labels_leave_a_validation_part(count, expected):
    labels = torch.arange(count) % 2
    graph = Graph.from_edges(torch.stack([torch.arange(count - 1), torch.arange(1, count)]), count)
    data = Dataset("made", graph, torch.ones(count, 1), labels)
    problem = NodeClassification.pose(data, NodeSettings(labels_per_class=3), DataSettings())
    assert problem.parts["train"].size == 6
    assert torch.bincount(problem.parts["train"].truth).tolist() == [3, 3]
    assert problem.parts["val"].size == expected


def test_measurements_are_no_classes():
    def pose(values):
        labels = torch.unique(values, return_inverse=True)[1]
        data = Dataset("made", graph, torch.ones(len(values), 1), labels, values=values[:, None])
        return NodeClassification.pose(data, NodeSettings(), DataSettings())

    graph = Graph.from_edges(torch.stack([torch.arange(199), torch.arange(1, 200)]), 200)
    with pytest.raises(TaskError, match=r"200 different numbers such as 0\.5"):
        pose(torch.arange(200).double() + 0.5)
    with pytest.warns(DataWarning, match="200 different whole numbers"), suppress(TaskError):
        pose(torch.arange(200).double())
    assert pose((torch.arange(200) % 3).double()).task.outputs == 3


PRESENT = torch.tensor(
    [[1, 0], [0, 0], [1, -1], [0, 1], [1, 0], [1, 1], [0, 1], [1, 0], [1, 1], [0, 0], [-1, -1], [-1, -1]]
)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_count_where_they_are_known(balanced, weighted):
    sample = WEIGHTS if weighted else None
    data = Dataset("made", GRAPH, torch.eye(COUNT), label_sets=PRESENT.to(torch.int8), sample_weights=sample)
    options = MultiLabelSettings(class_weight="balanced" if balanced else "none")
    problem = MultiLabel.pose_on(data, options, SPLIT)
    presence = [2 / 3, 3 / 1] if balanced else [1.0, 1.0]  # absent for each time present, in training
    part, predictions = problem.parts["train"], logits(5, 2)
    total, norm = 0.0, 0.0
    for i in range(5):
        for k in range(2):
            value, weight = int(PRESENT[i, k]), float(WEIGHTS[i]) if weighted else 1.0
            if value >= 0:
                chance = 1 / (1 + math.exp(-float(predictions[i, k])))
                each = -presence[k] * math.log(chance) if value else -math.log(1 - chance)
                total, norm = total + weight * each, norm + weight
    for task in (problem.task, MultiLabel.from_fitted(options, problem.task.fitted())):
        assert float(task.discrepancy(predictions, part.truth, part.weights)) == pytest.approx(total / norm)
    assert problem.task.names == ["label0", "label1"]
    assert problem.task.outputs == 2
    table = problem.task.held_out_table(Predicted(None, torch.tensor([[0.1, -0.1], [1.0, 1.0]] * 6), IDS), problem)
    assert list(table["prediction"][:2]) == ["label0", "label0 label1"]
    assert list(table["truth_label1"][:3]) == ["0", "0", ""]
    assert table["truth_label0"][10] == ""


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_scaled_by_the_training_part(robust, weighted):
    values = torch.stack([torch.arange(COUNT).double() ** 2, torch.full((COUNT,), 7.0).double()], 1)
    values[2, 0] = math.nan
    values[10:] = math.nan
    sample = WEIGHTS if weighted else None
    data = Dataset(
        "made", GRAPH, torch.eye(COUNT), values=values, target_names=["size", "seven"], sample_weights=sample
    )
    problem = NodeRegression.pose_on(data, RegressionSettings(robust=robust), SPLIT)
    train = np.array([0.0, 1.0, 9.0, 16.0])
    assert problem.task.outputs == 2
    assert problem.task.mean.tolist() == pytest.approx([train.mean(), 7.0])
    assert problem.task.scale.tolist() == pytest.approx([train.std(), 1.0]), "1 where nothing varies"
    part, predictions = problem.parts["train"], 2 * logits(5, 2)
    total, norm = 0.0, 0.0
    for i in range(5):
        for k in range(2):
            if not math.isnan(values[i, k]):
                gap = float(predictions[i, k] - (values[i, k] - problem.task.mean[k]) / problem.task.scale[k])
                small = abs(gap) <= 1
                each = (0.5 * gap**2 if small else abs(gap) - 0.5) if robust else gap**2
                weight = float(WEIGHTS[i]) if weighted else 1.0
                total, norm = total + weight * each, norm + weight
    again = NodeRegression.from_fitted(problem.task.options, problem.task.fitted())
    for task in (problem.task, again):
        assert float(task.discrepancy(predictions, part.truth, part.weights)) == pytest.approx(total / norm)
    exact = (values[:8] - problem.task.mean) / problem.task.scale
    scores = again.scores(exact[5:8], problem.parts["val"].truth)
    assert scores["rmse"] == pytest.approx(0.0, abs=1e-12)
    shifted = again.scores(exact[5:8] + 1, problem.parts["val"].truth)
    assert shifted["mae"] == pytest.approx((train.std() + 1) / 2), "in the units of the values"
    assert shifted["loss"] == pytest.approx(0.5 if robust else 1.0)
    table = again.held_out_table(Predicted(None, torch.zeros(COUNT, 2), IDS), problem)
    np.testing.assert_allclose(table["prediction_size"], train.mean())
    np.testing.assert_allclose(table["truth_size"], values[:, 0])


def test_links_are_learned_against_as_many_fresh_pairs():
    generator = torch.Generator().manual_seed(3)
    ring = torch.stack([torch.arange(30), (torch.arange(30) + 1) % 30])
    data = Dataset("ring", Graph.from_edges(ring, 30), torch.eye(30))
    problem = LinkPrediction.pose(data, LinkSettings(), DataSettings()).with_features(torch.eye(30))
    points = logits(30, 2)
    task, split, edges = problem.task, problem.extra, problem.parts["train"].items

    class Points(Fixed):
        def embed(self, features, graph):
            self.graph = graph
            return points

    model = Points()
    learner = Learner(model, task.head(model, 5), None)
    with randomness.use(generator):
        loss = task.loss(learner, problem)
    negatives = split.sample_training_negatives(edges.shape[1], torch.Generator().manual_seed(3))
    total = 0.0
    for linked, pairs in ((True, edges), (False, negatives)):
        for u, v in pairs.T:
            odds = 2.0 - float((points[u] - points[v]).square().sum())
            chance = 1 / (1 + math.exp(-odds))
            total -= math.log(chance if linked else 1 - chance) / edges.shape[1]
    assert float(loss) == pytest.approx(total), "the mean over edges and the mean over the others"
    hiding = LinkPrediction(LinkSettings(hidden_edges=0.3))
    with randomness.use(generator):
        hiding.loss(learner, problem)
    left, count = len(model.graph.undirected_edges[0]), edges.shape[1]
    assert left == count - round(0.3 * count)
    assert hiding._hide(edges[:, :2], problem.graph)[0].shape == (2, 1), "at least one"


def test_a_table_of_pairs():
    ring = torch.stack([torch.arange(30), (torch.arange(30) + 1) % 30])
    data = Dataset("ring", Graph.from_edges(ring, 30), torch.eye(30))
    problem = LinkPrediction.pose(data, LinkSettings(fermi_r=1.0, fermi_t=0.5), DataSettings())
    points, ids = logits(30, 2), np.arange(30) * 10
    learner = Learner(Fixed(), problem.task.head(Fixed(), 5), None).eval()
    learner.temperature.fill_(2.0)
    table = problem.task.held_out_table(Predicted(learner, points, ids), problem)
    val, test = (problem.parts[name] for name in ("val", "test"))
    assert list(table["part"]) == ["val"] * val.size + ["test"] * test.size
    assert table["truth"].tolist() == [*val.truth.tolist(), *test.truth.tolist()]
    assert val.truth.tolist() == [1] * (val.size // 2) + [0] * (val.size // 2)
    u, v = val.items[:, 0]
    assert (table["source"][0], table["target"][0]) == (10 * u, 10 * v)
    odds = (1.0 - float((points[u] - points[v]).square().sum())) / 0.5 / 2.0
    assert table["probability"][0] == pytest.approx(1 / (1 + math.exp(-odds)))
    with pytest.raises(TaskError, match="--pairs"):
        problem.task.table(Predicted(learner, points, ids))
    for name in ("val", "test"):
        pairs = problem.parts[name].items
        graph_pairs = {(min(e), max(e)) for e in problem.graph.undirected_edges.T.tolist()}
        assert not graph_pairs & {(min(e), max(e)) for e in pairs.T.tolist()}


@pytest.mark.parametrize("learn", [False, True])
def test_fermi_dirac_falls_with_squared_distance(learn):
    ball = PoincareBall(0.8)
    z = ball.expmap0(0.4 * logits(6, 3))
    pairs = torch.tensor([[0, 1, 2], [3, 4, 5]])
    chosen = choose(DECODERS, "fermi-dirac", {"r": 1.5, "t": 0.7, "learn": learn})
    decoder = chosen.entry(chosen.options, ball).double()
    expected = (1.5 - ball.dist(z[:3], z[3:]) ** 2) / 0.7
    torch.testing.assert_close(decoder(z, pairs), expected, rtol=1e-6, atol=1e-6)
    assert len(list(decoder.parameters())) == (2 if learn else 0)
    dot = choose(DECODERS, "dot")
    odds = dot.entry(dot.options, ball)(z, pairs)
    torch.testing.assert_close(odds, (ball.logmap0(z[:3]) * ball.logmap0(z[3:])).sum(-1))


def test_settings_of_another_decoder_are_refused():
    model = SimpleNamespace(pair_decoder="dot", manifold=Euclidean())
    assert type(LinkPrediction(LinkSettings()).head(model, 5)).__name__ == "DotProduct"
    chosen = LinkPrediction(LinkSettings(decoder="fermi-dirac", fermi_t=3.0)).head(model, 5)
    assert chosen.t == 3.0
    for name, value in (("fermi_r", 1.0), ("fermi_t", 2.0), ("learn_fermi", True)):
        with pytest.raises(SettingsError, match=f"task.{name} has no effect"):
            LinkPrediction(LinkSettings(**{name: value})).head(model, 5)


def test_the_temperature_fits_the_validation_part():
    task = classes_of().task
    generator = torch.Generator().manual_seed(0)
    right = torch.randn(400, 3, generator=generator, dtype=torch.float64)
    truth = torch.multinomial(right.softmax(-1), 1, generator=generator).squeeze(1)
    assert task.temperature(2.5 * right, truth) == pytest.approx(2.5 * task.temperature(right, truth), rel=0.05)
    assert task.temperature(right, truth) == pytest.approx(1.0, abs=0.25)
    assert task.temperature(100 * right, truth) == pytest.approx(math.exp(1.4), rel=0.01), "bounded"
    assert task.temperature(2.5 * right[:29], truth[:29]) == 1.0
    assert task.temperature(2.5 * right[:30], truth[:30]) != 1.0
    repeated = task.temperature(2.5 * right[:30].repeat(9, 1), truth[:30].repeat(9))
    assert 1.0 < task.temperature(2.5 * right[:30], truth[:30]) < repeated, "few items move it less far"
    flat = task.temperature(torch.zeros(60, 3), truth[:60])
    assert flat == pytest.approx(1.0, abs=0.01), "where the truth says nothing it stays what it was thought to be"


def test_log_odds_are_divided_by_the_temperature_only_when_scoring():
    outputs = logits(COUNT, 3)
    learner = Learner(Fixed(outputs, outputs), SelectNodes(), 3)
    learner.temperature.fill_(4.0)
    assert torch.equal(learner.train().outputs(None, GRAPH), outputs)
    torch.testing.assert_close(learner.eval().outputs(None, GRAPH), outputs / 4)
    items = torch.tensor([3, 1])
    assert torch.equal(learner.predict(outputs, items), outputs[items])


def test_features_that_cannot_be_used_are_refused():
    problem = classes_of()
    with pytest.raises(TaskError, match="no input features yet"):
        _ = problem.inputs
    bad = torch.ones(COUNT, 3)
    bad[4, 2] = math.nan
    bad[7, 1] = math.inf
    with pytest.raises(TaskError, match=r"feature 2 of node 4 is nan.*\(2 are not\)"):
        problem.with_features(bad)
    with pytest.raises(TaskError, match="11 rows of features for 12 nodes"):
        problem.with_features(torch.ones(11, 3))
    with pytest.raises(TaskError, match="no features"):
        problem.with_features(torch.ones(COUNT, 0))
