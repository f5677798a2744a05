"""Every original form, served by a real server, becomes the same data set as the neutral form."""

import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np
import originals
import pytest
import torch
from data_server import Behaviour, serve
from specs import with_spec

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
            monkeypatch.setattr("hgde.data.fetch.SCHEMES", ("http",))
            with_spec(monkeypatch, replace(DATASETS.get(name), files=tuple(remotes), expected=None, **changes))
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


def posts_archive(topics, posts_per_topic, random):
    """An archive like the original: two parts, a folder per topic, numbered posts in Latin-1."""
    words = ["rocket", "orbit", "engine", "wheel", "moon", "caf\xe9"]
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for part in ("test", "train"):
            for topic in topics:
                for number in random.permutation(posts_per_topic):
                    text = " ".join(random.choice(words, 12)).encode("latin1")
                    info = tarfile.TarInfo(f"20news-bydate-{part}/{topic}/{10 * number}")
                    info.size = len(text)
                    archive.addfile(info, io.BytesIO(text))
    return stream.getvalue()


TOPICS = ["alt.atheism", "comp.graphics", "rec.autos", "sci.space", "talk.politics.guns"]


def test_20news_recipe(publish):
    """The posts themselves cannot be had here; the recipe is checked on posts of its own."""
    publish("20news", {"20news-bydate.tar.gz": posts_archive(TOPICS, 6, np.random.RandomState(0))})
    dataset = load("20news", k=3)
    assert dataset.feature_names == ["café", "engine", "moon", "orbit", "rocket", "wheel"]
    torch.testing.assert_close(dense(dataset).square().sum(1), torch.ones(48))
    assert dataset.class_names == ["alt.atheism", "rec.autos", "sci.space", "talk.politics.guns"]
    assert torch.bincount(dataset.labels).tolist() == [12] * 4


def test_20news_posts_are_in_the_order_of_scikit_learns_loader(tmp_path):
    from sklearn.datasets import load_files

    from hgde.data.sets.news20 import TOPICS as CHOSEN
    from hgde.data.sets.news20 import read_posts

    path = tmp_path / "20news-bydate.tar.gz"
    path.write_bytes(posts_archive(TOPICS, 9, np.random.RandomState(1)))
    texts, labels, names = read_posts(path)
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    parts = [load_files(tmp_path / f"20news-bydate-{part}", encoding="latin1") for part in ("train", "test")]
    kept = [n for n, topic in enumerate(parts[0].target_names) if topic in CHOSEN]
    listed = [pair for part in parts for pair in zip(part.target, part.data, strict=True)]
    expected = [(kept.index(y), text) for y, text in listed if y in kept]
    order = np.arange(len(expected))
    np.random.RandomState(42).shuffle(order)
    assert names == [topic for topic in TOPICS if topic in CHOSEN]
    assert list(zip(labels.tolist(), texts, strict=True)) == [expected[place] for place in order]


@pytest.mark.parametrize("content", [b"", b"no archive", "half", "empty"])
def test_a_20news_archive_that_is_none(content, publish):
    whole = posts_archive(TOPICS if content == "half" else [], 3, np.random.RandomState(0))
    publish(
        "20news", {"20news-bydate.tar.gz": {"half": whole[: len(whole) // 2], "empty": whole}.get(content, content)}
    )
    with pytest.raises(DataError, match=r"20news-bydate\.tar\.gz: (not a readable tar\.gz archive|expected posts)"):
        load("20news")


def test_20news_offline_says_what_to_do():
    with pytest.raises(DataError, match=r"Put 20news\.npz .* into .*HGDE_DATA.*20news-bydate\.tar\.gz"):
        load("20news", download=False)
