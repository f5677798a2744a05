"""Stochastic blocks: pairs of nodes are joined by chance, which depends on their classes alone."""

from __future__ import annotations

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.sets._simulated import Array, assembled, enough, noisy_features


def stochastic_blocks(
    name: str, seed: int, num_nodes: int, partners: Array, degree: float, num_features: int, signal: float
) -> Dataset:
    """``partners[a, b]`` is the share of the edges of class ``a`` that lead to class ``b``; classes are equally large.

    About ``degree num_nodes / 2`` edges are drawn, repeated ones and loops dropped.
    """
    classes = partners.shape[0]
    enough(num_nodes, 20 * classes)
    random = np.random.RandomState(seed)
    labels = random.permutation(np.arange(num_nodes) % classes)
    members = [np.flatnonzero(labels == label) for label in range(classes)]
    source = random.randint(0, num_nodes, int(degree * num_nodes / 2))
    reach = np.cumsum(partners, axis=1)
    chosen = (random.random_sample(source.size)[:, None] > reach[labels[source]]).sum(1).clip(max=classes - 1)
    share = random.random_sample(source.size)
    target = np.array([members[c][int(s * members[c].size)] for c, s in zip(chosen, share, strict=True)])
    features = noisy_features(random, labels, num_features, signal)
    return assembled(name, np.stack([source, target]), labels, features, seed=seed, degree=degree)
