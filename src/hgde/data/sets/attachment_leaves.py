"""Preferential attachment with many leaves: hubs of high degree, and nodes that know one other."""

from __future__ import annotations

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.sets._simulated import assembled, enough, noisy_features, simulated
from hgde.data.spec import register


def make(
    seed: int = 0,
    num_nodes: int = 2000,
    classes: int = 4,
    leaves: float = 0.5,
    edges: int = 2,
    homophily: float = 0.8,
    num_features: int = 16,
    signal: float = 1.5,
) -> Dataset:
    """Barabási and Albert's growth within classes, then a share ``leaves`` of nodes with one edge each.

    A node of the core brings ``edges`` edges, each to an end of an edge that is there already (so a node's chance is
    its degree), of its own class with probability ``homophily``. A leaf has the class of the node it hangs on.
    """
    enough(num_nodes, 10 * classes)
    random = np.random.RandomState(seed)
    labels = random.randint(0, classes, num_nodes)
    labels[:classes] = np.arange(classes)
    pairs = [(node, (node + 1) % classes) for node in range(classes)]
    ends: list[list[int]] = [[node, node] for node in range(classes)]
    first_leaf = num_nodes - int(leaves * num_nodes)
    for node in range(classes, num_nodes):
        for _ in range(edges if node < first_leaf else 1):
            stays = random.random_sample() < homophily
            pool = ends[labels[node] if stays else int(random.randint(0, classes))]
            other = pool[int(random.randint(0, len(pool)))]
            pairs.append((node, other))
            ends[labels[other]].append(other)
        if node < first_leaf:
            ends[labels[node]] += [node] * edges
    features = noisy_features(random, labels, num_features, signal)
    drawn = np.array(pairs, dtype=np.int64).T
    return assembled("attachment-leaves", drawn, labels, features, seed=seed, leaves=leaves, homophily=homophily)


SPEC = register(simulated("attachment-leaves", "preferential attachment with hubs and many leaves", make))
