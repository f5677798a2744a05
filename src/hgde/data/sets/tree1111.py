"""Tree1111: a ten-ary tree of four levels whose features fade from parent to child."""

from __future__ import annotations

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.sets._simulated import assembled, enough, simulated, tree_pairs
from hgde.data.spec import register


def make(seed: int = 0, gamma: float = 0.5, num_features: int = 1000, branching: int = 10, levels: int = 4) -> Dataset:
    """``x_child = gamma x_parent + noise`` in ``num_features`` dimensions, standard normal noise, ``x_root`` noise.

    With ``gamma = 0`` features say nothing of the tree, with ``gamma = 1`` nearly everything. A node's class is the
    child of the root it hangs below; the root itself is of the first class.
    """
    num_nodes = (branching**levels - 1) // (branching - 1) if branching > 1 else levels
    enough(num_nodes, branching + 1)
    random = np.random.RandomState(seed)
    parent = (np.arange(num_nodes) - 1) // branching
    features = random.standard_normal((num_nodes, num_features))
    labels = np.zeros(num_nodes, dtype=np.int64)
    labels[1 : branching + 1] = np.arange(branching)
    for child in range(1, num_nodes):
        features[child] += gamma * features[parent[child]]
        if child > branching:
            labels[child] = labels[parent[child]]
    return assembled("tree1111", tree_pairs(parent), labels, features, seed=seed, gamma=gamma, branching=branching)


SPEC = register(simulated("tree1111", "a ten-ary tree of 1,111 nodes; features fade from parent to child", make))
