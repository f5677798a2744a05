"""What is measured on: random graphs of a given size, and Cora and PubMed where their files are at hand."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hgde.graph import Graph, SparseFeatures
from hgde.kernels import EdgeWeights

SIZES = {"cora": (2708, 5278, 1433, 7, 0.0127), "pubmed": (19717, 44324, 500, 3, 0.1)}


@dataclass(frozen=True)
class Problem:
    """Points, a graph and isotropic weights, all that one evaluation of the flow takes."""

    graph: Graph
    z: Tensor
    weights: Tensor

    @property
    def edge_weights(self) -> EdgeWeights:
        return EdgeWeights(self.weights)


def random_problem(edges: int, width: int, nodes: int | None = None) -> Problem:
    """About ``edges`` directed edges between uniformly random pairs, ten for each node."""
    nodes = nodes or edges // 10
    generator = torch.Generator().manual_seed(0)
    graph = Graph.from_edges(torch.randint(0, nodes, (2, edges // 2), generator=generator), nodes)
    return problem_on(graph, width)


def problem_on(graph: Graph, width: int) -> Problem:
    generator = torch.Generator().manual_seed(1)
    z = torch.randn(graph.num_nodes, width, generator=generator) * (0.5 / width**0.5)
    degree = graph.degree.clamp_min(1).float()
    values = (degree[graph.rows] * degree[graph.indices]).rsqrt()
    return Problem(graph, z.requires_grad_(), values.requires_grad_())


@dataclass(frozen=True)
class Citations:
    graph: Graph
    features: SparseFeatures
    labels: Tensor
    train: Tensor
    real: bool


def learning_from_all(data: Citations) -> Citations:
    """The same graph with every node in the training part, so that an epoch works on all rows."""
    return replace(data, train=torch.arange(data.graph.num_nodes))


def citations(name: str) -> Citations:
    """The named data set from the folder ``HGDE_DATA``, or random data of its size."""
    path = Path(os.environ.get("HGDE_DATA", "")) / f"{name}.npz"
    if os.environ.get("HGDE_DATA") and path.is_file():
        from scipy.sparse import csr_matrix

        with np.load(path) as stored:
            parts = (stored["feat_data"], stored["feat_indices"], stored["feat_indptr"])
            features = SparseFeatures.from_scipy(csr_matrix(parts, shape=tuple(stored["feat_shape"]))).row_normalised()
            labels = torch.from_numpy(stored["y"].astype(np.int64))
            graph = Graph.from_edges(stored["edge_index"].astype(np.int64), len(labels))
            return Citations(graph, features, labels, torch.from_numpy(stored["train_idx"].astype(np.int64)), True)
    nodes, edges, columns, classes, density = SIZES[name]
    from scipy import sparse

    generator = np.random.default_rng(0)
    matrix = sparse.random(nodes, columns, density, "csr", random_state=generator)
    # Half the ends drawn with a preference for few nodes, so that there are hubs as in a citation graph.
    ends = np.stack([generator.integers(0, nodes, edges), (nodes * generator.random(edges) ** 3).astype(np.int64)])
    labels = torch.from_numpy(generator.integers(0, classes, nodes))
    features = SparseFeatures.from_scipy(matrix).row_normalised()
    return Citations(Graph.from_edges(ends, nodes), features, labels, torch.arange(20 * classes), False)
