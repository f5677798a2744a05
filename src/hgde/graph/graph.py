"""The one graph container: directed edges in CSR form, grouped by the node that receives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class GraphError(ValueError):
    """A graph that cannot be used; the message says what is wrong with it and where."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph on nodes ``0 .. num_nodes - 1``.

    Row ``i`` holds the nodes ``j`` that node ``i`` receives from, in ascending order:
    ``indices[indptr[i]:indptr[i + 1]]``. An undirected graph stores each edge in both directions. Every tensor of
    edge values elsewhere in the package follows this order.

    Build one with :meth:`from_edges` or :meth:`from_scipy`; the constructor trusts its arguments.
    """

    indptr: Tensor
    indices: Tensor

    @classmethod
    def from_edges(
        cls,
        edges: Tensor | np.ndarray[Any, Any] | list[tuple[int, int]],
        num_nodes: int | None = None,
        *,
        undirected: bool = True,
        self_loops: bool = False,
        merge_duplicates: bool = True,
    ) -> Graph:
        """Build a graph from pairs ``(source, target)`` of shape ``[2, E]`` (or a list of pairs).

        Args:
            edges: integer node numbers.
            num_nodes: number of nodes; by default one more than the largest number that occurs.
            undirected: also store the reverse of every edge.
            self_loops: keep edges from a node to itself (dropped otherwise).
            merge_duplicates: store an edge once however often it is listed.

        Raises:
            GraphError: for a wrong shape, a number out of range or a non-integer type.
        """
        pairs = torch.as_tensor(np.asarray(edges) if not isinstance(edges, Tensor) else edges)
        if isinstance(edges, list):
            pairs = pairs.reshape(-1, 2).T
        if pairs.numel() == 0:
            pairs = torch.zeros(2, 0, dtype=torch.int64)
        if pairs.dim() != 2 or pairs.shape[0] != 2:
            raise GraphError(f"edges must have shape [2, E] (sources, then targets), got {list(pairs.shape)}")
        if pairs.is_floating_point() or pairs.is_complex() or pairs.dtype == torch.bool:
            raise GraphError(f"edges must hold integer node numbers, got {pairs.dtype}")
        source, target = pairs.to(torch.int64)
        largest = int(pairs.max()) if pairs.numel() else -1
        if num_nodes is None:
            num_nodes = largest + 1
        if pairs.numel() and int(pairs.min()) < 0:
            where = int((pairs < 0).any(0).nonzero()[0])
            raise GraphError(f"edge {where} is ({source[where]}, {target[where]}): node numbers start at 0")
        if largest >= num_nodes:
            where = int((pairs >= num_nodes).any(0).nonzero()[0])
            raise GraphError(
                f"edge {where} is ({source[where]}, {target[where]}), but the graph has {num_nodes} nodes "
                f"(0 to {num_nodes - 1})"
            )
        if undirected:
            loop = source == target
            source, target = (
                torch.cat([source, target[~loop]]),
                torch.cat([target, source[~loop]]),
            )
        if not self_loops:
            keep = source != target
            source, target = source[keep], target[keep]
        key = target * max(num_nodes, 1) + source
        key = torch.unique(key) if merge_duplicates else torch.sort(key).values
        target, source = key // max(num_nodes, 1), key % max(num_nodes, 1)
        indptr = torch.zeros(num_nodes + 1, dtype=torch.int64, device=key.device)
        indptr[1:] = torch.cumsum(torch.bincount(target, minlength=num_nodes), 0)
        return cls(indptr, source)

    @classmethod
    def from_scipy(cls, adjacency: csr_matrix, *, undirected: bool = True, self_loops: bool = False) -> Graph:
        """Build a graph from a square scipy matrix: an edge wherever it is non-zero (values are not used)."""
        coo = adjacency.tocoo()
        if coo.shape[0] != coo.shape[1]:
            raise GraphError(f"an adjacency matrix must be square, got {coo.shape[0]} x {coo.shape[1]}")
        present = coo.data != 0
        pairs = np.stack([coo.row[present], coo.col[present]]).astype(np.int64)
        return cls.from_edges(pairs, coo.shape[0], undirected=undirected, self_loops=self_loops)

    @property
    def num_nodes(self) -> int:
        return self.indptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.indices.numel()

    @property
    def device(self) -> torch.device:
        return self.indices.device

    @cached_property
    def degree(self) -> Tensor:
        """Number of edges that arrive at each node, ``[N]``."""
        return self.indptr[1:] - self.indptr[:-1]

    @cached_property
    def rows(self) -> Tensor:
        """The receiving node of each edge, ``[E]``."""
        return torch.repeat_interleave(torch.arange(self.num_nodes, device=self.device), self.degree)

    @property
    def edge_index(self) -> Tensor:
        """``[2, E]``: sources, then targets (PyG's convention)."""
        return torch.stack([self.indices, self.rows])

    @cached_property
    def by_source(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same edges grouped by the node that sends: ``(indptr, targets, order)``.

        ``order[p]`` is the position, among this graph's edges, of the edge at place ``p`` of the regrouped list.
        """
        order = torch.argsort(self.indices, stable=True)
        indptr = torch.zeros_like(self.indptr)
        indptr[1:] = torch.cumsum(torch.bincount(self.indices, minlength=self.num_nodes), 0)
        return indptr, self.rows[order], order

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether every edge is present in both directions, equally often."""
        indptr, targets, _ = self.by_source
        return bool(torch.equal(indptr, self.indptr)) and bool(torch.equal(targets, self.indices))

    @cached_property
    def undirected_edges(self) -> Tensor:
        """Each pair of joined nodes once, ``[2, M]`` with ``u < v``; self-loops left out."""
        low, high = torch.minimum(self.rows, self.indices), torch.maximum(self.rows, self.indices)
        proper = low != high
        key = torch.unique(low[proper] * max(self.num_nodes, 1) + high[proper])
        return torch.stack([key // max(self.num_nodes, 1), key % max(self.num_nodes, 1)])

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the structure: the same for the same graph on any machine and device."""
        digest = hashlib.sha256(b"hgde-graph-1")
        for part in (self.indptr, self.indices):
            digest.update(part.cpu().numpy().astype("<i8").tobytes())
        return digest.hexdigest()

    def with_self_loops(self) -> Graph:
        """This graph with one loop added at every node that has none."""
        nodes = torch.arange(self.num_nodes, device=self.device)
        looped = self.indices[self.rows == self.indices]
        missing = nodes[~torch.isin(nodes, looped)]
        pairs = torch.cat([self.edge_index, torch.stack([missing, missing])], dim=1)
        return Graph.from_edges(pairs, self.num_nodes, undirected=False, self_loops=True, merge_duplicates=False)

    def subgraph(self, nodes: Tensor) -> Graph:
        """The graph on ``nodes`` (in the given order, renumbered from 0) with the edges among them."""
        position = torch.full((self.num_nodes,), -1, dtype=torch.int64, device=self.device)
        position[nodes] = torch.arange(nodes.numel(), device=self.device)
        source, target = position[self.indices], position[self.rows]
        inside = (source >= 0) & (target >= 0)
        pairs = torch.stack([source[inside], target[inside]])
        return Graph.from_edges(pairs, nodes.numel(), undirected=False, self_loops=True, merge_duplicates=False)

    def to_scipy(self) -> csr_matrix:
        """The 0/1 adjacency matrix, row = receiving node."""
        from scipy.sparse import csr_matrix

        indices, indptr = self.indices.cpu().numpy(), self.indptr.cpu().numpy()
        ones = np.ones(indices.size, dtype=np.float32)
        return csr_matrix((ones, indices, indptr), shape=(self.num_nodes, self.num_nodes))

    def to(self, device: torch.device | str) -> Graph:
        return self if self.device == torch.device(device) else Graph(self.indptr.to(device), self.indices.to(device))

    def __repr__(self) -> str:
        kind = "undirected" if self.is_symmetric else "directed"
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}, {kind})"
