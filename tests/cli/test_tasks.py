"""Each kind of task and input from files, by the words a user types; each beats a predictor that learned nothing."""

import json

import numpy as np
import pandas as pd
import pytest
from command import LEARN, hgde, predictions
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, r2_score

import made_graphs


def train(made, folder, *arguments):
    named = made.write(folder)
    eta = [f"--eta={','.join(map(str, made.options['eta']))}"] if "eta" in made.options else []
    hgde("train", *named, *LEARN, *eta, *arguments, "--out", folder / "run")
    return predictions(folder / "run", folder / "predictions.csv")


def held_out(table):
    return table[table["part"] == "test"]


def test_regression(tmp_path):
    table = train(made_graphs.regression(), tmp_path, "--task", "regression")
    assert list(table.columns) == ["id", "prediction", "truth", "part"]
    held = held_out(table)
    assert r2_score(held["truth"], held["prediction"]) > 0.6  # the mean scores 0
    made = made_graphs.regression().nodes["income"]
    np.testing.assert_allclose(table.set_index("id").loc[made.index, "truth"], made)


def test_several_values(tmp_path):
    made = made_graphs.regression()
    made.nodes["debt"] = 3 * made.nodes["n0"] - made.nodes["x1"]
    made.targets.append("debt")
    table = held_out(train(made, tmp_path, "--task", "regression"))
    for name in ("income", "debt"):
        assert r2_score(table[f"truth_{name}"], table[f"prediction_{name}"]) > 0.3


def test_multilabel(tmp_path):
    table = train(made_graphs.multilabel(), tmp_path, "--task", "multilabel")
    assert list(table.columns) == ["id", "prediction", "p_red", "p_round", "truth_red", "truth_round", "part"]
    held = held_out(table)
    for name in ("red", "round"):
        truth = held[f"truth_{name}"]
        always = f1_score(truth, np.ones(len(truth)))
        assert f1_score(truth, held[f"p_{name}"] > 0.5) > always + 0.1
    assert set(table["prediction"].fillna("")) <= {"", "red", "round", "red round"}


def test_weighted_edges(tmp_path):
    made = made_graphs.weighted()
    heeded = accuracy(train(made, tmp_path / "weights"))
    made.weights = None
    ignored = accuracy(train(made, tmp_path / "none"))
    assert heeded > 0.9
    assert heeded > ignored + 0.1


def test_directed_edges(tmp_path):
    made = made_graphs.directed()
    along = accuracy(train(made, tmp_path / "along"))
    made.directed = False
    both = accuracy(train(made, tmp_path / "both"))
    assert along > 0.8  # a constant scores 0.5
    assert along > both


def test_class_weights(tmp_path):
    made = made_graphs.rare()
    plain, balanced, named = (
        held_out(train(made, tmp_path / name, *words))
        for name, words in (("plain", []), ("balanced", ["--class-weight", "balanced"]),
                            ("named", ["--class-weight", "ill=9"]))
    )  # fmt: skip
    scores = [balanced_accuracy_score(table["truth"], table["prediction"]) for table in (plain, balanced, named)]
    assert scores[1] > scores[0] + 0.05
    assert scores[2] > scores[0] + 0.05
    assert scores[1] > 0.65  # a constant scores 0.5


def test_categories_and_gaps(tmp_path):
    assert accuracy(train(made_graphs.categories(), tmp_path)) > 0.7  # a constant scores 0.5


def accuracy(table):
    held = held_out(table)
    return accuracy_score(held["truth"], held["prediction"])


def test_continuous_labels_suggest_regression(tmp_path):
    named = made_graphs.regression().write(tmp_path)
    output = hgde("train", *named, *LEARN, "--out", tmp_path / "run", code=2)
    assert "look like measurements" in output
    assert "--task regression" in output
    assert not (tmp_path / "run").exists()


def test_many_whole_numbers_are_warned_of(tmp_path):
    made = made_graphs.regression()
    made.nodes["income"] = np.arange(len(made.nodes)) % 40
    named = made.write(tmp_path)
    output = hgde("train", *named, *LEARN, "--epochs", "1", "--out", tmp_path / "run")
    assert "look like measurements" in output


def test_metrics_that_do_not_fit_are_refused_with_those_that_do(tmp_path):
    named = made_graphs.regression().write(tmp_path)
    output = hgde("train", *named, "--task", "regression", "--metric", "accuracy", "--out", tmp_path / "run", code=2)
    assert "accuracy does not score values; these do: mae, r2, rmse" in output


@pytest.mark.parametrize("name", ["airport", "disease_x", "cora"])
def test_users_files_are_not_treated_by_their_name(name, tmp_path):
    """A graph that is called like a data set keeps its own split and features."""
    made = made_graphs.weighted()
    made.nodes["x3"], made.nodes["x4"] = 1.0 * np.arange(len(made.nodes)), 0.5
    made.write(tmp_path)
    (tmp_path / "edges.csv").rename(tmp_path / f"{name}.csv")
    named = ["--edges", tmp_path / f"{name}.csv", "--nodes", tmp_path / "nodes.csv", "--label-column", "kind"]
    hgde("train", *named, *LEARN, "--epochs", "1", "--out", tmp_path / "run")
    table = predictions(tmp_path / "run", tmp_path / "p.csv").set_index("id")
    assert (table.loc[made.nodes.index, "part"] == made.nodes["split"]).all()
    parts = json.loads((tmp_path / "run" / "run.json").read_text())["parts"]
    assert parts == made.nodes["split"].value_counts().to_dict()
    from hgde.pipeline import load

    assert load(tmp_path / "run").preprocessor.output_names == [f"x{k}" for k in range(5)]


def test_reversed_columns_predict_the_same_and_others_are_refused(tmp_path):
    made = made_graphs.categories()
    named = made.write(tmp_path)
    hgde("train", *named, *LEARN, "--epochs", "5", "--out", tmp_path / "run")
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    same = predictions(tmp_path / "run", tmp_path / "p.csv", "--edges", edges, "--nodes", nodes)
    table = pd.read_csv(nodes)
    changed = tmp_path / "changed.csv"
    table[table.columns[::-1]].to_csv(changed, index=False)
    turned = predictions(tmp_path / "run", tmp_path / "q.csv", "--edges", edges, "--nodes", changed)
    pd.testing.assert_frame_equal(same, turned)
    for edited, words in (
        (table.rename(columns={"age": "years"}), "column 'age' is missing"),
        (table.drop(columns="colour"), "column 'colour' is missing"),
        (table.assign(weight=1.0), "column 'weight' was not among the training columns"),
    ):
        edited.to_csv(changed, index=False)
        output = hgde("predict", tmp_path / "run", "--edges", edges, "--nodes", changed, code=2)
        assert words in output
