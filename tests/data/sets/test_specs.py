"""The registry is complete, and each set at hand measures what it should."""

import re

import pytest
import torch

from hgde.data import DATASETS, DataError, find_spec, load
from hgde.graph.measures.hyperbolicity import hyperbolicity
from hgde.graph.measures.statistics import graph_statistics

PUBLISHED = [
    *("disease_nc", "disease_lp", "airport", "cora", "citeseer", "pubmed", "texas", "wisconsin", "cornell"),
    *("20news", "cifar10_simclr", "stl10_simclr", "amazon_photo", "coauthor_cs"),
]


def test_the_sets_of_the_paper_are_there():
    assert set(PUBLISHED) <= set(DATASETS)


@pytest.mark.parametrize("name", DATASETS)
def test_an_entry_is_complete(name):
    spec = DATASETS.get(name)
    assert spec.name == name
    assert spec.title
    assert spec.licence
    assert spec.citation
    assert spec.protocols
    assert set(spec.tasks) <= {"nodes", "links"}
    assert bool(spec.files) == (spec.kind in ("graph", "features"))
    for file in spec.files:
        assert file.address.startswith("https://")
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)
    names = [file.name for file in spec.files]
    assert len(set(names)) == len(names)
    if spec.package is not None:
        assert set(spec.package.members) == set(names)
    assert callable(spec.read) == (spec.kind != "files")


def test_names_and_aliases_are_found_and_do_not_collide():
    every = [alias.lower().replace("-", "_") for _, spec in DATASETS.items() for alias in (spec.name, *spec.aliases)]
    assert len(set(every)) == len(every)
    assert find_spec("Photo").name == "amazon_photo"
    assert find_spec("disease_sim").name == "disease-sim"
    with pytest.raises(DataError, match="Did you mean citeseer"):
        find_spec("citeseeer")


def measured():
    """Sets with figures; the nearest neighbours of more than 5,000 images or texts take long to find."""
    for name, spec in DATASETS.items():
        if spec.expected is not None:
            large = spec.kind != "graph" and spec.expected.nodes > 5000
            yield pytest.param(name, marks=pytest.mark.slow) if large else name


@pytest.mark.parametrize("name", list(measured()))
def test_measured_statistics(name, data_file):
    """Counts exactly, homophily to the printed digits, hyperbolicity within the error of a sample of 50,000."""
    spec = DATASETS.get(name)
    dataset = load(name, data_file(name).parent)
    labels = dataset.labels.clamp_min(0)  # the printed homophily counts CiteSeer's nodes without a label as class 0
    measured, expected = graph_statistics(dataset.graph, labels), spec.expected
    assert measured.num_nodes == expected.nodes
    assert measured.num_edges == expected.edges
    assert measured.num_components == expected.components
    assert measured.largest_component == expected.largest
    assert dataset.num_classes == expected.classes
    assert dataset.meta.get("features") == "identity" or dataset.num_features == expected.features
    assert f"{measured.edge_homophily:.3f}" == f"{expected.homophily:.3f}"
    delta = hyperbolicity(dataset.graph, 50_000, seed=1, exact_up_to=0)
    assert delta.mean == pytest.approx(expected.delta_mean, abs=6 * (delta.high - delta.mean) + 6e-4)
    # A sampled maximum is a lower bound that rare 4-tuples raise; two samples may differ by one step.
    assert abs(delta.maximum - expected.delta_max) <= 0.5


@pytest.mark.parametrize("name", ["texas", "wisconsin", "cornell", "cornell_2021snapshot"])
def test_stored_webkb_splits(name, data_file):
    dataset = load(name, data_file(name).parent)
    sizes = {tuple(p.numel() for p in (s.train, s.val, s.test)) for s in dataset.fixed_splits["fixed"]}
    assert sizes == {(120, 80, 51) if name == "wisconsin" else (87, 59, 37)}
    assert len({split.hash for split in dataset.fixed_splits["fixed"]}) == 10


@pytest.mark.parametrize(("name", "train"), [("cora", 140), ("citeseer", 120), ("pubmed", 60)])
def test_stored_public_splits(name, train, data_file):
    dataset = load(name, data_file(name).parent)
    (split,) = dataset.fixed_splits["public"]
    assert (split.train.numel(), split.val.numel(), split.test.numel()) == (train, 500, 1000)
    assert torch.bincount(dataset.labels[split.train]).tolist() == [20] * dataset.num_classes
    assert bool((dataset.labels[torch.cat([split.train, split.val, split.test])] >= 0).all())
    assert int((dataset.labels < 0).sum()) == (15 if name == "citeseer" else 0)


def test_digits_need_no_file():
    dataset = load("digits")
    assert (dataset.num_nodes, dataset.num_features, dataset.num_classes) == (1797, 64, 10)
    assert float(dataset.features.max()) == 1.0
    assert graph_statistics(dataset.graph, dataset.labels).edge_homophily > 0.95
