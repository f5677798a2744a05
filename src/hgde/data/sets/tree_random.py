"""A random tree down which labels are inherited."""

from __future__ import annotations

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.sets._simulated import assembled, enough, inherited, noisy_features, simulated, tree_pairs
from hgde.data.spec import register


def make(
    seed: int = 0,
    num_nodes: int = 2000,
    classes: int = 4,
    change: float = 0.05,
    num_features: int = 16,
    signal: float = 1.5,
) -> Dataset:
    """Each node hangs below one drawn from those before it; it has its parent's class, or with ``change`` any."""
    enough(num_nodes, 20)
    random = np.random.RandomState(seed)
    parent = np.zeros(num_nodes, dtype=np.int64)
    for node in range(1, num_nodes):
        parent[node] = random.randint(0, node)
    labels = inherited(random, parent, classes, change)
    features = noisy_features(random, labels, num_features, signal)
    return assembled("tree-random", tree_pairs(parent), labels, features, seed=seed, change=change)


SPEC = register(simulated("tree-random", "a random tree down which labels are inherited", make))
