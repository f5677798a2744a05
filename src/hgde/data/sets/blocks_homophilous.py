"""Stochastic blocks whose edges mostly stay within a class."""

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
    homophily: float = 0.8,
    degree: float = 6.0,
    num_features: int = 16,
    signal: float = 1.5,
) -> Dataset:
    """An edge stays within a node's class with probability ``homophily``, else leads to any other."""
    partners = np.full((classes, classes), (1 - homophily) / (classes - 1))
    np.fill_diagonal(partners, homophily)
    return stochastic_blocks("blocks-homophilous", seed, num_nodes, partners, degree, num_features, signal)


SPEC = register(simulated("blocks-homophilous", "stochastic blocks, most edges within a class", make))
