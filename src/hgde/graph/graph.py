"""The one graph container: directed edges in CSR form, grouped by the node that receives."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


T = TypeVar("T")


class _worked_out_once(Generic[T]):  # a decorator
    """``functools.cached_property`` without its lock, which ``torch.compile`` cannot trace; there nothing is kept."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]  # asked of the class, by tools that read documentation
        value = self.function(instance)
        if not torch.compiler.is_compiling():
            instance.__dict__[self.function.__name__] = value
        return value


class GraphError(ValueError):
    """A graph that cannot be used; the message says what is wrong with it and where.

    >>> from hgde import Graph
    >>> Graph.from_edges([(0, -1)])
    Traceback (most recent call last):
    hgde.graph.graph.GraphError: edge 0 is (0, -1): node numbers start at 0
    """


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph on nodes ``0 .. num_nodes - 1``.

    Row ``i`` holds the nodes ``j`` that node ``i`` receives from, in ascending order:
    ``indices[indptr[i]:indptr[i + 1]]``. An undirected graph stores each edge in both directions. Every tensor of
    edge values elsewhere in the package follows this order; so does ``weights``, ``[E]`` float64 and positive, of a
    graph that has them.

    Build one with :meth:`from_edges` or :meth:`from_scipy`; the constructor trusts its arguments.

    >>> import torch
    >>> graph = Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), 3)   # a path, both directions
    >>> graph.num_edges, graph.degree.tolist()
    (4, [1, 2, 1])
    """

    indptr: Tensor
    indices: Tensor
    weights: Tensor | None = None

    @classmethod
    def from_edges(
        cls,
        edges: Tensor | np.ndarray[Any, Any] | list[tuple[int, int]],
        num_nodes: int | None = None,
        weights: Tensor | np.ndarray[Any, Any] | list[float] | None = None,
        *,
        undirected: bool = True,
        self_loops: bool = False,
        merge_duplicates: bool = True,
    ) -> Graph:
        """Build a graph from pairs ``(source, target)`` of shape ``[2, E]`` (or a list of pairs).

        Weights of an edge that is listed several times in the same direction are added, as scipy does. In an undirected
        graph an edge has one weight: the larger of those of its two directions, so that a list which has every edge in
        both directions means the same as one which has it once.

        Args:
            edges: integer node numbers.
            num_nodes: number of nodes; by default one more than the largest number that occurs.
            weights: a positive number for each listed edge.
            undirected: also store the reverse of every edge.
            self_loops: keep edges from a node to itself (dropped otherwise).
            merge_duplicates: store an edge once however often it is listed.

        Raises:
            GraphError: for a wrong shape, a number out of range, a non-integer type, or a weight that is not positive.
        """
        source, target, num_nodes = _checked_pairs(edges, num_nodes)
        values = None if weights is None else _checked_weights(weights, source)
        if not self_loops:
            keep = source != target
            source, target = source[keep], target[keep]
            values = None if values is None else values[keep]
        width = max(num_nodes, 1)
        key = target * width + source
        if values is None:
            if undirected:
                proper = source != target
                key = torch.cat([key, source[proper] * width + target[proper]])
            key = torch.unique(key) if merge_duplicates else torch.sort(key).values
        else:
            key, values = _weighted_keys(key, values, width, undirected, merge_duplicates)
        target = key // width
        indptr = torch.zeros(num_nodes + 1, dtype=torch.int64, device=key.device)
        indptr[1:] = torch.cumsum(torch.bincount(target, minlength=num_nodes), 0)
        return cls(indptr, key % width, values)

    @classmethod
    def from_scipy(
        cls, adjacency: csr_matrix, *, undirected: bool = True, self_loops: bool = False, weighted: bool = False
    ) -> Graph:
        """Build a graph from a square scipy matrix: an edge wherever it is non-zero.

        Entry ``(i, j)`` is an edge from ``i`` to ``j``. Its value is the edge's weight if ``weighted``, else not used.
        """
        coo = adjacency.tocoo()
        if coo.shape[0] != coo.shape[1]:
            raise GraphError(f"an adjacency matrix must be square, got {coo.shape[0]} x {coo.shape[1]}")
        present = coo.data != 0
        pairs = np.stack([coo.row[present], coo.col[present]]).astype(np.int64)
        weights = coo.data[present].astype(np.float64) if weighted else None
        return cls.from_edges(pairs, coo.shape[0], weights, undirected=undirected, self_loops=self_loops)

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

    @_worked_out_once
    def degree(self) -> Tensor:
        """Number of edges that arrive at each node, ``[N]``."""
        return self.indptr[1:] - self.indptr[:-1]

    @_worked_out_once
    def weighted_degree(self) -> Tensor:
        """Sum of the weights that arrive at each node, ``[N]`` float64; the degree where there are no weights."""
        if self.weights is None:
            return self.degree.double()
        total = torch.zeros(self.num_nodes, dtype=torch.float64, device=self.device)
        return total.index_add_(0, self.rows, self.weights)

    @_worked_out_once
    def rows(self) -> Tensor:
        """The receiving node of each edge, ``[E]``."""
        return torch.repeat_interleave(
            torch.arange(self.num_nodes, device=self.device), self.degree, output_size=self.num_edges
        )

    @property
    def edge_index(self) -> Tensor:
        """``[2, E]``: sources, then targets (PyG's convention)."""
        return torch.stack([self.indices, self.rows])

    @_worked_out_once
    def by_source(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same edges grouped by the node that sends: ``(indptr, targets, order)``.

        ``order[p]`` is the position, among this graph's edges, of the edge at place ``p`` of the regrouped list, so
        ``weights[order]`` are the weights in that order.
        """
        order = torch.argsort(self.indices, stable=True)
        indptr = torch.zeros_like(self.indptr)
        indptr[1:] = torch.cumsum(torch.bincount(self.indices, minlength=self.num_nodes), 0)
        return indptr, self.rows[order], order

    @_worked_out_once
    def is_symmetric(self) -> bool:
        """Whether every edge is present in both directions, equally often; weights are not looked at."""
        indptr, targets, _ = self.by_source
        return bool(torch.equal(indptr, self.indptr)) and bool(torch.equal(targets, self.indices))

    @_worked_out_once
    def undirected_edges(self) -> Tensor:
        """Each pair of joined nodes once, ``[2, M]`` with ``u < v``; self-loops left out."""
        key = torch.unique(self._pair_keys[self.rows != self.indices])
        return torch.stack([key // max(self.num_nodes, 1), key % max(self.num_nodes, 1)])

    @property
    def undirected_index(self) -> Tensor:
        """The column of :attr:`undirected_edges` that each edge belongs to, ``[E]``; -1 for self-loops."""
        u, v = self.undirected_edges
        place = torch.searchsorted(u * max(self.num_nodes, 1) + v, self._pair_keys)
        return torch.where(self.rows == self.indices, -1, place)

    @property
    def _pair_keys(self) -> Tensor:
        """``min * N + max`` of the two ends of each edge, ``[E]``."""
        low, high = torch.minimum(self.rows, self.indices), torch.maximum(self.rows, self.indices)
        return low * max(self.num_nodes, 1) + high

    @_worked_out_once
    def hash(self) -> str:
        """SHA-256 of structure and weights: the same for the same graph on any machine and device."""
        digest = hashlib.sha256(b"hgde-graph-1")
        for part in (self.indptr, self.indices):
            digest.update(part.cpu().numpy().astype("<i8").tobytes())
        if self.weights is not None:
            digest.update(b"weights" + self.weights.cpu().numpy().astype("<f8").tobytes())
        return digest.hexdigest()

    def unweighted(self) -> Graph:
        """The same edges, each counting once."""
        return self if self.weights is None else Graph(self.indptr, self.indices)

    def with_self_loops(self) -> Graph:
        """This graph with one loop, of weight 1, added at every node that has none."""
        nodes = torch.arange(self.num_nodes, device=self.device)
        looped = self.indices[self.rows == self.indices]
        missing = nodes[~torch.isin(nodes, looped)]
        pairs = torch.cat([self.edge_index, torch.stack([missing, missing])], dim=1)
        weights = None
        if self.weights is not None:
            weights = torch.cat([self.weights, torch.ones_like(missing, dtype=torch.float64)])
        return Graph.from_edges(
            pairs, self.num_nodes, weights, undirected=False, self_loops=True, merge_duplicates=False
        )

    def subgraph(self, nodes: Tensor) -> Graph:
        """The graph on ``nodes`` (in the given order, renumbered from 0) with the edges among them."""
        position = torch.full((self.num_nodes,), -1, dtype=torch.int64, device=self.device)
        position[nodes] = torch.arange(nodes.numel(), device=self.device)
        source, target = position[self.indices], position[self.rows]
        inside = (source >= 0) & (target >= 0)
        pairs = torch.stack([source[inside], target[inside]])
        weights = None if self.weights is None else self.weights[inside]
        return Graph.from_edges(
            pairs, nodes.numel(), weights, undirected=False, self_loops=True, merge_duplicates=False
        )

    def keep_edges(self, kept: Tensor) -> Graph:
        """The same nodes with the edges where ``kept``, ``[E]`` of booleans, is true."""
        indptr = torch.zeros_like(self.indptr)
        indptr[1:] = torch.cumsum(torch.bincount(self.rows[kept], minlength=self.num_nodes), 0)
        return Graph(indptr, self.indices[kept], None if self.weights is None else self.weights[kept])

    def without_pairs(self, pairs: Tensor) -> Graph:
        """The graph without the edges between ``pairs`` ``[2, M]``, in either direction."""
        width = max(self.num_nodes, 1)
        hidden = torch.minimum(pairs[0], pairs[1]) * width + torch.maximum(pairs[0], pairs[1])
        return self.keep_edges(~torch.isin(self._pair_keys, hidden.to(self.device)))

    def to_scipy(self, *, weighted: bool = False) -> csr_matrix:
        """The adjacency matrix, row = receiving node: ones, or the weights if ``weighted`` and there are any."""
        from scipy.sparse import csr_matrix

        indices, indptr = self.indices.cpu().numpy(), self.indptr.cpu().numpy()
        if weighted and self.weights is not None:
            values = self.weights.cpu().numpy()
        else:
            values = np.ones(indices.size, dtype=np.float32)
        return csr_matrix((values, indices, indptr), shape=(self.num_nodes, self.num_nodes))

    def to(self, device: torch.device | str) -> Graph:
        if self.device == torch.device(device):
            return self
        weights = None if self.weights is None else self.weights.to(device)
        return Graph(self.indptr.to(device), self.indices.to(device), weights)

    def __repr__(self) -> str:
        kind = "undirected" if self.is_symmetric else "directed"
        weighted = ", weighted" if self.weights is not None else ""
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}, {kind}{weighted})"


_FREE_NUMBERS, _NUMBERS_PER_EDGE = 10_000_000, 100
"""Numbers that nodes may have whatever the edges, and that they may have for each edge: more are ids, not numbers."""

_MOST_NODES = 2**31 - 1
"""Compiled kernels count nodes in 32 bits, and two numbers make one key of 64."""


def _checked_pairs(edges: Any, num_nodes: int | None) -> tuple[Tensor, Tensor, int]:
    try:
        pairs = torch.as_tensor(np.asarray(edges) if not isinstance(edges, Tensor) else edges)
    except (TypeError, ValueError, OverflowError) as error:  # texts, ragged lists, numbers beyond 64 bits
        raise GraphError(f"edges must hold integer node numbers ({error})") from None
    if pairs.numel() == 0:
        pairs = torch.zeros(2, 0, dtype=torch.int64, device=pairs.device)
    elif isinstance(edges, list):
        if pairs.dim() != 2 or pairs.shape[1] != 2:
            raise GraphError(f"a list of edges must hold pairs (source, target), got shape {list(pairs.shape)}")
        pairs = pairs.T
    if pairs.dim() != 2 or pairs.shape[0] != 2:
        raise GraphError(f"edges must have shape [2, E] (sources, then targets), got {list(pairs.shape)}")
    if pairs.is_floating_point() or pairs.is_complex() or pairs.dtype == torch.bool:
        raise GraphError(f"edges must hold integer node numbers, got {pairs.dtype}")
    source, target = pairs.to(torch.int64)
    largest = int(pairs.max()) if pairs.numel() else -1
    if num_nodes is None:
        num_nodes = largest + 1
        most = max(_FREE_NUMBERS, _NUMBERS_PER_EDGE * pairs.shape[1])
        if num_nodes > most:
            raise GraphError(
                f"the largest node number is {largest:,} in {pairs.shape[1]:,} edges, which would be as many nodes; "
                "number the nodes from 0 without gaps, or say how many there are (num_nodes)"
            )
    if num_nodes > _MOST_NODES:
        raise GraphError(f"a graph has at most {_MOST_NODES:,} nodes, got {num_nodes:,}")
    if pairs.numel() and int(pairs.min()) < 0:
        where = int((pairs < 0).any(0).nonzero()[0])
        raise GraphError(f"edge {where} is ({source[where]}, {target[where]}): node numbers start at 0")
    if largest >= num_nodes:
        where = int((pairs >= num_nodes).any(0).nonzero()[0])
        raise GraphError(
            f"edge {where} is ({source[where]}, {target[where]}), but the graph has {num_nodes} nodes "
            f"(0 to {num_nodes - 1})"
        )
    return source, target, num_nodes


def _checked_weights(weights: Any, source: Tensor) -> Tensor:
    values = torch.as_tensor(weights, dtype=torch.float64, device=source.device)
    if values.shape != source.shape:
        raise GraphError(f"expected one weight for each of {source.numel()} edges, got shape {list(values.shape)}")
    wrong = ~(torch.isfinite(values) & (values > 0))
    if bool(wrong.any()):
        where = int(wrong.nonzero()[0])
        raise GraphError(f"the weight of edge {where} is {float(values[where]):g}; weights are positive and finite")
    return values


def _weighted_keys(
    key: Tensor, values: Tensor, width: int, undirected: bool, merge_duplicates: bool
) -> tuple[Tensor, Tensor]:
    """Sorted keys ``target * width + source`` and their weights, merged as :meth:`Graph.from_edges` says."""
    if merge_duplicates:
        key, place = torch.unique(key, return_inverse=True)
        values = torch.zeros(key.numel(), dtype=values.dtype, device=key.device).index_add_(0, place, values)
    if undirected:
        target, source = key // width, key % width
        proper = target != source
        key = torch.cat([key, source[proper] * width + target[proper]])
        values = torch.cat([values, values[proper]])
    if undirected and merge_duplicates:
        key, place = torch.unique(key, return_inverse=True)
        empty = torch.zeros(key.numel(), dtype=values.dtype, device=key.device)
        return key, empty.scatter_reduce_(0, place, values, "amax")
    order = torch.argsort(key, stable=True)
    return key[order], values[order]
