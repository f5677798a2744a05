"""Node splits: reproducible, honest where they say so, and faithful to the published faults where they do not."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from hgde.data import load
from hgde.data.splits import PROTOCOLS, NodeSplit, SplitError, hgcn_split, node_split


@dataclass
class Nodes:
    labels: torch.Tensor | None
    name: str = "mine"
    fixed_splits: dict = field(default_factory=dict)


def some_nodes(name="mine", num_nodes=3000, classes=4):
    labels = torch.from_numpy(np.random.RandomState(0).randint(-1, classes, num_nodes))
    split = NodeSplit(torch.arange(0, 10), torch.arange(10, 20), torch.arange(20, 30), "fixed-0")
    return Nodes(labels, name, {"fixed": (split,), "public": (split,)} if name == "stored" else {})


def parts(split):
    return split.train, split.val, split.test


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["mine", "stored", "airport", "disease-sim", "amazon_photo", "digits"])
def test_splits_are_reproducible_and_use_labelled_nodes_only(protocol, name):
    nodes = some_nodes(name, classes=2 if name == "disease-sim" else 4)
    if protocol in ("public", "fixed") and name != "stored":
        with pytest.raises(SplitError, match="carries no"):
            node_split(nodes, protocol)
        return
    split, again = node_split(nodes, protocol, seed=3), node_split(nodes, protocol, seed=3)
    assert split.hash == again.hash
    assert all(part.numel() > 0 for part in parts(split))
    if split.name.startswith("fixed"):
        return
    assert node_split(nodes, protocol, seed=4).hash != split.hash
    assert bool((nodes.labels[torch.cat(parts(split))] >= 0).all())
    if not (protocol == "published" and name == "airport"):
        everything = torch.cat(parts(split))
        assert everything.unique().numel() == everything.numel() == int((nodes.labels >= 0).sum())
        assert split.overlap == 0


@pytest.mark.parametrize(("protocol", "shares"), [("clean", (0.7, 0.15, 0.15)), ("random", (0.6, 0.2, 0.2))])
def test_stratified_splits_keep_the_shares_in_every_class(protocol, shares):
    nodes = some_nodes("airport")
    split = node_split(nodes, protocol)
    for part, share in zip(parts(split), shares, strict=True):
        counts = torch.bincount(nodes.labels[part], minlength=4)
        totals = torch.bincount(nodes.labels[nodes.labels >= 0])
        assert bool(((counts - share * totals).abs() <= 1.5).all())


def test_numbers_of_labels_per_class():
    nodes = some_nodes("amazon_photo")
    shchur, few = node_split(nodes, "shchur"), node_split(nodes, "few", per_class=7, num_val=100)
    assert torch.bincount(nodes.labels[shchur.train]).tolist() == [20] * 4
    assert torch.bincount(nodes.labels[shchur.val]).tolist() == [30] * 4
    assert torch.bincount(nodes.labels[few.train]).tolist() == [7] * 4
    assert few.val.numel() == 100


def test_a_class_with_a_single_node_trains_on_it():
    labels = torch.tensor([0] * 50 + [1])
    split = node_split(Nodes(labels), "random")
    assert 50 in split.train.tolist()


@pytest.mark.parametrize(
    ("nodes", "options", "words"),
    [
        (Nodes(None), {"protocol": "random"}, "no labels"),
        (Nodes(torch.full((9,), -1)), {"protocol": "random"}, "no labels"),
        (some_nodes(), {"protocol": "best"}, "unknown split protocol 'best'; there are: published, clean"),
        (some_nodes("stored"), {"protocol": "fixed", "index": 4}, "splits 0 to 0, asked for 4"),
        (some_nodes(), {"protocol": "random", "fractions": (0.5, 0.5, 0.5)}, "sum to 1"),
        (some_nodes(), {"protocol": "few", "per_class": 5000}, "fewer labels per class"),
        (some_nodes(num_nodes=100), {"protocol": "few", "per_class": 2}, "too few for 1000 validation"),
    ],
)
def test_impossible_splits_say_why(nodes, options, words):
    with pytest.raises(SplitError, match=words):
        node_split(nodes, **options)


def test_hgcn_draws_classes_two_and_three_twice():
    labels = torch.from_numpy(np.random.RandomState(1).randint(0, 4, 2000))
    split = hgcn_split(labels, 0.15, 0.15)
    assert split.overlap > 0
    counts = torch.bincount(labels).tolist()
    entries = sum(part.numel() for part in parts(split))
    assert entries == sum(counts) + counts[2] + counts[3]


@pytest.mark.parametrize(
    ("name", "prefix", "leaked", "sizes"),
    [("airport", "hgcn_seed1234_", 225, (3364, 524, 524)), ("disease_nc", "", 0, (748, 42, 254))],
)
def test_the_published_split_is_hgcns_own_list(name, prefix, leaked, sizes, data_file):
    path = data_file(name)
    dataset = load(name, path.parent)
    split = node_split(dataset, "published")
    stored = np.load(path)
    for part, nodes in zip(("train", "val", "test"), parts(split), strict=True):
        np.testing.assert_array_equal(nodes, stored[f"{prefix}{part}_idx"])
    assert tuple(part.numel() for part in parts(split)) == sizes
    assert int(torch.isin(split.test.unique(), split.train).sum()) == leaked
    assert node_split(dataset, "clean").overlap == 0


def test_restriction_to_the_largest_component_keeps_what_is_inside(data_file):
    whole = load("citeseer", data_file("citeseer").parent)
    part = whole.largest_component()
    assert part.num_nodes == 2120
    split, restricted = node_split(whole, "public"), node_split(part, "public")
    assert restricted.name == "public/restricted"
    for before, after in zip(parts(split), parts(restricted), strict=True):
        assert 0 < after.numel() < before.numel()
    assert restricted.overlap == 0
