"""Data sets: hashes, restriction, targets in each form, and the neutral file."""

import numpy as np
import pytest
import torch

from hgde.data import Columns, DataError, Dataset, identity_features, looks_continuous, read_graph
from hgde.data.io.npz import read_npz
from hgde.data.splits import NodeSplit
from hgde.graph import Graph, SparseFeatures


def small(name="mine", **changes):
    split = NodeSplit(torch.tensor([0, 3]), torch.tensor([1]), torch.tensor([2, 4]), "fixed-0")
    values = {
        "graph": Graph.from_edges([(0, 1), (1, 2), (3, 4)], 5),
        "features": torch.arange(25.0).reshape(5, 5) - 6,
        "labels": torch.tensor([0, 1, 0, -1, 1]),
        "ids": list("abcde"),
        "fixed_splits": {"fixed": (split,)},
        **changes,
    }
    return Dataset(name, **values)


def test_the_hash_sees_graph_features_and_labels():
    base = small()
    assert base.hash == small().hash
    others = [
        small(graph=Graph.from_edges([(0, 1), (1, 2)], 5)),
        small(features=base.features + 1),
        small(labels=base.labels.roll(1)),
        small(labels=None),
        small(features=identity_features(5)),
        small(graph=Graph.from_edges([(0, 1), (1, 2), (3, 4)], 5, [1.0, 2.0, 1.0])),
        small(values=torch.ones(5, 1)),
        small(values=torch.zeros(5, 1)),
        small(label_sets=torch.ones(5, 1, dtype=torch.int8)),
        small(sample_weights=torch.ones(5)),
        small(class_names=["a", "b"]),
        small(class_names=["a", "c"]),
        small(features=table()),
        small(features=table(a=[1, 2, 3, 4, 6])),
        small(features=table(b=["x", "y", "x", "", "z"])),
        small(features=Columns([*list(table().values())[::-1]])),
    ]
    assert len({dataset.hash for dataset in (base, *others)}) == len(others) + 1


def table(**changes):
    return Columns.from_arrays({"a": [1, 2, 3, 4, 5], "b": ["x", "y", "x", "", "y"], **changes})


def test_everything_a_node_has_follows_it():
    dataset = small(
        features=table(),
        values=torch.arange(5.0)[:, None],
        label_sets=torch.eye(5, dtype=torch.int8),
        sample_weights=torch.arange(5.0),
    )
    part = dataset.select(torch.tensor([4, 0]))
    assert part.features["a"].values.tolist() == [5, 1]
    assert part.features["b"].texts == ["y", "x"]
    assert part.values.flatten().tolist() == part.sample_weights.tolist() == [4, 0]
    assert part.label_sets.tolist() == [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.linspace(0, 1, 50), True),
        ([0.5, 1.5] * 40, False),
        (np.arange(500), True),
        (np.arange(500) % 20, False),
        (np.arange(4000) % 40, False),
        ([np.nan, 1, 2], False),
        ([], False),
    ],
)
def test_continuous_values_are_told_from_classes(values, expected):
    assert looks_continuous(np.asarray(values, dtype=float)) is expected
    assert looks_continuous(torch.tensor(np.asarray(values, dtype=float))) is expected


def test_the_label_column_as_it_was_read():
    column = small(class_names=["red", "blue"]).target_column()
    assert column.texts == ["red", "blue", "red", "", "blue"]
    assert small(labels=None, values=torch.tensor([[0.5]] * 5)).target_column().texts == ["0.5"] * 5
    assert small(labels=None).target_column() is None


@pytest.mark.parametrize("sparse", [False, True])
def test_the_largest_component_takes_everything_along(sparse):
    base = small(features=identity_features(5)) if sparse else small()
    part = base.largest_component()
    assert part.ids == ["a", "b", "c"]
    assert part.labels.tolist() == [0, 1, 0]
    assert part.graph.undirected_edges.tolist() == [[0, 1], [1, 2]]
    dense = part.features.to_dense() if sparse else part.features
    assert torch.equal(dense, (base.features.to_dense() if sparse else base.features)[:3])
    (split,) = part.fixed_splits["fixed"]
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([0], [1], [2])
    assert part.largest_component() is part


def test_row_normalisation():
    rows = small().row_normalised()
    torch.testing.assert_close(rows.features.abs().sum(1), torch.ones(5))
    assert isinstance(small(features=identity_features(5)).row_normalised().features, SparseFeatures)


def test_neutral_file_round_trip(tmp_path):
    random = np.random.RandomState(0)
    x = random.randn(8, 3).astype(np.float32)
    arrays = {
        "edge_index": random.randint(0, 8, (2, 12)),
        "x": x,
        "y": np.array([0, 1, 2, 0, 1, 2, -1, -5]),
        "train_mask": np.eye(8, dtype=bool)[:2],
        "val_mask": np.eye(8, dtype=bool)[2:4],
        "test_mask": np.eye(8, dtype=bool)[4:6],
        "class_names": np.array(["a", "b", "c"]),
    }
    np.savez(tmp_path / "mine.npz", **arrays)
    dataset = read_npz(tmp_path / "mine.npz")
    np.testing.assert_array_equal(dataset.features, x)
    assert dataset.labels.tolist() == [0, 1, 2, 0, 1, 2, -1, -1]
    assert [split.test.tolist() for split in dataset.fixed_splits["fixed"]] == [[4], [5]]
    assert dataset.hash == read_graph(tmp_path / "mine.npz").hash


def test_features_are_sparse_when_mostly_empty(tmp_path):
    for name, share, kind in (("words", 0.05, SparseFeatures), ("pixels", 0.5, torch.Tensor)):
        x = (np.random.RandomState(0).rand(40, 50) < share).astype(np.float32)
        np.savez(tmp_path / f"{name}.npz", x=x, edge_index=np.array([[0], [1]]))
        assert isinstance(read_npz(tmp_path / f"{name}.npz").features, kind)


def test_pickled_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "evil.npz", y=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match=r"evil\.npz: not a readable NPZ archive of plain arrays"):
        read_npz(tmp_path / "evil.npz")
