"""Tables read in chunks give the partition that the same tables give when they are read at once."""

import numpy as np
import pandas as pd
import pytest
from partitions import hub_graph

from hgde import make_settings
from hgde.data import DataError
from hgde.distributed import Ranks, make_partition, start_run
from hgde.distributed.external import build
from hgde.distributed.reading import Names
from hgde.distributed.streaming import stream_partition
from hgde.pipeline.prepare import prepare


@pytest.fixture
def tables(tmp_path):
    """Edges, some of them twice, and nodes with names of any kind, as frames and files."""
    dataset = hub_graph()
    names = np.array([f"Knoten {k} ß" if k % 3 else f"{k:05d}" for k in range(dataset.num_nodes)])
    u, v = dataset.graph.undirected_edges.numpy()
    edges = pd.DataFrame({"source": names[u], "target": names[v]})
    edges = pd.concat([edges, edges.iloc[:20].rename(columns={"source": "target", "target": "source"})])
    nodes = pd.DataFrame({"id": names, "label": np.where(dataset.labels.numpy() > 0, "right", "left")})
    for k in range(5):
        nodes[f"x{k}"] = dataset.features[:, k].numpy()
    nodes["split"] = np.array(["train", "val", "test"])[np.arange(len(nodes)) % 3]
    return edges, nodes


def write(frame, path):
    frame.to_parquet(path, index=False) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("method", ["metis", "contiguous", "random"])
def test_chunks_give_the_same_pieces(tmp_path, tables, suffix, method):
    edges, nodes = (write(frame, tmp_path / f"{name}{suffix}") for name, frame in zip(("e", "n"), tables, strict=True))
    settings = make_settings({"data": {"edges": edges, "nodes": nodes}, "preset": "none"})
    streamed = stream_partition(tmp_path / "streamed", settings, 4, method, chunk=37)
    whole = make_partition(tmp_path / "whole", prepare(settings), settings, 4, method)
    assert streamed.starts == whole.starts
    assert streamed.array("ids").tolist() == whole.array("ids").tolist()
    for piece in range(4):
        for name in ("indptr", "indices", "halo", "degrees", "train_items", "val_truth", "test_truth"):
            assert np.array_equal(streamed.piece_array(piece, name), whole.piece_array(piece, name)), name
        a, b = (partition.piece_array(piece, "features") for partition in (streamed, whole))
        assert np.allclose(a, b, rtol=1e-5, atol=1e-6)
    given = {"model": {"width": 4, "time": 1.0}, "training": {"epochs": 2}, "preset": "none"}
    assert start_run(streamed, given, Ranks(), None).train().outcomes[0].epochs == 2


def test_an_unknown_node_is_named(tmp_path, tables):
    edges, nodes = tables
    edges.iloc[50, 1] = "stranger"
    settings = make_settings(
        {"data": {"edges": write(edges, tmp_path / "e.csv"), "nodes": write(nodes, tmp_path / "n.csv")}}
    )
    with pytest.raises(DataError, match=r"row 52: no node is called 'stranger'"):
        stream_partition(tmp_path / "parts", settings, 2, chunk=16)


@pytest.mark.parametrize("directed", [False, True])
def test_edges_on_disk(tmp_path, monkeypatch, directed):
    monkeypatch.setattr("hgde.distributed.external.BUCKET_EDGES", 10)
    random = np.random.default_rng(0)
    pairs = random.integers(0, 30, (2, 200))
    chunks = [(pairs[0, k : k + 17], pairs[1, k : k + 17]) for k in range(0, 200, 17)]
    edges = build(chunks, 30, 200, tmp_path, directed=directed)
    expected = {(v, u) for u, v in pairs.T.tolist() if u != v}
    expected |= set() if directed else {(u, v) for v, u in expected}
    rows = np.repeat(np.arange(30), np.diff(edges.indptr))
    assert list(zip(rows.tolist(), edges.indices.tolist(), strict=True)) == sorted(expected)
    some = np.array([4, 2, 29])
    indptr, columns = edges.rows(some)
    assert [sorted(columns[indptr[k] : indptr[k + 1]].tolist()) for k in range(3)] == [
        sorted(v for u, v in expected if u == node) for node in some
    ]


def test_names_become_numbers():
    names = Names()
    first, new = names.add(np.array(["b", "a", "b"], dtype=object))
    assert first.tolist() == [0, 1, 0]
    assert new.tolist() == ["b", "a"]
    second, new = names.add(np.array(["c", "a", "é"], dtype=object))
    assert second.tolist() == [2, 1, 3]
    assert new.tolist() == ["c", "é"]
    assert names.numbers(np.array(["é", "z", "b"], dtype=object)).tolist() == [3, -1, 0]
