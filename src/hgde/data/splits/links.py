"""Link splits: edges hidden from the model, and non-edges to tell them from (85/5/10 %, as HGCN's protocol)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.graph.graph import Graph, GraphError

Array = np.ndarray[Any, Any]

LINK_PROTOCOLS: dict[str, str] = {
    "published": "HGCN's habit: a node paired with itself may be a negative, and training negatives are drawn from "
    "everything that is not a training edge, validation and test edges included",
    "clean": "no self pairs; training negatives avoid every edge and every held-out negative",
}

_ENUMERATE_UP_TO = 30_000_000


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """Edges and non-edges as ``[2, M]`` node pairs with ``u <= v``, and the graph messages may travel on.

    Args:
        train_pos: edges for training; ``graph`` holds exactly these, in the directions and with the weights they have.
        val_pos: validation edges.
        val_neg: as many pairs that are not edges.
        test_pos: test edges.
        test_neg: as many pairs that are not edges.
        graph: the graph of training edges only, on all nodes.
        protocol: ``published`` or ``clean``.
        seed: the seed the split came from.
        forbidden: sorted keys ``u * N + v`` that :meth:`sample_training_negatives` never returns.

    >>> from hgde import load
    >>> from hgde.data import link_split
    >>> split = link_split(load("tree-random", num_nodes=100).graph, seed=0)
    >>> split.val_pos.shape == split.val_neg.shape, split.sample_training_negatives(7).shape
    (True, torch.Size([2, 7]))
    """

    train_pos: Tensor
    val_pos: Tensor
    val_neg: Tensor
    test_pos: Tensor
    test_neg: Tensor
    graph: Graph
    protocol: str
    seed: int
    forbidden: Tensor

    @property
    def name(self) -> str:
        return f"links-{self.protocol}/seed={self.seed}"

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the five lists and the protocol: the same for the same split on any machine."""
        digest = hashlib.sha256(b"hgde-link-split-1" + self.protocol.encode())
        for part in (self.train_pos, self.val_pos, self.val_neg, self.test_pos, self.test_neg):
            digest.update(part.shape[1].to_bytes(8, "little"))
            digest.update(part.cpu().numpy().astype("<i8").tobytes())
        return digest.hexdigest()

    def sample_training_negatives(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """``count`` pairs, ``[2, count]``, uniform over the protocol's pool, drawn with replacement.

        ``clean``: pairs ``u < v`` that are neither an edge of the whole graph nor a held-out negative.
        ``published``: pairs ``u <= v`` that are not training edges. Cost: about ``2 * count`` draws and lookups.
        """
        num_nodes, device = self.graph.num_nodes, self.forbidden.device
        draw_on = generator.device if generator is not None else device
        drawn: list[Tensor] = []
        missing = count
        for _ in range(1000):
            pairs = torch.randint(num_nodes, (2, 2 * missing + 64), generator=generator, device=draw_on).to(device)
            low, high = pairs
            # Keeping one of the two orders makes all pairs equally likely, the diagonal included.
            keep = (low <= high) if self.protocol == "published" else (low < high)
            keep &= ~_contains(self.forbidden, low * num_nodes + high)
            drawn.append(pairs[:, keep][:, :missing])
            missing -= drawn[-1].shape[1]
            if missing <= 0:
                return torch.cat(drawn, dim=1)
        raise GraphError(f"the graph has hardly any pair of {num_nodes} nodes left to serve as a negative")

    def to(self, device: torch.device | str) -> LinkSplit:
        return replace(
            self,
            train_pos=self.train_pos.to(device),
            val_pos=self.val_pos.to(device),
            val_neg=self.val_neg.to(device),
            test_pos=self.test_pos.to(device),
            test_neg=self.test_neg.to(device),
            graph=self.graph.to(device),
            forbidden=self.forbidden.to(device),
        )

    def __repr__(self) -> str:
        sizes = "/".join(str(p.shape[1]) for p in (self.train_pos, self.val_pos, self.test_pos))
        return f"LinkSplit({self.name}, {sizes}, {self.hash[:12]})"


def link_split(
    graph: Graph, seed: int = 1234, protocol: str = "published", *, val_share: float = 0.05, test_share: float = 0.10
) -> LinkSplit:
    """Hide 5 % of the undirected edges for validation and 10 % for testing, with as many non-edges each.

    Both protocols share the positive lists of a seed, so their difference is the negatives alone. With ``published``
    the non-edges are HGCN's own for that seed on a graph of up to about 7,700 nodes; on larger ones (for which HGCN
    ships a list) they are drawn from the same pool without enumerating it.

    Raises:
        GraphError: for an unknown protocol, or a graph with too few edges or too few non-edges.

    >>> from hgde import load
    >>> split = link_split(load("tree-random", num_nodes=101).graph, seed=0, protocol="clean")
    >>> [part.shape[1] for part in (split.train_pos, split.val_pos, split.test_pos)]
    [85, 5, 10]
    """
    if protocol not in LINK_PROTOCOLS:
        raise GraphError(f"unknown link protocol {protocol!r}; there are: {', '.join(LINK_PROTOCOLS)}")
    edges = graph.undirected_edges.cpu().numpy()
    num_edges, num_nodes = edges.shape[1], graph.num_nodes
    num_val, num_test = int(num_edges * val_share), int(num_edges * test_share)
    if num_val < 1 or (num_test < 1 and test_share > 0) or num_val + num_test >= num_edges:
        raise GraphError(
            f"{num_edges} edges are too few to hide {val_share:.0%} for validation and {test_share:.0%} for testing"
        )
    random = np.random.RandomState(seed)
    # Shuffling positions draws the same numbers as shuffling the rows, as HGCN does, at a fraction of the cost.
    order = np.arange(num_edges)
    random.shuffle(order)
    val, test, train = np.split(edges[:, order], [num_val, num_val + num_test], axis=1)
    edge_keys = np.sort(edges[0] * num_nodes + edges[1])
    negatives = _non_edges(edge_keys, num_nodes, num_val + num_test, random, diagonal=protocol == "published")
    val_neg, test_neg = np.split(np.stack([negatives // num_nodes, negatives % num_nodes]), [num_val], axis=1)
    if protocol == "published":
        forbidden = np.sort(train[0] * num_nodes + train[1])
    else:
        forbidden = np.unique(np.concatenate([edge_keys, negatives]))
    # The graph keeps its directions and weights: only the hidden pairs are taken out of it.
    held_out = torch.from_numpy(np.concatenate([val, test], axis=1))
    train_graph = graph.keep_edges(graph.rows != graph.indices).without_pairs(held_out)
    split = LinkSplit(
        train_pos=_pairs(train),
        val_pos=_pairs(val),
        val_neg=_pairs(val_neg),
        test_pos=_pairs(test),
        test_neg=_pairs(test_neg),
        graph=train_graph,
        protocol=protocol,
        seed=seed,
        forbidden=torch.from_numpy(forbidden),
    )
    return split.to(graph.device)


def _pairs(pairs: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(pairs))


def _non_edges(edge_keys: Array, num_nodes: int, count: int, random: np.random.RandomState, *, diagonal: bool) -> Array:
    """``count`` distinct keys ``u * N + v`` of pairs ``u < v`` (``u <= v`` with the diagonal) that are not edges."""
    pool_size = num_nodes * (num_nodes + (1 if diagonal else -1)) // 2 - edge_keys.size
    if pool_size < count:
        raise GraphError(f"the graph has {pool_size} pairs without an edge, {count} are needed as negatives")
    if pool_size + edge_keys.size <= _ENUMERATE_UP_TO:
        rows, columns = np.triu_indices(num_nodes, 0 if diagonal else 1)
        keys = rows * num_nodes + columns
        del rows, columns
        free = np.ones(keys.size, dtype=bool)
        free[np.searchsorted(keys, edge_keys)] = False
        pool: Array = keys[free]
        order = np.arange(pool.size)
        random.shuffle(order)
        return np.asarray(pool[order[:count]])
    chosen = np.empty(0, dtype=np.int64)
    while chosen.size < count:
        pairs = random.randint(0, num_nodes, size=(2, 4 * count))
        keep = pairs[0] <= pairs[1] if diagonal else pairs[0] < pairs[1]
        drawn = pairs[0, keep] * num_nodes + pairs[1, keep]
        drawn = np.concatenate([chosen, drawn[~np.isin(drawn, edge_keys)]])
        first = np.unique(drawn, return_index=True)[1]
        chosen = drawn[np.sort(first)][:count]
    return chosen


def _contains(sorted_keys: Tensor, keys: Tensor) -> Tensor:
    if sorted_keys.numel() == 0:
        return torch.zeros_like(keys, dtype=torch.bool)
    place = torch.searchsorted(sorted_keys, keys).clamp_max(sorted_keys.numel() - 1)
    return sorted_keys[place] == keys
