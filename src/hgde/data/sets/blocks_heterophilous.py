"""Stochastic blocks whose edges mostly lead to other classes, to some more than to others."""

from __future__ import annotations

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.sets._blocks import stochastic_blocks
from hgde.data.sets._simulated import simulated
from hgde.data.spec import register


def make(
    seed: int = 0,
    num_nodes: int = 2000,
    classes: int = 5,
    homophily: float = 0.1,
    degree: float = 8.0,
    num_features: int = 16,
    signal: float = 1.5,
) -> Dataset:
    """Classes stand in a ring; an edge stays in its class with probability ``homophily``, else mostly goes to a
    neighbouring class, so that who a node's neighbours are says which class it has."""
    partners = np.full((classes, classes), 0.1 * (1 - homophily) / max(classes - 3, 1))
    for label in range(classes):
        partners[label, label] = homophily
        for step in (-1, 1):
            partners[label, (label + step) % classes] = 0.45 * (1 - homophily)
    return stochastic_blocks(
        "blocks-heterophilous",
        seed,
        num_nodes,
        partners / partners.sum(1, keepdims=True),
        degree,
        num_features,
        signal,
    )


SPEC = register(simulated("blocks-heterophilous", "stochastic blocks, few edges within a class", make))
