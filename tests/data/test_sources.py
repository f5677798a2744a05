"""Every original form, served by a real server, becomes the same data set as the neutral form."""

import hashlib
from dataclasses import replace

import numpy as np
import originals
import pytest
import torch
from data_server import Behaviour, serve

from hgde.data import DATASETS, DataError, fetch_dataset, load
from hgde.data.spec import RemoteFile
from hgde.graph import Graph


@pytest.fixture
def publish(monkeypatch):
    """Serve files as those of a registered data set, with their true checksums."""
    with serve(Behaviour({})) as behaviour:

        def start(name: str, files: dict[str, bytes], **changes) -> Behaviour:
            remotes = []
            for file, content in files.items():
                behaviour.content[f"/{file}"] = content
                digest = hashlib.sha256(content).hexdigest()
                remotes.append(RemoteFile(f"{behaviour.address}/{file}", len(content), digest, file))
            spec = replace(DATASETS[name], files=tuple(remotes), expected=None, **changes)
            monkeypatch.setitem(DATASETS, name, spec)
            return behaviour

        yield start


def dense(dataset):
    return dataset.features if isinstance(dataset.features, torch.Tensor) else dataset.features.to_dense()


def expected_graph():
    return Graph.from_edges(originals.EDGES, originals.NUM_NODES)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_planetoid(publish, protocol):
    files, without_row = originals.planetoid("cora", protocol)
    publish("cora", files)
    dataset = load("cora")
    assert dataset.graph.hash == expected_graph().hash
    labels, features = originals.LABELS.copy(), originals.FEATURES.copy()
    labels[without_row], features[without_row] = -1, 0
    np.testing.assert_array_equal(dataset.labels, labels)
    np.testing.assert_array_equal(dense(dataset), features)
    (split,) = dataset.fixed_splits["public"]
    assert (split.train.numel(), split.val.numel(), split.test.numel()) == (6, 500, 39)
    assert not torch.isin(torch.tensor(without_row), torch.cat([split.train, split.val, split.test])).any()


def test_webkb(publish):
    publish("texas", originals.webkb("texas"))
    dataset = load("texas")
    assert dataset.graph.hash == expected_graph().hash
    np.testing.assert_array_equal(dataset.labels, originals.LABELS)
    np.testing.assert_array_equal(dense(dataset), originals.FEATURES)
    assert len(dataset.fixed_splits["fixed"]) == 10
    assert [split.name for split in dataset.fixed_splits["fixed"]] == [f"fixed-{n}" for n in range(10)]
    assert all(split.overlap == 0 for split in dataset.fixed_splits["fixed"])


def test_disease(publish):
    publish("disease_lp", originals.disease("disease_lp"))
    dataset = load("disease_lp")
    assert dataset.graph.num_edges == 2 * (originals.NUM_NODES - 1)
    np.testing.assert_array_equal(dense(dataset), originals.FEATURES)
    assert dataset.num_classes == 2


def test_disease_without_its_features_has_one_hot_numbers(publish):
    files = originals.disease("disease_nc")
    del files["disease_nc.feats.npz"]
    publish("disease_nc", files)
    dataset = load("disease_nc")
    assert dataset.meta["features"] == "identity"
    assert torch.equal(dense(dataset), torch.eye(originals.NUM_NODES))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_airport(publish, protocol):
    files, features = originals.airport(protocol)
    publish("airport", files)
    dataset = load("airport")
    assert dataset.graph.hash == expected_graph().hash
    np.testing.assert_allclose(dense(dataset), features, rtol=1e-6)
    np.testing.assert_array_equal(dataset.labels, np.digitize(features[:, 4], [1, 8 / 7, 9 / 7]))


@pytest.mark.parametrize("style", ["_", ".", "pickled"])
def test_shchur(publish, style):
    publish("amazon_photo", originals.shchur("amazon_photo", style=style))
    dataset = load("amazon_photo")
    assert dataset.graph.hash == expected_graph().hash
    np.testing.assert_array_equal(dataset.labels, originals.LABELS)
    np.testing.assert_array_equal(dense(dataset), originals.FEATURES)


