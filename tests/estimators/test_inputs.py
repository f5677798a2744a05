"""The estimators: scikit-learn's own checks, every kind of input, and what a user relies on."""

import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from hgde.data.sets.disease_sim import simulate_disease
from hgde.estimators import HGDEClassifier, HGDEEmbedder, HGDELinkPredictor
from hgde.graph import Graph, GraphError
from hgde.sections import SettingsError

QUICK = {"preset": "none", "width": 4, "time": 1.0, "epochs": 10, "lr": 0.2, "dropout": 0.0}


@pytest.fixture(scope="module")
def epidemic():
    return simulate_disease(seed=1, num_nodes=150, signal=1.5)


@pytest.fixture(scope="module")
def arrays(epidemic):
    """Features, labels with two thirds of them hidden, and the truth."""
    truth = epidemic.labels.numpy()
    hidden = truth.copy()
    hidden[np.random.default_rng(0).permutation(truth.size)[:100]] = -1
    return epidemic.features.numpy(), hidden, truth


def as_networkx(graph: Graph) -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from(f"person {k}" for k in range(graph.num_nodes))
    made.add_edges_from((f"person {u}", f"person {v}") for u, v in graph.undirected_edges.T.tolist())
    return made


GRAPHS = {
    "graph": lambda g: {"graph": g},
    "scipy": lambda g: {"graph": g.to_scipy()},
    "dense": lambda g: {"graph": g.to_scipy().toarray()},
    "networkx": lambda g: {"graph": as_networkx(g)},
    "torch": lambda g: {"edge_index": g.edge_index},
    "numpy": lambda g: {"edge_index": g.undirected_edges.numpy()},
    "pyg": lambda g: {"graph": Data(edge_index=g.edge_index, num_nodes=g.num_nodes)},
}
ROWS = {"numpy": np.asarray, "torch": torch.as_tensor, "list": lambda x: x.tolist()}


@pytest.fixture(scope="module")
def reference(epidemic, arrays):
    X, y, _ = arrays
    model = HGDEClassifier(**QUICK).fit(X, y, graph=epidemic.graph)
    return model, model.predict_proba(X)


@pytest.mark.parametrize("kind", GRAPHS)
def test_every_kind_of_graph_gives_the_same_model(kind, epidemic, arrays, reference):
    X, y, _ = arrays
    given = GRAPHS[kind](epidemic.graph)
    fitted = HGDEClassifier(**QUICK).fit(X, y, **given)
    np.testing.assert_array_equal(fitted.predict_proba(X, **given), reference[1])


@pytest.mark.parametrize("kind", ROWS)
def test_every_kind_of_rows_gives_the_same_model(kind, epidemic, arrays, reference):
    X, y, _ = arrays
    rows = ROWS[kind](X)
    fitted = HGDEClassifier(**QUICK).fit(rows, ROWS[kind](y), graph=epidemic.graph)
    np.testing.assert_array_equal(fitted.predict_proba(rows), reference[1])


def test_objects_that_hold_everything(epidemic, arrays, reference):
    X, y, truth = arrays
    data = Data(x=torch.as_tensor(X), edge_index=epidemic.graph.edge_index, y=torch.as_tensor(y))
    np.testing.assert_array_equal(HGDEClassifier(**QUICK).fit(data).predict_proba(data), reference[1])
    tree = as_networkx(epidemic.graph)
    for node, row, label in zip(tree, X, y, strict=True):
        tree.nodes[node].update(x=row, label="" if label < 0 else ("well", "ill")[label])
    fitted = HGDEClassifier(**QUICK).fit(tree)
    assert set(fitted.predict(tree)) == {"ill", "well"}
    np.testing.assert_allclose((fitted.predict(tree) == np.array(["well", "ill"])[truth]).mean(), 0.8, atol=0.2)


def test_masks_of_a_pyg_object_are_obeyed(epidemic, arrays):
    X, _, truth = arrays
    part = np.arange(truth.size) % 3
    masks = {name: torch.as_tensor(part == k) for k, name in enumerate(("train_mask", "val_mask", "test_mask"))}
    pieces = {"x": torch.as_tensor(X), "edge_index": epidemic.graph.edge_index}
    honest = HGDEClassifier(**QUICK).fit(Data(**pieces, y=torch.as_tensor(truth), **masks))
    spoilt = torch.as_tensor(np.where(part == 2, 1 - truth, truth))
    other = HGDEClassifier(**QUICK).fit(Data(**pieces, y=spoilt, **masks))
    np.testing.assert_array_equal(honest.predict_proba(X), other.predict_proba(X))


