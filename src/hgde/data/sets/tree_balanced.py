"""A balanced tree whose classes are the subtrees near its root."""

from __future__ import annotations

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.sets._simulated import assembled, enough, noisy_features, simulated, tree_pairs
from hgde.data.spec import register


def make(
    seed: int = 0, num_nodes: int = 1365, branching: int = 4, num_features: int = 16, signal: float = 1.5
) -> Dataset:
    """Every node has ``branching`` children, level by level; a node's class is the child of the root it hangs below.

    The root itself is of the first class.
    """
    enough(num_nodes, branching + 1)
    random = np.random.RandomState(seed)
    parent = (np.arange(num_nodes) - 1) // branching
    labels = np.zeros(num_nodes, dtype=np.int64)
    labels[1 : branching + 1] = np.arange(branching)
    for child in range(branching + 1, num_nodes):
        labels[child] = labels[parent[child]]
    features = noisy_features(random, labels, num_features, signal)
    return assembled("tree-balanced", tree_pairs(parent), labels, features, seed=seed, branching=branching)


SPEC = register(simulated("tree-balanced", "a balanced tree; classes are the subtrees below its root", make))
