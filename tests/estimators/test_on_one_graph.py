"""scikit-learn's tools on one graph, read from CSV: labels are hidden, rows and edges stay."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hgde import Dataset, Graph, HGDEClassifier, HGDEClassifierCV, HGDEMultiLabelClassifier, HGDERegressor, Nodes
from hgde.data.sets.disease_sim import simulate_disease
from hgde.experiments.tune import tune

QUICK = {"preset": "none", "width": 8, "time": 2, "dropout": 0.0, "lr": 0.05, "epochs": 20, "threads": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables as a user has them: numbers, a category, labels, edges between names."""
    where = tmp_path_factory.mktemp("csv")
    made = simulate_disease(seed=1, num_nodes=150, signal=3.0)
    frame = pd.DataFrame(made.features.numpy()[:, :6], columns=[f"x{k}" for k in range(6)])
    frame.insert(0, "id", [f"p{k}" for k in range(150)])
    frame["ward"] = np.where(np.arange(150) % 3 == 0, "north", "south")
    frame["label"] = np.where(made.labels.numpy() == 1, "ill", "well")
    frame.to_csv(where / "nodes.csv", index=False)
    pairs = made.graph.undirected_edges.T.tolist()
    edges = pd.DataFrame([(f"p{u}", f"p{v}") for u, v in pairs], columns=["source", "target"])
    edges.to_csv(where / "edges.csv", index=False)
    return where


@pytest.fixture(scope="module")
def tables(folder):
    nodes = pd.read_csv(folder / "nodes.csv").set_index("id")
    edges = pd.read_csv(folder / "edges.csv")
    place = {name: number for number, name in enumerate(nodes.index)}
    pairs = np.array([[place[u], place[v]] for u, v in edges.itertuples(index=False)]).T
    return nodes.drop(columns="label"), nodes["label"].to_numpy(), Graph.from_edges(pairs, len(nodes))


def test_cross_val_score(tables):
    rows, y, graph = tables
    scores = cross_val_score(HGDEClassifier(**QUICK), Nodes(rows, graph), y, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.8  # a constant scores about 0.6


def test_grid_search(tables):
    rows, y, graph = tables
    search = GridSearchCV(HGDEClassifier(**QUICK), {"lr": [1e-6, 0.05]}, cv=2).fit(Nodes(rows, graph), y)
    assert search.best_params_ == {"lr": 0.05}
    assert search.predict(Nodes(rows, graph)).shape == y.shape


def test_chosen_nodes_see_the_whole_graph_and_no_hidden_label(tables):
    rows, y, graph = tables
    nodes = Nodes(rows, graph)
    shown = np.arange(0, 150, 2)
    fitted = HGDEClassifier(**QUICK).fit(nodes[shown], y[shown])
    hidden = np.where(np.isin(np.arange(150), shown), y, "-1")
    same = HGDEClassifier(**QUICK).fit(rows, hidden, graph=graph)
    assert fitted.graph_.num_nodes == 150
    np.testing.assert_array_equal(fitted.predict(nodes[1::2]), same.predict(rows)[1::2])
    np.testing.assert_array_equal(fitted.predict_proba(nodes), same.predict_proba(rows))


@pytest.mark.parametrize("y", [np.arange(6) % 2, np.arange(6) % 2 == 1, np.array(list("ababab"))])
def test_targets_of_any_type_are_spread(y):
    nodes = Nodes(np.eye(6), edge_index=[[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    model = HGDEClassifier(**QUICK | {"epochs": 2}).fit(nodes[:4], y[:4])
    assert set(model.predict(nodes[4:])) <= set(y.tolist())
    with pytest.raises(ValueError, match="4 chosen nodes"):
        model.fit(nodes[:4], y)
    with pytest.raises(ValueError, match="bring their graph"):
        model.fit(nodes, y, edge_index=[[0], [1]])


def test_pipeline_with_a_column_transformer(tables):
    rows, y, graph = tables
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), [f"x{k}" for k in range(6)]), ("words", OneHotEncoder(), ["ward"])]
    )
    steps = Pipeline([("columns", columns), ("model", HGDEClassifier(**QUICK))])
    shown = np.where(np.arange(150) % 3 == 1, "-1", y)
    steps.fit(rows, shown, model__graph=graph)
    hidden = shown == "-1"
    assert (steps.predict(rows) == y)[hidden].mean() > 0.8
    search = HGDEClassifierCV(steps, {"model__lr": [1e-6, 0.05]}, cv=2).fit(rows, shown, graph=graph)
    assert search.best_params_ == {"model__lr": 0.05}
    assert (search.predict(rows, graph=graph) == y)[hidden].mean() > 0.8


def test_search_hides_labels_in_turn(tables):
    rows, y, graph = tables
    grid = {"lr": [1e-6, 0.05]}
    folds = StratifiedKFold(2)
    search = HGDEClassifierCV(HGDEClassifier(**QUICK), grid, cv=folds).fit(rows, y, graph=graph)
    known = GridSearchCV(HGDEClassifier(**QUICK), grid, cv=folds).fit(Nodes(rows, graph), y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], known.cv_results_["mean_test_score"])
    assert search.best_params_ == {"lr": 0.05}
    assert search.predict_proba(rows).shape == (150, 2)
    assert search.score(rows, y) > 0.8


def test_tune_on_a_csv_graph(folder, tmp_path):
    given = {
        "preset": "none",
        "data": {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv")},
        "training": {"epochs": 5},
        "run": {"threads": 1},
    }
    tuned = tune(given, tmp_path / "tuned", trials=2, folds=1, workers=0)
    assert tuned.gain is not None
    assert (tmp_path / "tuned" / "settings.toml").exists()


def test_targets_of_a_data_set_need_no_y():
    made = simulate_disease(seed=0, num_nodes=60)
    values = made.features[:, :1].double()
    numbers = Dataset("n", made.graph, made.features, values=values)
    model = HGDERegressor(**QUICK).fit(numbers)
    assert model.predict(numbers).shape == (60,)
    assert model.score(numbers) == pytest.approx(model.score(numbers, values[:, 0].numpy()))
    sets = torch.stack([made.labels, 1 - made.labels], dim=1).to(torch.int8)
    several = Dataset("s", made.graph, made.features, label_sets=sets)
    assert HGDEMultiLabelClassifier(**QUICK).fit(several).score(several) > 0.5
    with pytest.raises(ValueError, match="requires y"):
        HGDERegressor(**QUICK).fit(Dataset("x", made.graph, made.features))
