"""A simulated epidemic on a tree, of the kind of the paper's Disease data, made from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hgde.data.dataset import Dataset
from hgde.data.sets._hgcn import DISEASE_SPLIT
from hgde.data.sets._texts import LINKS, MADE_HERE
from hgde.data.spec import DatasetSpec, register
from hgde.graph import Graph


def simulate_disease(
    seed: int = 0,
    num_nodes: int = 1044,
    num_features: int = 16,
    spread: float = 0.75,
    signal: float = 0.7,
) -> Dataset:
    """Grow a random tree, let a disease run down from its root, and measure every node badly.

    Each person passes the disease to each contact below with probability ``spread``, so the infected form one subtree
    at the root. What is observed of a person is ``num_features`` noisy measurements whose means differ by ``signal``
    standard deviations between infected and healthy in the first quarter of the columns; the other columns are noise.
    An outbreak that dies out or reaches nearly everyone is drawn anew. One person's measurements say little; those of
    the neighbourhood say much.

    Args:
        seed: everything follows from it.
        num_nodes: size of the tree.
        num_features: measurements per person.
        spread: probability that an infected person infects a contact.
        signal: distance of the means, in standard deviations, in an informative column.
    """
    if num_nodes < 2:
        raise ValueError(f"an epidemic needs at least 2 people, got num_nodes={num_nodes}")
    # RandomState's stream is frozen by numpy, so a seed means the same tree on every version.
    random = np.random.RandomState(seed)
    parent = _grow_tree(random, num_nodes)
    infected = _infect(random, parent, spread)
    informative = max(1, num_features // 4)
    features = random.standard_normal((num_nodes, num_features))
    features[:, :informative] += signal * infected[:, None]
    edges = np.stack([parent[1:], np.arange(1, num_nodes)])
    return Dataset(
        name="disease-sim",
        graph=Graph.from_edges(edges, num_nodes),
        features=torch.from_numpy(features.astype(np.float32)),
        labels=torch.from_numpy(infected.astype(np.int64)),
        class_names=["healthy", "infected"],
        meta={"seed": seed, "spread": spread, "signal": signal},
    )


def _grow_tree(random: np.random.RandomState, num_nodes: int) -> np.ndarray[Any, Any]:
    """Parents in breadth-first order; each node has one to six contacts below it."""
    parent = np.zeros(num_nodes, dtype=np.int64)
    grown, nursing = 1, 0
    while grown < num_nodes:
        children = min(int(random.randint(1, 7)), num_nodes - grown)
        parent[grown : grown + children] = nursing
        grown += children
        nursing += 1
    return parent


def _infect(random: np.random.RandomState, parent: np.ndarray[Any, Any], spread: float) -> np.ndarray[Any, Any]:
    """Who catches it, redrawn until between a fifth and three fifths of the nodes have (or 1000 outbreaks failed)."""
    for _ in range(1000):
        infected = np.zeros(len(parent), dtype=bool)
        infected[0] = True
        caught = random.random_sample(len(parent)) < spread
        for child in range(1, len(parent)):  # parents come before their children
            infected[child] = infected[parent[child]] and caught[child]
        if 0.2 <= infected.mean() <= 0.6:
            return infected
    raise ValueError(f"1000 outbreaks with spread {spread} all died out or reached nearly everyone; try 0.6 to 0.8")


SPEC = register(
    DatasetSpec(
        name="disease-sim",
        title="an epidemic simulated on a tree, made anew for any seed",
        kind="generated",
        tasks=("nodes", "links"),
        protocols=f"nodes: stratified 30/10/60 %; F1 of the infected. {LINKS}",
        licence=MADE_HERE,
        citation="this package; the simulation follows the description in Chami et al., NeurIPS 2019",
        read=simulate_disease,
        split_rule=DISEASE_SPLIT,
        aliases=("disease",),
    )
)
