"""Graphs made by the tests, each of which needs one thing to be learned: weights, directions, categories, ...

A :class:`Made` holds the same graph for the command line (as tables in files) and for the estimators (as objects).
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from hgde.graph import Graph

NUM_NODES = 160


@dataclass
class Made:
    """Nodes by name with their columns and targets, edges ``[E, 2]`` of row numbers, and how to learn from them."""

    nodes: pd.DataFrame
    targets: list[str]
    edges: np.ndarray
    options: dict = field(default_factory=dict)
    weights: np.ndarray | None = None
    directed: bool = False

    @property
    def frame(self) -> pd.DataFrame:
        """The features alone."""
        return self.nodes.drop(columns=[*self.targets, "split"])

    @property
    def part(self) -> np.ndarray:
        return self.nodes["split"].to_numpy()

    def graph(self) -> Graph:
        return Graph.from_edges(
            torch.as_tensor(self.edges.T), len(self.nodes), self.weights, undirected=not self.directed
        )

    def write(self, folder: Path) -> list[str]:
        """The tables, and the options that name them."""
        folder.mkdir(parents=True, exist_ok=True)
        names = self.nodes.index.to_numpy()
        edges = pd.DataFrame({"source": names[self.edges[:, 0]], "target": names[self.edges[:, 1]]})
        if self.weights is not None:
            edges["weight"] = self.weights
        edges.to_csv(folder / "edges.csv", index=False)
        self.nodes.to_csv(folder / "nodes.csv", index_label="id")
        given = ["--edges", folder / "edges.csv", "--nodes", folder / "nodes.csv"]
        given += ["--label-column", ",".join(self.targets)]
        return [str(value) for value in given] + (["--directed"] if self.directed else [])


def _frame(columns: dict, rng) -> pd.DataFrame:
    count = len(next(iter(columns.values())))
    nodes = pd.DataFrame(columns, index=[f"node {k}" for k in rng.permutation(count)])
    nodes["split"] = rng.permutation(np.array(["train", "val", "test", "test"])[np.arange(count) % 4])
    return nodes


def _blocks(rng, labels, inside, across) -> np.ndarray:
    """Random edges: each node draws so many partners of its own class and of others."""
    pairs = []
    for node, label in enumerate(labels):
        same, other = np.flatnonzero(labels == label), np.flatnonzero(labels != label)
        pairs += [(node, partner) for partner in rng.choice(same, inside) if partner != node]
        pairs += [(node, partner) for partner in rng.choice(other, across)]
    return np.array(pairs)


def regression(seed=0) -> Made:
    """A value per node: that of its block, plus what a feature says."""
    rng = np.random.default_rng(seed)
    block = np.arange(NUM_NODES) % 4
    x = rng.normal(size=(NUM_NODES, 3))
    near = np.eye(4)[block] + rng.normal(scale=0.5, size=(NUM_NODES, 4))
    value = 100 + 20 * block + 5 * x[:, 0]
    columns = {f"x{k}": x[:, k] for k in range(3)} | {f"n{k}": near[:, k] for k in range(4)} | {"income": value}
    return Made(_frame(columns, rng), ["income"], _blocks(rng, block, 2, 0))


def multilabel(seed=0) -> Made:
    """Two labels that are there or not, each with a feature of its own."""
    rng = np.random.default_rng(seed)
    truth = rng.random((NUM_NODES, 2)) < [0.5, 0.3]
    x = truth + rng.normal(scale=0.7, size=(NUM_NODES, 2))
    columns = {"x0": x[:, 0], "x1": x[:, 1], "red": truth[:, 0].astype(int), "round": truth[:, 1].astype(int)}
    return Made(_frame(columns, rng), ["red", "round"], _blocks(rng, 2 * truth[:, 0] + truth[:, 1], 2, 0))


def weighted(seed=0) -> Made:
    """Few heavy edges within a class among many light ones across; features say little."""
    rng = np.random.default_rng(seed)
    label = np.arange(NUM_NODES) % 2
    x = rng.normal(size=(NUM_NODES, 3)) + 0.6 * (2 * label - 1)[:, None]
    edges = _blocks(rng, label, 2, 6)
    weights = np.where(label[edges[:, 0]] == label[edges[:, 1]], 1.0, 1e-4)
    columns = {f"x{k}": x[:, k] for k in range(3)} | {"kind": np.array(["cat", "dog"])[label]}
    return Made(_frame(columns, rng), ["kind"], edges, weights=weights)


def directed(seed=0) -> Made:
    """A node's class is the sign of what its sources hold; where its own edges lead says nothing."""
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], size=NUM_NODES)
    label = rng.permutation(np.arange(NUM_NODES) % 2)
    pairs = []
    for node in range(NUM_NODES):
        fitting = np.flatnonzero((x > 0) == (label[node] == 1))
        pairs += [(source, node) for source in rng.choice(fitting, 4, replace=False) if source != node]
    columns = {"x": x, "noise": rng.normal(size=NUM_NODES), "side": np.array(["left", "right"])[label]}
    return Made(_frame(columns, rng), ["side"], np.array(pairs), {"eta": (1.0, 0.01, 0.01)}, directed=True)


def rare(seed=0) -> Made:
    """One node in ten is of the rare class, and features overlap: guessing the common one is nearly always right."""
    rng = np.random.default_rng(seed)
    label = (np.arange(2 * NUM_NODES) % 10 == 0).astype(int)
    x = rng.normal(size=(label.size, 2)) + 1.2 * label[:, None]
    columns = {"x0": x[:, 0], "x1": x[:, 1], "state": np.array(["well", "ill"])[label]}
    return Made(_frame(columns, rng), ["state"], _blocks(rng, np.zeros_like(label), 1, 0))


def categories(seed=0) -> Made:
    """The class is told by a category, and by where a number is missing."""
    rng = np.random.default_rng(seed)
    label = np.arange(NUM_NODES) % 2
    colours = np.where(label == 1, rng.choice(["red", "blue"], NUM_NODES), rng.choice(["green", "black"], NUM_NODES))
    colours = np.where(rng.random(NUM_NODES) < 0.3, "grey", colours)
    age = rng.normal(40, 10, NUM_NODES)
    age[(label == 1) & (rng.random(NUM_NODES) < 0.5)] = np.nan
    columns = {"colour": colours, "age": age, "member": rng.random(NUM_NODES) < 0.5}
    columns["class"] = np.array(["no", "yes"])[label]
    return Made(_frame(columns, rng), ["class"], _blocks(rng, np.zeros_like(label), 1, 0))


def without_split(made: Made) -> pd.DataFrame:
    return made.nodes.drop(columns="split")