def test_folder_comes_before_cache_and_cache_before_download(publish, tmp_path, private_cache):
    behaviour = publish("texas", originals.webkb("texas"))
    first = load("texas")
    assert len(behaviour.requests) == 12
    assert load("texas").hash == first.hash
    assert len(behaviour.requests) == 12, "the second load came from the cache"
    neutral = tmp_path / "folder"
    neutral.mkdir()
    arrays = {"edge_index": originals.EDGES, "x": originals.FEATURES, "y": originals.LABELS[::-1].copy()}
    (neutral / "texas.npz").write_bytes(originals.npz(**arrays))
    assert not torch.equal(load("texas", neutral).labels, first.labels)
    raw = tmp_path / "raw" / "texas"
    raw.mkdir(parents=True)
    for path in (private_cache / "texas").iterdir():
        (raw / path.name).write_bytes(path.read_bytes())
    assert fetch_dataset("texas", raw.parent) == raw
    assert load("texas", raw.parent, download=False).hash == first.hash


def test_a_damaged_original_in_the_users_folder_is_refused_and_left_alone(publish, tmp_path):
    files = originals.webkb("texas")
    publish("texas", files)
    folder = tmp_path / "data" / "texas"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    broken = folder / "out1_graph_edges.txt"
    broken.write_bytes(files["out1_graph_edges.txt"][:-9])
    with pytest.raises(DataError, match=r"out1_graph_edges\.txt.*SHA-256"):
        load("texas", folder.parent)
    assert broken.read_bytes() == files["out1_graph_edges.txt"][:-9]


def test_offline_says_which_file_from_where_and_where_to_put_it(tmp_path):
    with pytest.raises(DataError) as caught:
        load("citeseer", tmp_path, download=False)
    words = str(caught.value)
    for needed in ("citeseer.npz", str(tmp_path), "ind.citeseer.x", "kimiyoung/planetoid", "--from-package"):
        assert needed in words
    with pytest.raises(DataError, match="HGDE_DATA"):
        load("cora", download=False)
    with pytest.raises(DataError, match="save features as x"):
        load("cifar10", tmp_path)


def test_a_file_that_is_something_else_is_refused(tmp_path):
    arrays = {"edge_index": originals.EDGES, "x": originals.FEATURES, "y": originals.LABELS}
    (tmp_path / "cora.npz").write_bytes(originals.npz(**arrays))
    with pytest.raises(DataError, match=r"cora\.npz: is not cora: 640 nodes instead of 2708"):
        load("cora", tmp_path)


def test_supplied_embeddings_become_a_neighbour_graph(tmp_path):
    points = np.random.RandomState(0).randn(60, 8)
    (tmp_path / "stl10_simclr.npz").write_bytes(originals.npz(x=points, y=np.arange(60) % 10))
    dataset = load("stl10", tmp_path, k=4)
    assert dataset.num_classes == 10
    assert int(dataset.graph.degree.min()) >= 3


def test_generated_sets_take_options_and_others_do_not():
    with pytest.raises(DataError, match="no option seed"):
        load("digits", seed=3)


def test_20news_recipe(monkeypatch, tmp_path):
    """The posts themselves cannot be had here; the recipe is checked on posts of its own."""
    from types import SimpleNamespace

    asked = {}
    posts = ["rocket orbit rocket", "engine car the", "orbit moon", "car wheel engine engine"] * 5

    def fetch(**options):
        asked.update(options)
        return SimpleNamespace(data=posts, target=np.array([0, 1, 0, 1] * 5), target_names=["space", "autos"])

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    monkeypatch.setitem(DATASETS, "20news", replace(DATASETS["20news"], expected=None))
    dataset = load("20news", k=3)
    assert asked["subset"] == "all"
    assert len(asked["categories"]) == 10
    assert dataset.feature_names == ["car", "engine", "moon", "orbit", "rocket", "wheel"]
    torch.testing.assert_close(dense(dataset).square().sum(1), torch.ones(20))
    assert dataset.class_names == ["space", "autos"]


def test_20news_offline_says_what_to_do():
    with pytest.raises(DataError, match=r"20news.*put 20news\.npz into the folder"):
        load("20news", download=False)
