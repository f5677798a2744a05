"""A small two-block graph, and a plain training loop, for tests of the models."""

import numpy as np
import torch
from scipy.sparse import csr_matrix

from hgde import randomness
from hgde.graph import Graph, SparseFeatures
from hgde.models.base import MODELS, Shape
from hgde.sections import from_dict

SMALL = {
    "gcnii": {"layers": 4, "dropout": 0.1},
    "gat": {"width": 16, "heads": 2, "dropout": 0.1},
    "gat-knn": {"width": 16, "heads": 2, "dropout": 0.1},
    "dense-gat": {"width": 16, "heads": 2, "dropout": 0.0},
    "grand": {"width": 16, "time": 2.0, "attention_width": 8, "heads": 2},
    "blend": {"width": 16, "time": 2.0, "attention_width": 8, "heads": 2},
    "hyla-sgc": {"hyla_width": 64},
    "difformer": {"layers": 2, "width": 16},
    "graphcon": {"dropout": 0.1},
}

SLOW_LEARNERS = {"blend", "difformer", "gde", "graphcon", "hyla-sgc", "lgcn", "manireg"}
"""Models that large steps do not take to their goal in twenty epochs, or only just."""


def two_blocks(num_nodes=60, seed=0, dtype=torch.float32, sparse=False):
    """Two classes: mostly edges inside a class, and features that lean to it; no two nodes are alike."""
    rng = np.random.default_rng(seed)
    labels = np.arange(num_nodes) % 2
    same = labels[:, None] == labels[None]
    linked = np.triu(rng.random((num_nodes, num_nodes)) < np.where(same, 0.15, 0.02), 1)
    graph = Graph.from_edges(torch.tensor(np.stack(np.nonzero(linked))), num_nodes)
    matrix = rng.random((num_nodes, 12)) * (rng.random((num_nodes, 12)) < 0.6)
    matrix[:, 0] += 2 * labels
    matrix[:, 1] += 2 * (1 - labels)
    features = SparseFeatures.from_scipy(csr_matrix(matrix), dtype)
    return graph, features if sparse else features.to_dense(), torch.tensor(labels)


def make(name, shape, options=None, dtype=torch.float32, seed=0):
    kind = MODELS.get(name)
    settings = from_dict(kind.Settings, SMALL.get(name, {}) if options is None else options)
    with randomness.use(randomness.make_generator(seed), reroute=True):
        return kind(settings, shape).to(dtype)


def relabelled(graph, features, order):
    """The same graph with node ``order[i]`` now called ``i``."""
    place = torch.empty_like(order)
    place[order] = torch.arange(order.numel())
    pairs = place[graph.edge_index]
    moved = Graph.from_edges(pairs, graph.num_nodes, undirected=False)
    return moved, features.select(order) if isinstance(features, SparseFeatures) else features[order]


def shape_of(features, outputs=2):
    return Shape(features.shape[1], features.shape[0], outputs)


def epochs_for(name):
    """How long, and with what steps, a model learns the two blocks."""
    return {"epochs": 40, "lr": 0.03} if name in SLOW_LEARNERS else {"epochs": 20, "lr": 0.06}


def train(model, features, graph, labels, nodes, epochs=40, lr=0.03):
    model.prepare(graph)
    model.observe(labels[nodes], nodes)
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        return model.eval()
    optimiser = torch.optim.Adam(parameters, lr=lr)
    with randomness.use(randomness.make_generator(1), reroute=model.reroutes):
        for _ in range(epochs):
            model.train()
            optimiser.zero_grad()
            outputs = model(features, graph)
            loss = torch.nn.functional.cross_entropy(outputs[nodes], labels[nodes])
            extra = model.penalty(features, graph, outputs)
            (loss if extra is None else loss + extra).backward()
            optimiser.step()
    return model.eval()
