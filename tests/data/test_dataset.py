"""Data sets: hashes, restriction, normalisation, the recipes of the literature, and the neutral file."""

import numpy as np
import pytest
import torch

from hgde.data import DataError, Dataset, hgcn_features, identity_features, load, read_graph
from hgde.data.io.npz import read_npz
from hgde.data.splits import NodeSplit, link_split
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
    ]
    assert len({dataset.hash for dataset in (base, *others)}) == 6


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


def test_airport_recipe():
    dataset = small("airport")
    nodes, links = (hgcn_features(dataset, task).features for task in ("nodes", "links"))
    assert (nodes.shape[1], links.shape[1]) == (11, 12)
    torch.testing.assert_close(nodes[:, :4].sum(1), torch.ones(5))
    assert torch.equal(nodes[:, 4:10].argmax(1), dataset.graph.degree)
    assert bool((nodes[:, 10] == 1).all())
    other = dataset.features.clone()
    other[:, 4] = 99
    assert torch.equal(nodes, hgcn_features(small("airport", features=other), "nodes").features), "column 4 is unused"


def test_airport_degrees_come_from_the_training_graph():
    dataset = small("airport")
    bare = Graph.from_edges([], 5)
    assert bool((hgcn_features(dataset, "links", graph=bare).features[:, 5] == 1).all())


def test_signed_row_sums_are_a_fault_of_the_published_recipe():
    features = torch.tensor([[1.0, -1.0, 1e-4, 0, 7], [0, 0, 0, 0, 7]])
    dataset = small("airport", features=features, graph=Graph.from_edges([(0, 1)]), labels=torch.tensor([0, 1]))
    published = hgcn_features(dataset, "nodes").features
    clean = hgcn_features(dataset, "nodes", recipe="clean").features
    assert float(published[0, 0]) > 1000
    assert float(clean[:, :4].abs().max()) <= 1
    assert bool(torch.isfinite(published).all())


def test_columns_can_be_left_out():
    dataset = hgcn_features(small("disease_lp"), "links", drop_columns=(4,))
    assert dataset.num_features == 4
    assert dataset.meta["dropped_columns"] == [4]
    with pytest.raises(DataError, match="task must be"):
        hgcn_features(small(), "edges")


def test_added_columns_are_numbered_after_the_stored_ones():
    features, labels = torch.rand(2, 5), torch.tensor([0, 1])
    dataset = small("airport", features=features, graph=Graph.from_edges([(0, 1)]), labels=labels)
    whole = hgcn_features(dataset, "links", recipe="unscaled").features
    degrees = tuple(range(5, 11))
    assert hgcn_features(dataset, "links", recipe="unscaled", drop_columns=degrees).features.equal(
        torch.cat([features, whole[:, 11:]], dim=1)
    )
    assert hgcn_features(dataset, "nodes", recipe="unscaled", drop_columns=degrees).features.equal(
        torch.cat([features[:, :4], whole[:, 11:]], dim=1)
    )


def test_airport_real_inputs(data_file):
    dataset = load("airport", data_file("airport").parent)
    split = link_split(dataset.graph, 1234, "clean")
    assert hgcn_features(dataset, "nodes").num_features == 11
    assert hgcn_features(dataset, "links", graph=split.graph).num_features == 12


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
