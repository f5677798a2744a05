"""What the known labels around a node say about its own class, worked out once and read by a small network.

Diffusion carries features along edges; the training labels themselves are not among them, although a neighbour's label
says more than its features. Here they become numbers for each node, *its own label left out*, so that a training node
is seen as a node without label will be: what is learned of them carries over.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hgde.graph import Graph
from hgde.kernels.chance import dropout as drop

Array = np.ndarray[Any, Any]

FOLDS, ROUNDS, KEEP = 10, 30, 0.9
_FAINT = 1e-3
"""What arrives after many steps is little; below this much of it, the shares of the classes are the better guess."""


class LabelEvidence(nn.Module):
    """Scores from the labels around each node: ``[N, classes]``, to be added to those of the model.

    Three times the classes: labels of neighbours, labels two steps away, and labels spread over the whole graph
    (``F <- a S F + (1 - a) Y``, ``S = D^-1/2 A D^-1/2``); each as the logarithm of how much more frequent a class is
    there than in training, 0 where nothing is known. Last, the logarithm of the degree. A training node's own label is
    left out of the first two exactly; for the third, training nodes are dealt into ten folds, and a node sees what the
    other nine spread. Cost: ``10 * 30 * E * classes`` once, ``N * classes`` per pass.

    The numbers are part of the state. On another graph than that of :meth:`observe` nothing is known.
    """

    table: Tensor
    known_graph: Tensor

    def __init__(self, num_nodes: int, classes: int, width: int = 32, dropout: float = 0.2) -> None:
        super().__init__()
        self.classes, self.dropout = classes, dropout
        self.register_buffer("table", torch.zeros(num_nodes, 3 * classes + 1))
        self.register_buffer("known_graph", torch.zeros(32, dtype=torch.uint8))
        self.direct = nn.Linear(3 * classes + 1, classes)
        self.hidden = nn.Linear(3 * classes + 1, width)
        self.out = nn.Linear(width, classes, bias=False)
        nn.init.zeros_(self.direct.weight)
        nn.init.zeros_(self.direct.bias)

    def observe(self, graph: Graph, labels: Tensor, nodes: Tensor) -> None:
        """Take in the labels ``[n]`` of training nodes ``[n]``."""
        if labels.dim() != 1 or labels.is_floating_point():
            raise ValueError("label evidence is for one class per node; leave it out for values and label sets")
        given = labels.cpu().numpy().astype(np.int64), nodes.cpu().numpy().astype(np.int64)
        made = _evidence(graph, given[0].tobytes(), given[1].tobytes(), self.classes)
        self.table.copy_(torch.from_numpy(made))
        self.known_graph.copy_(_digest(graph))

    def forward(self, graph: Graph) -> Tensor:
        table = self.table
        if graph.num_nodes != len(table) or not torch.equal(_digest(graph), self.known_graph.cpu()):
            table = table.new_zeros(graph.num_nodes, table.shape[1])
        # A whole node's evidence at a time: at some it is all there is, at others there is none.
        seen = table * drop(torch.ones_like(table[:, :1]), self.dropout, self.training)
        bent = drop(torch.relu(self.hidden(seen)), self.dropout, self.training)
        scores: Tensor = self.direct(seen) + self.out(bent)
        return scores


@lru_cache(maxsize=2)
def _evidence(graph: Graph, labels: bytes, nodes: bytes, classes: int) -> Array:
    """The same again for every candidate of a race: worked out once."""
    return evidence(graph, np.frombuffer(labels, dtype=np.int64), np.frombuffer(nodes, dtype=np.int64), classes)


def evidence(graph: Graph, labels: Array, nodes: Array, classes: int) -> Array:
    """The numbers of :class:`LabelEvidence`, float32 ``[N, 3 classes + 1]``."""
    import scipy.sparse as sp

    adjacency = graph.to_scipy().astype(np.float64)
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    adjacency.data[:] = 1
    degree = np.asarray(adjacency.sum(1)).ravel()
    known = np.zeros((graph.num_nodes, classes))
    known[nodes, labels] = 1
    prior = (known.sum(0) + 1) / (known.sum() + classes)

    inverse = sp.diags(1 / np.maximum(degree, 1))
    near = adjacency @ known
    walked = adjacency @ (inverse @ near)
    # Steps there and back again end at the node itself: of its own label, this much.
    back = np.asarray(adjacency.multiply(adjacency.T) @ (1 / np.maximum(degree, 1))).ravel()
    far = np.maximum(walked - back[:, None] * known, 0)

    looped = adjacency + sp.identity(graph.num_nodes, format="csr")
    scale = sp.diags(1 / np.sqrt(degree + 1))
    spread = (scale @ looped @ scale).tocsr()
    everywhere = _spread(spread, known)
    order = np.random.RandomState(0).permutation(nodes.size)
    for fold in range(min(FOLDS, nodes.size)):
        held = nodes[order[fold::FOLDS]]
        rest = known.copy()
        rest[held] = 0
        everywhere[held] = _spread(spread, rest)[held]

    blocks = [_log_ratio(near, prior, 1.0), _log_ratio(far, prior, 1.0), _log_ratio(everywhere, prior, _FAINT)]
    blocks.append(np.log1p(degree)[:, None] - np.log1p(degree).mean())
    scaled = [block / max(float(np.sqrt((block**2).mean())), 1e-6) for block in blocks]
    return np.concatenate(scaled, axis=1).astype(np.float32)


def _spread(matrix: Any, start: Array) -> Array:
    state = start
    for _ in range(ROUNDS):
        state = KEEP * (matrix @ state) + (1 - KEEP) * start
    return state


def _log_ratio(counts: Array, prior: Array, weight: float) -> Array:
    """How much more frequent a class is than in training, ``weight`` counts of the prior added."""
    shares = (counts + weight * prior) / (counts.sum(1, keepdims=True) + weight)
    ratio: Array = np.log(shares / prior)
    return ratio


def _digest(graph: Graph) -> Tensor:
    digest = hashlib.sha256(graph.hash.encode()).digest()
    return torch.frombuffer(bytearray(digest), dtype=torch.uint8)
