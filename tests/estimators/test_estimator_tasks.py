"""Each kind of task and input through an estimator; each beats a predictor that learned nothing."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score

import made_graphs
from hgde.data import DataError
from hgde.estimators import HGDEClassifier, HGDEMultiLabelClassifier, HGDERegressor
from hgde.graph import GraphError

LEARN = {"preset": "none", "width": 8, "time": 2, "dropout": 0.0, "lr": 0.05, "epochs": 60, "threads": 1}


def hidden(made, unknown):
    """The target with that of the test part hidden, and where that is."""
    target = made.nodes[made.targets].to_numpy()
    target = target[:, 0] if target.shape[1] == 1 else target
    test = made.part == "test"
    shown = target.copy()
    shown[test] = unknown
    return shown, target, test


def classify(made, **options):
    shown, target, test = hidden(made, None)
    model = HGDEClassifier(**LEARN | made.options | options).fit(made.frame, shown, graph=made.graph())
    return target[test], model.predict(made.frame)[test]


def accuracy(made, **options):
    truth, predicted = classify(made, **options)
    return (truth == predicted).mean()


def test_regression():
    made = made_graphs.regression()
    shown, target, test = hidden(made, np.nan)
    model = HGDERegressor(**LEARN).fit(made.frame, shown, graph=made.graph())
    predicted = model.predict(made.frame)
    assert predicted.shape == target.shape
    rest = np.square(target - predicted)[test].sum() / np.square(target - target[test].mean())[test].sum()
    assert 1 - rest > 0.6  # the mean scores 0
    assert model.score(made.frame, np.where(test, target, np.nan)) == pytest.approx(1 - rest)


def test_several_values_with_gaps():
    made = made_graphs.regression()
    shown, target, test = hidden(made, np.nan)
    both = np.stack([shown, 3 * made.frame["n0"].to_numpy()], axis=1)
    both[::7, 1] = np.nan
    predicted = HGDERegressor(**LEARN).fit(made.frame, both, graph=made.graph()).predict(made.frame)
    assert predicted.shape == both.shape
    assert np.corrcoef(predicted[test, 0], target[test])[0, 1] > 0.7


def test_multilabel():
    made = made_graphs.multilabel()
    shown, target, test = hidden(made, -1)
    model = HGDEMultiLabelClassifier(**LEARN).fit(made.frame, shown, graph=made.graph())
    predicted = model.predict(made.frame)[test]
    for label in range(2):
        truth = target[test, label]
        assert f1_score(truth, predicted[:, label]) > f1_score(truth, np.ones_like(truth)) + 0.1
    assert ((model.predict_proba(made.frame) > 0.5) == model.predict(made.frame)).all()


def test_weighted_edges():
    made = made_graphs.weighted()
    heeded = accuracy(made)
    made.weights = None
    assert heeded > 0.9
    assert heeded > accuracy(made) + 0.1


@pytest.mark.parametrize("form", ["scipy", "networkx"])
def test_weights_in_other_forms(form):
    made = made_graphs.weighted()
    shown, target, test = hidden(made, None)
    if form == "scipy":
        graph = made.graph().to_scipy(weighted=True)
    else:
        graph = nx.Graph()
        names = made.nodes.index
        graph.add_weighted_edges_from(
            (names[u], names[v], w) for (u, v), w in zip(made.edges, made.weights, strict=True)
        )
    model = HGDEClassifier(**LEARN).fit(made.frame, shown, graph=graph)
    assert model.graph_.weights is not None
    assert (model.predict(made.frame) == target)[test].mean() > 0.9


def test_directed_edges():
    made = made_graphs.directed()
    along = accuracy(made)
    made.directed = False
    assert along > 0.8  # a constant scores 0.5
    assert along > accuracy(made)


@pytest.mark.parametrize("weight", ["balanced", {"ill": 9.0}])
def test_class_weights(weight):
    made = made_graphs.rare()
    plain, weighted = (balanced_accuracy_score(*classify(made, class_weight=w)) for w in (None, weight))
    assert weighted > plain + 0.05
    assert weighted > 0.65  # a constant scores 0.5


def test_sample_weights():
    """Nodes of the rare class that count ninefold are found more often; weights of unlabelled nodes do not matter."""
    made = made_graphs.rare()
    shown, target, test = hidden(made, None)
    weight = np.where(target == "ill", 9.0, 1.0)
    fits = [HGDEClassifier(**LEARN).fit(made.frame, shown, w, graph=made.graph()) for w in (None, weight)]
    plain, weighted = (balanced_accuracy_score(target[test], fit.predict(made.frame)[test]) for fit in fits)
    assert weighted > plain + 0.05
    again = HGDEClassifier(**LEARN).fit(made.frame, shown, np.where(test, 123.0, weight), graph=made.graph())
    np.testing.assert_array_equal(again.predict_proba(made.frame), fits[1].predict_proba(made.frame))


def test_categories_and_gaps():
    made = made_graphs.categories()
    assert made.frame["age"].isna().any()
    assert accuracy(made) > 0.7  # a constant scores 0.5


class TestNames:
    @pytest.fixture(scope="class")
    def made(self):
        return made_graphs.categories()

    @pytest.fixture(scope="class")
    def fitted(self, made):
        return HGDEClassifier(**LEARN | {"epochs": 5}).fit(made.frame, hidden(made, None)[0], graph=made.graph())

    def test_columns_are_matched_by_name(self, made, fitted):
        turned = made.frame[made.frame.columns[::-1]]
        np.testing.assert_array_equal(
            fitted.predict_proba(turned, graph=made.graph()), fitted.predict_proba(made.frame, graph=made.graph())
        )

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda frame: frame.rename(columns={"age": "years"}), "column 'age' is missing"),
            (lambda frame: frame.drop(columns="colour"), "column 'colour' is missing"),
            (lambda frame: frame.assign(height=1.0), "column 'height' was not among the training columns"),
        ],
    )
    def test_other_columns_are_refused_by_name(self, made, fitted, change, words):
        with pytest.raises(DataError, match=words):
            fitted.predict(change(made.frame), graph=made.graph())

    def test_a_networkx_graph_is_matched_to_the_index(self, made, fitted):
        names = made.nodes.index
        graph = nx.Graph()
        graph.add_nodes_from(sorted(names))  # another order than that of the rows
        graph.add_edges_from((names[u], names[v]) for u, v in made.edges)
        other = HGDEClassifier(**LEARN | {"epochs": 5}).fit(made.frame, hidden(made, None)[0], graph=graph)
        np.testing.assert_array_equal(other.predict_proba(made.frame), fitted.predict_proba(made.frame))
        graph.add_edge(names[0], "nobody")
        with pytest.raises(GraphError, match="'nobody' of the graph is not in the index"):
            HGDEClassifier(**LEARN).fit(made.frame, hidden(made, None)[0], graph=graph)

    def test_unknown_categories_count_as_none(self, made, fitted):
        frame = made.frame.copy()
        frame.iloc[0, frame.columns.get_loc("colour")] = "violet"
        with pytest.warns(UserWarning, match="violet"):
            assert fitted.predict(frame, graph=made.graph()).shape == (len(frame),)


def test_continuous_labels_are_refused():
    made = made_graphs.regression()
    with pytest.raises(ValueError, match="continuous"):
        HGDEClassifier(**LEARN).fit(made.frame, made.nodes["income"], graph=made.graph())


def test_a_frame_of_categories_needs_no_graph():
    made = made_graphs.categories()
    model = HGDEClassifier(**LEARN | {"epochs": 5}).fit(made.frame, made.nodes["class"])
    assert isinstance(made.frame, pd.DataFrame)
    assert model.graph_.num_nodes == len(made.frame)