def test_sparse_rows_stay_sparse_and_agree_with_dense_ones(epidemic, arrays):
    X, y, _ = arrays
    X = np.where(X > 0.5, X, 0)
    dense = HGDEClassifier(**QUICK, normalise="unit").fit(X, y, graph=epidemic.graph)
    thin = HGDEClassifier(**QUICK).fit(sparse.csr_matrix(X), y, graph=epidemic.graph)
    np.testing.assert_allclose(thin.predict_proba(sparse.csr_matrix(X)), dense.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize(
    ("names", "unlabelled"),
    [(np.array([3, 7]), -1), (np.array(["ill", "well"]), "-1"), (np.array(["ill", "well"], dtype=object), None)],
)
def test_labels_of_any_type_come_back(names, unlabelled, epidemic, arrays, reference):
    X, y, truth = arrays
    named = np.array([unlabelled if code < 0 else names[code] for code in y], dtype=names.dtype)
    fitted = HGDEClassifier(**QUICK).fit(X, named, graph=epidemic.graph)
    assert list(fitted.classes_) == list(names)
    np.testing.assert_array_equal(fitted.predict(X), names[reference[1].argmax(1)])
    assert fitted.score(X, named) == pytest.approx((fitted.predict(X) == names[truth])[y >= 0].mean())


def test_it_learns_from_few_labels_what_the_features_alone_do_not_tell(epidemic, arrays):
    X, y, truth = arrays
    fitted = HGDEClassifier(width=8, time=4, epochs=60, lr=0.05, dropout=0.0).fit(X, y, graph=epidemic.graph)
    hidden = y < 0
    assert (fitted.predict(X) == truth)[hidden].mean() > 0.8
    assert fitted.curvature_ < 0
    assert fitted.n_iter_ <= 60
    assert fitted.history_[-1]["loss"] < fitted.history_[0]["loss"]


def test_without_a_graph_neighbours_are_joined_and_new_rows_are_predicted():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 3)) + 4 * (np.arange(120) % 3)[:, None]
    y = np.arange(120) % 3
    fitted = HGDEClassifier(**QUICK).fit(X[:80], y[:80])
    assert fitted.graph_.num_nodes == 80
    assert fitted.score(X[80:], y[80:]) > 0.9
    assert fitted.predict(X[80:81]).shape == (1,)


def test_a_graph_is_never_guessed(epidemic, arrays, reference):
    X, _, _ = arrays
    with pytest.raises(ValueError, match=r"fitted with a graph.*give their graph"):
        reference[0].predict(X[:50])
    part = epidemic.graph.subgraph(torch.arange(50))
    assert reference[0].predict(X[:50], graph=part).shape == (50,)


@pytest.mark.parametrize("cls", [HGDEClassifier, HGDEEmbedder, HGDELinkPredictor])
def test_clone_and_pickle(cls, epidemic, arrays):
    X, y, _ = arrays
    model = cls(**QUICK, eta=(1.0, 0.2, 0.2))
    assert clone(model).get_params() == model.get_params()
    fitted = model.fit(X, y, graph=epidemic.graph)
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))
    again = clone(fitted).fit(X, y, graph=epidemic.graph)
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


def test_grid_search_and_pipeline(arrays):
    X, _, truth = arrays
    pipeline = make_pipeline(StandardScaler(), HGDEClassifier(**QUICK | {"epochs": 5}))
    name = "hgdeclassifier__"
    search = GridSearchCV(pipeline, {f"{name}width": [2, 4], f"{name}method": ["heuler", "rk4"]}, cv=2)
    search.fit(X, truth)
    assert search.best_params_[f"{name}width"] in (2, 4)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_fitting_leaves_the_random_state_of_torch_alone(epidemic, arrays):
    X, y, _ = arrays
    before = torch.get_rng_state()
    HGDEClassifier(**QUICK).fit(X, y, graph=epidemic.graph).predict(X)
    assert torch.equal(torch.get_rng_state(), before)


