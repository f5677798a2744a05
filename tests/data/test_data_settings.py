"""Settings of the data: each acts, or is refused with the reason."""

import numpy as np
import pandas as pd
import pytest

from hgde.data import DataError, DataSettings, open_dataset
from hgde.sections import SettingsError, from_dict


@pytest.fixture
def files(tmp_path):
    random = np.random.RandomState(0)
    names = [f"n{i}" for i in range(12)]
    pairs = [(names[u], names[v]) for u, v in random.randint(0, 9, (30, 2)) if u != v]
    edges = pd.DataFrame(pairs, columns=["a", "b"]).assign(strength=1 + np.arange(len(pairs)), weight=1.0)
    nodes = pd.DataFrame({"key": names, "grade": [i % 3 for i in range(12)], "x": random.randn(12)})
    nodes["role"] = ["train", "val", "test"] * 4
    edges.to_csv(tmp_path / "edges.csv", index=False, sep=";")
    nodes.to_csv(tmp_path / "nodes.csv", index=False, sep=";")
    return {
        "edges": str(tmp_path / "edges.csv"),
        "nodes": str(tmp_path / "nodes.csv"),
        "delimiter": ";",
        "source_column": "a",
        "target_column": "b",
        "id_column": "key",
    }


def test_the_default_needs_nothing():
    assert open_dataset(DataSettings()).name == "disease-sim"
    assert open_dataset(from_dict(DataSettings, {"options": "num_nodes=100,seed=3"})).num_nodes == 100
    with pytest.raises(SettingsError, match="NAME=VALUE"):
        DataSettings(options=("fast",))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nodes": "n.csv"}, "no edges are given"),
        ({"id_column": "key"}, "no edges are given"),
        ({"directed": True}, "no edges are given"),
        ({"delimiter": ";"}, "no edges are given"),
        ({"weight_column": "w"}, "no edges are given"),
        ({"edges": "e.csv", "name": "cora"}, "your own graph is read instead"),
        ({"edges": "e.csv", "options": ["seed=1"]}, "your own graph is read instead"),
        ({"edges": "e.csv", "root": "/data"}, "your own graph is read instead"),
        ({"edges": "e.csv", "label_column": "y"}, "table of nodes, and none is given"),
        ({"edges": "e.csv", "neighbours": 3}, "has its edges"),
        ({"name": "cora", "neighbours": 3}, "the data set cora has a graph"),
    ],
)
def test_a_setting_that_cannot_act_is_refused_with_the_reason(given, words):
    with pytest.raises(SettingsError, match=words):
        from_dict(DataSettings, given)


def test_settings_that_can_act_are_not_refused():
    from_dict(DataSettings, {"name": "digits", "neighbours": 3})
    from_dict(DataSettings, {"edges": "g.npz", "neighbours": 3})
    from_dict(DataSettings, {"edges": "g.graphml", "label_column": "kind"})
    stored = from_dict(DataSettings, {"edges": "e.csv", "nodes": "n.csv"}).to_dict()
    assert "name" not in stored
    assert "neighbours" not in stored
    assert from_dict(DataSettings, stored) == DataSettings(edges="e.csv", nodes="n.csv")


def opened(files, **changes):
    return open_dataset(from_dict(DataSettings, {**files, **changes}))


def test_every_setting_of_ones_own_graph_changes_what_is_read(files):
    base = opened(files)
    assert base.labels is None
    assert base.num_features == 3
    labelled = opened(files, label_column="grade")
    assert labelled.labels.tolist() == [0, 1, 2] * 4
    assert labelled.num_features == 2
    split = opened(files, label_column="grade", split_column="role")
    assert split.split_rule.kind == "stored"
    assert split.num_features == 1
    assert not opened(files, directed=True).graph.is_symmetric
    assert opened(files, weight_column="strength").graph.hash != base.graph.hash
    assert opened(files, largest_component=True).num_nodes == 9
    for column in ("source_column", "target_column", "id_column"):
        wrong = {**files, column: "nowhere"}
        with pytest.raises(DataError, match="expected a column nowhere"):
            opened(wrong)
    with pytest.raises(DataError, match="expected a column a, got a;b"):
        opened({**files, "delimiter": ","})


def test_neighbours_of_a_set_without_a_graph():
    few, more = (open_dataset(from_dict(DataSettings, {"name": "digits", "neighbours": k})) for k in (3, 8))
    assert few.graph.num_edges < more.graph.num_edges


def test_another_graph_in_files_of_the_same_form(files, tmp_path):
    settings = from_dict(
        DataSettings, {**files, "label_column": "grade", "split_column": "role", "largest_component": True}
    )
    nodes = pd.read_csv(files["nodes"], sep=";")
    other = tmp_path / "other.csv"
    nodes.drop(columns=["grade", "role"]).to_csv(other, index=False, sep=";")
    dataset = open_dataset(settings.for_files(files["edges"], str(other)))
    assert dataset.labels is None
    assert dataset.num_nodes == 12, "every node is wanted, not the largest component alone"
    assert dataset.column_names == ["x"]
    labelled = open_dataset(settings.for_files(edges=files["edges"], nodes=files["nodes"]))
    assert labelled.labels is not None
    assert labelled.column_names == ["x"], "the column of parts is no feature, whatever it is called"
    nodes.assign(role="test").to_csv(other, index=False, sep=";")
    later = open_dataset(settings.for_files(files["edges"], str(other)), read_split=False)
    assert later.column_names == ["x"]
    assert later.fixed_splits == {}
    assert settings.for_files("g.csv").nodes is None
