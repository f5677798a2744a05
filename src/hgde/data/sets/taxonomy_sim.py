"""A taxonomy with classes of very different sizes."""

from __future__ import annotations

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.sets._simulated import Array, assembled, enough, noisy_features, simulated, tree_pairs
from hgde.data.spec import register


def make(
    seed: int = 0,
    num_nodes: int = 1500,
    classes: int = 5,
    imbalance: float = 2.0,
    cross_links: float = 0.05,
    num_features: int = 16,
    signal: float = 1.5,
) -> Dataset:
    """A root, below it a branch per class, each ``imbalance`` times smaller than the one before; a few cross-links.

    Within a branch a new entry is put below one of those there, the more likely the closer to the top. ``cross_links``
    is the share of entries that also refer to some other entry, of any class.
    """
    enough(num_nodes, 20 * classes)
    random = np.random.RandomState(seed)
    shares = imbalance ** -np.arange(classes, dtype=np.float64)
    labels = np.repeat(np.arange(classes), _sizes(num_nodes, shares / shares.sum()))
    parent = np.zeros(num_nodes, dtype=np.int64)
    for branch in range(classes):
        members = np.flatnonzero(labels == branch)
        for place in range(1, members.size):
            # The square of a uniform number leans towards the branch's oldest entries.
            parent[members[place]] = members[int(place * random.random_sample() ** 2)]
    referring = np.flatnonzero(random.random_sample(num_nodes) < cross_links)
    references = np.stack([referring, random.randint(0, num_nodes, referring.size)])
    features = noisy_features(random, labels, num_features, signal)
    pairs = np.concatenate([tree_pairs(parent), references], axis=1)
    return assembled("taxonomy-sim", pairs, labels, features, seed=seed, imbalance=imbalance, cross_links=cross_links)


def _sizes(total: int, shares: Array) -> Array:
    sizes = np.maximum((shares * total).astype(np.int64), 2)
    sizes[0] += total - sizes.sum()
    return sizes


SPEC = register(
    simulated(
        "taxonomy-sim",
        "a taxonomy with five classes of very different sizes",
        make,
        notes="The largest class has half of the nodes: look at balanced accuracy or macro F1 too.",
    )
)