def test_random_state_decides(epidemic, arrays):
    X, y, _ = arrays
    one, same, other = (
        HGDEClassifier(**QUICK, random_state=state).fit(X, y, graph=epidemic.graph).predict_proba(X)
        for state in (5, np.int64(5), 6)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_given_validation_nodes_are_the_ones_used(epidemic, arrays):
    X, y, _ = arrays
    labelled = np.flatnonzero(y >= 0)
    held = labelled[:15]
    spoilt = y.copy()
    spoilt[held] = 1 - spoilt[held]
    fits = [HGDEClassifier(**QUICK).fit(X, labels, graph=epidemic.graph, validation=held) for labels in (y, spoilt)]
    losses = [[epoch["loss"] for epoch in fit.history_] for fit in fits]
    assert losses[0] == losses[1], "validation labels must not enter the training loss"
    assert fits[0].validation_score_ != fits[1].validation_score_


def test_one_label_a_class_is_enough_to_fit(epidemic, arrays):
    X, _, truth = arrays
    y = np.full(truth.size, -1)
    y[[int(np.flatnonzero(truth == k)[0]) for k in (0, 1)]] = (0, 1)
    assert HGDEClassifier(**QUICK).fit(X, y, graph=epidemic.graph).predict(X).shape == truth.shape


class TestRefusals:
    def test_wrong_parameter(self, arrays):
        with pytest.raises(SettingsError, match="did you mean 'heuler'"):
            HGDEClassifier(method="heulr").fit(arrays[0], arrays[2])
        with pytest.raises(ValueError, match="validation_fraction"):
            HGDEClassifier(validation_fraction=1.5).fit(arrays[0], arrays[2])

    def test_graph_of_other_nodes(self, epidemic, arrays):
        with pytest.raises(GraphError, match="149 nodes, X has 150 rows"):
            HGDEClassifier().fit(arrays[0], arrays[2], graph=epidemic.graph.subgraph(torch.arange(149)))
        with pytest.raises(GraphError, match=r"edge 0 is \(0, 150\)"):
            HGDEClassifier().fit(arrays[0], arrays[2], edge_index=[[0], [150]])

    def test_two_graphs(self, epidemic, arrays):
        with pytest.raises(ValueError, match="either graph or edge_index"):
            HGDEClassifier().fit(arrays[0], arrays[2], graph=epidemic.graph, edge_index=epidemic.graph.edge_index)

    def test_no_labels(self, epidemic, arrays):
        with pytest.raises(ValueError, match="needs two classes"):
            HGDEClassifier().fit(arrays[0], np.full(150, -1), graph=epidemic.graph)

    def test_features_that_are_not_numbers(self, epidemic, arrays):
        X = arrays[0].copy()
        X[3, 2] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            HGDEClassifier().fit(X, arrays[2], graph=epidemic.graph)


@pytest.fixture(scope="module")
def fitted(epidemic, arrays):
    quick = QUICK | {"epochs": 40, "time": 2.0, "lr": 0.02}
    return HGDELinkPredictor(**quick).fit(arrays[0], graph=epidemic.graph)


class TestLinks:
    def test_edges_are_told_from_non_edges(self, fitted, epidemic):
        edges = epidemic.graph.undirected_edges.T.numpy()
        others = np.random.default_rng(0).integers(0, 150, size=edges.shape)
        truth = np.r_[np.ones(len(edges)), np.zeros(len(others))]
        assert fitted.score(np.r_[edges, others], truth) > 0.7
        probabilities = fitted.predict_proba(torch.as_tensor(edges))
        np.testing.assert_allclose(probabilities.sum(1), 1)
        np.testing.assert_array_equal(fitted.predict(edges), (probabilities[:, 1] > 0.5).astype(int))

    def test_other_nodes(self, fitted, arrays, epidemic):
        part = epidemic.graph.subgraph(torch.arange(40))
        assert fitted.predict_proba([[0, 39]], X=arrays[0][:40], graph=part).shape == (1, 2)

    @pytest.mark.parametrize(
        ("pairs", "words"), [([[0, 150]], "pair 0 is"), ([[0.5, 1.0]], "whole numbers"), ([0, 1], r"\[M, 2\]")]
    )
    def test_pairs_that_are_none(self, fitted, pairs, words):
        with pytest.raises(ValueError, match=words):
            fitted.predict(pairs)

    def test_too_few_edges(self):
        with pytest.raises(GraphError, match="at least 2 edges"):
            HGDELinkPredictor(**QUICK).fit(np.eye(3), edge_index=[[0], [1]])


def test_embedder_gives_points_of_the_disk_where_joined_nodes_are_near(epidemic, arrays):
    embedder = HGDEEmbedder(preset="none", width=2, time=2, epochs=40, lr=0.02, dropout=0.0)
    points = embedder.fit_transform(arrays[0], graph=epidemic.graph)
    assert points.shape == (150, 2)
    assert (np.sqrt(-embedder.curvature_) * np.linalg.norm(points, axis=1) < 1).all()
    u, v = epidemic.graph.undirected_edges.numpy()
    random = np.random.default_rng(0).permutation(150)
    near = np.linalg.norm(points[u] - points[v], axis=1).mean()
    assert near < 0.7 * np.linalg.norm(points - points[random], axis=1).mean()
    assert list(embedder.get_feature_names_out()) == ["z0", "z1"]
