"""A mixture of normal distributions and the graph of nearest neighbours in it."""

from __future__ import annotations

import numpy as np
import torch

from hgde.data.dataset import Dataset
from hgde.data.sets._simulated import enough, simulated
from hgde.data.spec import register
from hgde.graph.knn import knn_graph


def make(
    seed: int = 0,
    num_nodes: int = 1500,
    classes: int = 5,
    parts: int = 3,
    neighbours: int = 6,
    num_features: int = 12,
    spread: float = 3.0,
) -> Dataset:
    """Each class is a mixture of ``parts`` normal distributions whose centres are ``spread`` from the origin.

    The graph joins each node with its nearest neighbours, itself counted among ``neighbours``.
    """
    enough(num_nodes, 20 * classes)
    random = np.random.RandomState(seed)
    centres = random.standard_normal((classes * parts, num_features))
    centres *= spread / np.linalg.norm(centres, axis=1, keepdims=True)
    part = random.randint(0, classes * parts, num_nodes)
    features = torch.from_numpy((centres[part] + random.standard_normal((num_nodes, num_features))).astype(np.float32))
    return Dataset(
        name="mixture-knn",
        graph=knn_graph(features, neighbours),
        features=features,
        labels=torch.from_numpy((part % classes).astype(np.int64)),
        meta={"seed": seed, "graph": f"{neighbours} nearest neighbours, counting the node itself", "spread": spread},
    )


SPEC = register(simulated("mixture-knn", "nearest neighbours in a mixture of normal distributions", make))
