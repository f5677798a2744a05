"""Node splits: reproducible, honest where they say so, and faithful to the published faults where they do not."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from hgde.data import load
from hgde.data.splits import PROTOCOLS, NodeSplit, SplitError, SplitRule, node_split
from hgde.data.splits.nodes import hgcn_split


@dataclass
class Nodes:
    labels: torch.Tensor | None
    fixed_splits: dict = field(default_factory=dict)
    split_rule: SplitRule = field(default_factory=SplitRule)
    name: str = "airport"  # a name that means nothing here


RULES = {
    "random": SplitRule(),
    "stored": SplitRule("stored"),
    "airport": SplitRule("hgcn", (0.7, 0.15, 0.15)),
    "disease": SplitRule("hgcn", (0.3, 0.1, 0.6)),
    "shchur": SplitRule("shchur"),
    "few": SplitRule("few"),
}


def some_nodes(rule="random", num_nodes=3000, classes=4):
    labels = torch.from_numpy(np.random.RandomState(0).randint(-1, classes, num_nodes))
    split = NodeSplit(torch.arange(0, 10), torch.arange(10, 20), torch.arange(20, 30), "fixed-0")
    return Nodes(labels, {"fixed": (split,), "public": (split,)} if rule == "stored" else {}, RULES[rule])


def parts(split):
    return split.train, split.val, split.test


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("rule", RULES)
def test_splits_are_reproducible_and_use_labelled_nodes_only(protocol, rule):
    nodes = some_nodes(rule, classes=2 if rule == "disease" else 4)
    if protocol in ("public", "fixed") and rule != "stored":
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
    if not (protocol == "published" and rule == "airport"):
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
    nodes = some_nodes("shchur")
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


def test_what_clean_means_hangs_on_the_rule_and_never_on_the_name():
    labels = some_nodes().labels
    for rule in RULES:
        splits = {node_split(replace(some_nodes(rule), labels=labels, name=n), "clean").hash for n in ("airport", "x")}
        assert len(splits) == 1
    sizes = {rule: node_split(some_nodes(rule), "clean").train.numel() for rule in RULES}
    assert sizes["few"] == 80
    assert sizes["shchur"] == 80
    assert sizes["stored"] == 10
    known = int((labels >= 0).sum())
    assert abs(sizes["airport"] - 0.7 * known) < 5
    assert abs(sizes["disease"] - 0.3 * known) < 5


@pytest.mark.parametrize("protocol", ["clean", "published", "random"])
@pytest.mark.parametrize("rule", ["random", "airport", "few", "shchur"])
def test_values_are_split_at_random_whatever_the_rule(protocol, rule):
    values = torch.randn(1000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values[::10] = torch.nan
    values[1::10, 0] = torch.nan
    split = node_split(replace(some_nodes(rule), labels=None), protocol, targets=values, seed=3)
    everything = torch.cat(parts(split))
    assert everything.unique().numel() == everything.numel() == 900, "one known value is enough"
    for part, share in zip(parts(split), (0.6, 0.2, 0.2), strict=True):
        assert abs(part.numel() - share * 900) <= 2
    with pytest.raises(SplitError, match="there are no classes"):
        node_split(some_nodes(), "few", targets=values)


def test_rare_labels_are_spread_over_all_parts():
    random = np.random.RandomState(0)
    sets = torch.from_numpy((random.rand(1000, 4) < [0.5, 0.3, 0.02, 0.01]).astype(np.int8))
    sets[:50] = -1
    split = node_split(some_nodes(), "clean", targets=sets)
    everything = torch.cat(parts(split))
    assert everything.unique().numel() == everything.numel() == 950
    assert int(everything.min()) == 50
    for label in range(4):
        counts = [int((sets[part, label] > 0).sum()) for part in parts(split)]
        total = sum(counts)
        assert counts[0] == pytest.approx(0.6 * total, abs=0.12 * total + 1)
        assert min(counts) > 0


def test_nodes_without_a_single_known_target():
    with pytest.raises(SplitError, match="no node whose target is known"):
        node_split(some_nodes(), "clean", targets=torch.full((5, 1), torch.nan))
    with pytest.raises(SplitError, match="no node whose target is known"):
        node_split(some_nodes(), "clean", targets=torch.full((5, 3), -1, dtype=torch.int8))
