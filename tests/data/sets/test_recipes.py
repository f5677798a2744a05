"""What is special about a data set stands in its own file, and nowhere else."""

import ast
from pathlib import Path

import numpy as np
import pytest
import torch

import hgde
from hgde.data import DATASETS, Dataset, PreprocessingSettings, Preprocessor, load, read_graph
from hgde.data.splits import link_split, node_split
from hgde.graph import Graph

SOURCE = Path(hgde.__file__).parent


def compared_texts(path: Path) -> list[tuple[str, int]]:
    """Every text that a file compares something with, looks for the start of, or takes as a key of a choice."""
    texts = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("startswith", "endswith", "removeprefix", "get"):
                parts = list(node.args)
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        for part in parts:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    texts.append((inner.value.lower().replace("-", "_"), inner.lineno))
    return texts


def test_nothing_outside_the_sets_compares_with_their_names():
    names = {alias.lower().replace("-", "_") for _, spec in DATASETS.items() for alias in (spec.name, *spec.aliases)}
    starts = {name.split("_")[0] for name in names} - {"tree", "cs", "blocks", "attachment", "mixture", "hyperbolic"}
    assert {"airport", "disease", "cora", "20news"} <= starts
    known = names | starts
    found = [
        f"{path.relative_to(SOURCE)}, line {line}: {text!r}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "sets" not in path.relative_to(SOURCE).parts
        for text, line in compared_texts(path)
        if text in known
    ]
    assert not found


def test_the_search_finds_what_it_looks_for(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text('if dataset.name == "airport" or name.startswith("disease"):\n    x = {"cora": 1}.get("cora")\n')
    assert [text for text, _ in compared_texts(path)] == ["airport", "disease", "cora"]


@pytest.mark.parametrize("name", ["airport", "airport_x", "disease_lp", "disease_x", "cora"])
def test_a_users_files_are_not_treated_by_their_name(name, tmp_path):
    """Six columns stay six, and the split column is used, whatever the file is called."""
    random = np.random.RandomState(0)
    parts = np.array(["train", "val", "test"])[np.arange(60) % 3]
    rows = [f"{i},{i % 4},{parts[i]}," + ",".join(f"{v:.3f}" for v in random.randn(12)) for i in range(60)]
    header = "id,label,split," + ",".join(f"f{j}" for j in range(12))
    (tmp_path / "nodes.csv").write_text("\n".join([header, *rows]))
    pairs = "\n".join(f"{u},{v}" for u, v in random.randint(0, 60, (150, 2)))
    (tmp_path / f"{name}.csv").write_text(f"source,target\n{pairs}")
    dataset = read_graph(tmp_path / f"{name}.csv", tmp_path / "nodes.csv")
    assert dataset.spec is None
    for task in ("nodes", "links"):
        for protocol in ("clean", "published"):
            inputs = dataset.inputs(task, protocol)
            assert Preprocessor.fit(inputs).num_outputs == 12
            split = node_split(dataset, protocol)
            assert split.train.tolist() == list(range(0, 60, 3))


def airport(features=None, **changes):
    if features is None:
        features = torch.arange(25.0).reshape(5, 5) - 6
    graph = Graph.from_edges([(0, 1), (1, 2), (3, 4)], 5)
    return Dataset("anything", changes.get("graph", graph), features, spec=DATASETS.get("airport"))


def made(dataset, task, protocol="published", graph=None, **settings):
    inputs = dataset.inputs(task, protocol, graph)
    return Preprocessor.fit(inputs, PreprocessingSettings(**settings)).transform(inputs)


def test_airport_columns():
    dataset = airport()
    nodes, links = made(dataset, "nodes"), made(dataset, "links")
    assert (nodes.shape[1], links.shape[1]) == (11, 12)
    torch.testing.assert_close(nodes[:, :4].sum(1), torch.ones(5))
    assert torch.equal(nodes[:, 4:10].argmax(1), dataset.graph.degree)
    assert bool((nodes[:, 10] == 1).all())
    other = dataset.features.clone()
    other[:, 4] = 99
    assert torch.equal(nodes, made(airport(other), "nodes")), "column 4 is unused"


def test_airport_degrees_come_from_the_training_graph():
    assert bool((made(airport(), "links", graph=Graph.from_edges([], 5))[:, 5] == 1).all())


def test_signed_row_sums_are_a_fault_of_the_published_recipe():
    features = torch.tensor([[1.0, -1.0, 1e-4, 0, 7], [0, 0, 0, 0, 7]])
    dataset = airport(features, graph=Graph.from_edges([(0, 1)]))
    published, clean = (made(dataset, "nodes", protocol) for protocol in ("published", "clean"))
    assert float(published[0, 0]) > 1000
    assert float(clean[:, :4].abs().max()) <= 1
    assert bool(torch.isfinite(published).all())


@pytest.mark.parametrize("task", ["nodes", "links"])
@pytest.mark.parametrize("protocol", ["clean", "published"])
def test_airport_columns_keep_their_numbers(task, protocol):
    dataset = airport()
    plain = made(dataset, task, protocol, normalise="none")
    stored = 4 if task == "nodes" else 5
    assert torch.equal(plain[:, :stored], dataset.features[:, :stored])
    without_degrees = made(dataset, task, protocol, normalise="none", drop_columns=("5", "6", "7", "8", "9", "10"))
    assert torch.equal(without_degrees, torch.cat([plain[:, :stored], plain[:, -1:]], dim=1))
    assert torch.equal(made(dataset, task, protocol, normalise="none", drop_columns=("11",)), plain[:, :-1])
    if task == "nodes":
        assert torch.equal(made(dataset, task, protocol, normalise="none", drop_columns=("4",)), plain)
    scaled = made(dataset, task, protocol, drop_columns=("0",))
    rest = dataset.features[:, 1:stored].double()
    total = (rest if protocol == "published" else rest.abs()).sum(1, keepdim=True)
    torch.testing.assert_close(scaled[:, : stored - 1].double(), rest / total)


def test_the_leaking_column_of_disease_links_is_left_out_when_clean():
    features = torch.rand(30, 11)
    graph = Graph.from_edges([(n, n // 2) for n in range(1, 30)], 30)
    dataset = Dataset("anything", graph, features, spec=DATASETS.get("disease_lp"))
    for task, protocol, expected in (("links", "clean", 10), ("links", "published", 11), ("nodes", "clean", 11)):
        assert made(dataset, task, protocol, normalise="none").equal(features[:, :expected])
    assert made(dataset, "links", "clean", normalise="none", drop_columns=("10",)).shape[1] == 10


def test_real_inputs_of_airport(data_file):
    dataset = load("airport", data_file("airport").parent)
    split = link_split(dataset.graph, 1234, "clean")
    assert made(dataset, "nodes").shape[1] == 11
    assert made(dataset, "links", graph=split.graph).shape[1] == 12


@pytest.mark.parametrize("name", [name for name, spec in DATASETS.items() if spec.kind == "generated"])
def test_other_sets_are_given_as_they_are_stored(name):
    dataset = load(name)
    assert dataset.inputs("nodes", "clean") is dataset
