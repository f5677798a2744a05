"""A stored data set comes back bit for bit, with the same hash, and a damaged one is refused."""

import json
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from hgde.data import (
    DATASETS,
    Columns,
    DataError,
    Dataset,
    NodeSplit,
    identity_features,
    load,
    load_dataset,
    read_graph,
    save_dataset,
)
from hgde.graph import Graph, SparseFeatures


def full():
    """Everything a data set can have, names that are awkward included."""
    random = np.random.RandomState(0)
    table = pd.DataFrame(
        {"größe": [1.5, None, -2], "c": ["x", None, "ÿ\u2028z"], "b": [True, False, True], "": [1, 2, 3]}
    )
    parts = (torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
    return Dataset(
        "mine",
        Graph.from_edges([(0, 1), (1, 2)], 3, [0.5, 2.25], undirected=False),
        Columns.from_frame(table),
        labels=torch.tensor([0, -1, 1]),
        ids=["", "béla\x00", "c"],
        class_names=["red", "blue"],
        fixed_splits={"fixed": (NodeSplit(*parts, "fixed-0"), NodeSplit(*parts[::-1], "fixed-1"))},
        meta={"source": "somewhere", "seed": 3, "nested": {"a": [1, 2]}},
        values=torch.from_numpy(random.randn(3, 2)),
        label_sets=torch.tensor([[1, 0], [0, -1], [1, 1]], dtype=torch.int8),
        target_names=["u", "v"],
        sample_weights=torch.rand(3, dtype=torch.float64),
    )


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a.nan_to_num(7), b.nan_to_num(7))
    if isinstance(a, SparseFeatures):
        return a.shape == b.shape and all(same(getattr(a, k), getattr(b, k)) for k in ("indptr", "indices", "values"))
    if isinstance(a, Columns):
        return list(a) == list(b) and all(a[name] == b[name] for name in a)
    if isinstance(a, Graph):
        return a.hash == b.hash
    if isinstance(a, NodeSplit):
        return (a.hash, a.name) == (b.hash, b.name)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def some():
    return {
        "full": full(),
        "simulated": load("disease-sim"),
        "identity": Dataset("mine", Graph.from_edges([(0, 1)], 3), identity_features(3)),
        "double": Dataset(
            "mine", Graph.from_edges([], 2), torch.rand(2, 3, dtype=torch.float64), feature_names=list("abc")
        ),
        "digits": load("digits", k=3),
    }


@pytest.mark.parametrize("name", ["full", "simulated", "identity", "double", "digits"])
def test_everything_comes_back(name, tmp_path):
    dataset = some()[name]
    path = tmp_path / "deep" / "data.safetensors"
    save_dataset(path, dataset)
    found = load_dataset(path)
    assert found.hash == dataset.hash
    for spec in fields(Dataset):
        assert same(getattr(dataset, spec.name), getattr(found, spec.name)), spec.name
    assert list(path.parent.iterdir()) == [path]
    (path.parent / "usual").touch()
    assert path.stat().st_mode == (path.parent / "usual").stat().st_mode  # it can be read by whoever reads the others
    save_dataset(path, found)
    assert load_dataset(path).hash == dataset.hash


def test_a_users_files_come_back_without_them(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target,weight\na,b,2\nb,c,0.5\n")
    (tmp_path / "nodes.csv").write_text("id,label,split,x,colour\na,1,train,1,red\nb,2,val,,blue\nc,3,test,3,red\n")
    dataset = read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv")
    save_dataset(tmp_path / "d", dataset)
    for name in ("edges.csv", "nodes.csv"):
        (tmp_path / name).unlink()
    found = load_dataset(tmp_path / "d")
    assert found.hash == dataset.hash
    assert found.spec is None
    assert found.split_rule.kind == "stored"
    assert found.features["colour"].texts == ["red", "blue", "red"]


def test_what_is_no_stored_data_set(tmp_path):
    path = tmp_path / "data.safetensors"
    with pytest.raises(DataError, match="no such file"):
        load_dataset(path)
    path.write_bytes(b"something else")
    with pytest.raises(DataError, match="not a readable data set"):
        load_dataset(path)
    save_file({"x": torch.ones(1)}, path)
    with pytest.raises(DataError, match="holds no data set of this version"):
        load_dataset(path)


def test_a_changed_number_or_a_lost_part_is_noticed(tmp_path):
    path = tmp_path / "data.safetensors"
    save_dataset(path, full())
    from safetensors import safe_open

    with safe_open(str(path), framework="pt") as stored:
        metadata = stored.metadata()
    tensors = load_file(path)
    tensors["values"][0, 0] += 1e-9
    save_file(tensors, path, metadata)
    with pytest.raises(DataError, match="is damaged: its hash"):
        load_dataset(path)
    del tensors["graph.indptr"]
    save_file(tensors, path, metadata)
    with pytest.raises(DataError, match="incomplete"):
        load_dataset(path)
    header = {**json.loads(metadata["hgde"]), "spec": "someone.elses:SET"}
    save_dataset(path, full())
    save_file(load_file(path), path, {"hgde": json.dumps(header)})
    with pytest.raises(DataError, match="not known here"):
        load_dataset(path)


def real_sets():
    """Those of more than 8,000 nodes are as the others, only larger."""
    for name, spec in DATASETS.items():
        if spec.expected is not None:
            yield pytest.param(name, marks=pytest.mark.slow) if spec.expected.nodes > 8000 else name


@pytest.mark.parametrize("name", list(real_sets()))
def test_real_sets_come_back(name, data_file, tmp_path):
    dataset = load(name, data_file(name).parent)
    save_dataset(tmp_path / "d", dataset)
    found = load_dataset(tmp_path / "d")
    assert found.hash == dataset.hash
    assert found.spec is dataset.spec


def test_arrays_that_point_outside_are_refused_whatever_the_hash_says(tmp_path):
    path = tmp_path / "data.safetensors"
    good = Dataset("mine", Graph.from_edges([(0, 1)], 3), identity_features(3), labels=torch.tensor([0, 1, 1]))
    outside = SparseFeatures(good.features.indptr, torch.tensor([0, 1, 9]), good.features.values, (3, 3))
    for spoilt, words in (
        (replace(good, graph=Graph(good.graph.indptr, good.graph.indices + 7)), "the graph cannot be used, an entry"),
        (replace(good, features=outside), "the features cannot be used, an entry points outside"),
        (replace(good, labels=torch.tensor([0, 1])), "the labels cannot be used, 2 rows for 3 nodes"),
    ):
        save_dataset(path, spoilt)
        with pytest.raises(DataError, match=words):
            load_dataset(path)
