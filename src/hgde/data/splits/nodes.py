"""Splits of nodes: which targets a model may see, which choose the settings, which decide.

Each split is reproducible from its name and seed and carries a hash for the results. Draws use ``RandomState``, whose
stream numpy has frozen, so a seed means the same split on every version; ``Generator`` makes no such promise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]

HGCN_SEED = 1234
"""The split seed HGCN uses by default."""

PROTOCOLS: dict[str, str] = {
    "published": "the literature's protocol for the data set, faults included",
    "clean": "the same sizes as stated in the paper, stratified, no node in two parts",
    "public": "Planetoid's public split",
    "fixed": "one of the splits stored with the data, chosen by index",
    "shchur": "20 training and 30 validation nodes per class at random, the rest for testing",
    "random": "at random, stratified by class, 60/20/20 % unless fractions are given",
    "few": "a fixed number of training labels per class, 1000 validation nodes, the rest for testing",
}

Kind = Literal["stored", "hgcn", "shchur", "few", "random"]


@dataclass(frozen=True)
class SplitRule:
    """What ``published`` and ``clean`` mean for a data set.

    ``stored``: the split lists that came with the data; ``hgcn``: published by :func:`hgcn_split`, clean a stratified
    draw, both of the shares ``fractions``; the others are the protocols of the same name.

    >>> SplitRule("random", (0.7, 0.15, 0.15)).kind
    'random'
    """

    kind: Kind = "random"
    fractions: tuple[float, float, float] = (0.6, 0.2, 0.2)


class SplitError(ValueError):
    """A split that cannot be made; the message says why and what to try.

    >>> from hgde import load
    >>> from hgde.data import node_split
    >>> node_split(load("tree-random", num_nodes=30), "public")
    Traceback (most recent call last):
    hgde.data.splits.nodes.SplitError: ...
    """


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Training, validation and test nodes: int64 node numbers, in the order the protocol lists them.

    >>> import torch
    >>> split = NodeSplit(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3]), "by hand")
    >>> split.overlap, split.hash[:8]
    (0, '5e8e01f2')
    """

    train: Tensor
    val: Tensor
    test: Tensor
    name: str

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the three lists: the same for the same split on any machine."""
        digest = hashlib.sha256(b"hgde-node-split-1")
        for part in (self.train, self.val, self.test):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part.cpu().numpy().astype("<i8").tobytes())
        return digest.hexdigest()

    @property
    def overlap(self) -> int:
        """Number of distinct validation or test nodes that are also training nodes; 0 for an honest split."""
        held_out = torch.unique(torch.cat([self.val, self.test]))
        return int(torch.isin(held_out, self.train).sum())

    def restricted(self, nodes: Tensor, num_nodes: int) -> NodeSplit:
        """The split on the subgraph of ``nodes``, renumbered; nodes outside are dropped."""
        position = torch.full((num_nodes,), -1, dtype=torch.int64)
        position[nodes.cpu()] = torch.arange(nodes.numel())
        train, val, test = (position[p][position[p] >= 0] for p in (self.train, self.val, self.test))
        return NodeSplit(train, val, test, f"{self.name}/restricted")

    def __repr__(self) -> str:
        sizes = f"{self.train.numel()}/{self.val.numel()}/{self.test.numel()}"
        return f"NodeSplit({self.name}, {sizes}, {self.hash[:12]})"


class SplitNodes(Protocol):
    """What a node split needs to know of a data set."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Tensor | None: ...
    @property
    def fixed_splits(self) -> Mapping[str, tuple[NodeSplit, ...]]: ...
    @property
    def split_rule(self) -> SplitRule: ...


def node_split(
    dataset: SplitNodes,
    protocol: str = "published",
    *,
    index: int = 0,
    seed: int = HGCN_SEED,
    fractions: tuple[float, float, float] | None = None,
    per_class: int = 20,
    num_val: int = 1000,
    targets: Tensor | None = None,
) -> NodeSplit:
    """Split the nodes of a data set whose target is known; the others are in no part.

    ``published`` and ``clean`` exist for every data set, so that a table can show both columns; what they mean is the
    data set's own :class:`SplitRule`. Draws are stratified by class; with several labels by the rarest label a node
    has; with values they are plain.

    Args:
        dataset: anything with ``name``, ``labels``, ``fixed_splits`` and ``split_rule``.
        protocol: a key of :data:`PROTOCOLS`.
        index: which of the stored splits (``fixed``).
        seed: seed of the draw, where there is one.
        fractions: training, validation and test shares (``random``, ``clean``, ``published``).
        per_class: training labels per class (``few``).
        num_val: validation nodes in all (``few``).
        targets: what is predicted, if not ``dataset.labels``: classes int64 ``[N]`` (negative: unknown), label sets of
            integers ``[N, L]`` (negative: unknown), or values ``[N]`` or ``[N, T]`` (NaN: unknown).

    Raises:
        SplitError: for an unknown protocol, a missing stored split, or too few labels.

    >>> from hgde import load
    >>> split = node_split(load("tree-random", num_nodes=100), "clean", seed=0)
    >>> len(split.train), len(split.val), len(split.test)
    (60, 20, 20)
    """
    if protocol not in PROTOCOLS:
        raise SplitError(f"unknown split protocol {protocol!r}; there are: {', '.join(PROTOCOLS)}")
    rule = dataset.split_rule
    if protocol in ("public", "fixed"):
        return _stored_split(dataset, protocol, index)
    if protocol in ("published", "clean") and fractions is None and rule.kind == "stored":
        return _stored_split(dataset, next(iter(dataset.fixed_splits), "fixed"), index)
    strata = _strata(dataset, targets)
    has_classes = targets is None or (targets.dim() == 1 and not targets.is_floating_point())
    if protocol in ("published", "clean"):
        if fractions is not None or (rule.kind == "hgcn" and has_classes):
            shares = fractions or rule.fractions
            if protocol == "published" and has_classes:
                return hgcn_split(strata, shares[1], shares[2], seed)
            return _stratified(strata, shares, seed, "clean")
        protocol = rule.kind if has_classes and rule.kind in ("shchur", "few") else "random"
    if protocol == "random":
        return _stratified(strata, fractions or (0.6, 0.2, 0.2), seed, "random")
    if not has_classes:
        raise SplitError(f"{protocol!r} takes so many nodes of each class, and there are no classes; try 'random'")
    if protocol == "shchur":
        return _per_class(strata, 20, 30, None, seed, "shchur")
    return _per_class(strata, per_class, None, num_val, seed, f"few-{per_class}")


def hgcn_split(labels: Tensor, val_share: float, test_share: float, seed: int = HGCN_SEED) -> NodeSplit:
    """HGCN's split, faults included, for comparison with published numbers.

    Nodes with a label other than 0 are the "positives", nodes with a label other than 1 the "negatives"; each list
    is shuffled, and the shares are taken of the shorter list's length from both. With two classes this is a split
    balanced over the classes, but "30/10/60 %" on Disease becomes 72/4/24 %. With four classes (Airport) nodes of
    class 2 and 3 are in both lists, are drawn twice, and 44 % of the test nodes are training nodes as well.
    """
    y = labels.cpu().numpy()
    random = np.random.RandomState(seed)
    positive, negative = np.flatnonzero((y != 0) & (y >= 0)), np.flatnonzero((y != 1) & (y >= 0))
    random.shuffle(positive)
    random.shuffle(negative)
    smaller = min(positive.size, negative.size)
    num_val, num_test = round(val_share * smaller), round(test_share * smaller)
    cuts = [num_val, num_val + num_test]
    val, test, train = (
        torch.from_numpy(np.concatenate(parts).astype(np.int64))
        for parts in zip(np.split(positive, cuts), np.split(negative, cuts), strict=True)
    )
    return NodeSplit(train, val, test, f"published/seed={seed}")


def _strata(dataset: SplitNodes, targets: Tensor | None) -> Tensor:
    """The group each node is drawn from, int64 ``[N]``, -1 for nodes whose target is unknown."""
    if targets is None:
        if dataset.labels is None or not bool((dataset.labels >= 0).any()):
            raise SplitError(
                f"{dataset.name} has no labels, so its nodes cannot be split for classification; fill in the column "
                "label, choose another with --label-column, or predict links with --task links"
            )
        return dataset.labels
    if targets.is_floating_point():
        known = torch.isfinite(targets.reshape(len(targets), -1)).any(1)
        strata = torch.where(known, 0, -1)
    elif targets.dim() == 2:
        strata = _rarest_label(targets)
    else:
        strata = targets
    if not bool((strata >= 0).any()):
        raise SplitError(f"{dataset.name} has no node whose target is known, so its nodes cannot be split")
    return strata


def _rarest_label(sets: Tensor) -> Tensor:
    """For each node the label it has that the fewest nodes have; ``L`` if it has none, -1 if all are unknown."""
    has = sets > 0
    counts = has.sum(0)
    cost = torch.where(has, counts, counts.max() + 1 if counts.numel() else 0)
    strata = torch.where(has.any(1), cost.argmin(1), sets.shape[1])
    return torch.where((sets >= 0).any(1), strata, -1)


def _stored_split(dataset: SplitNodes, protocol: str, index: int) -> NodeSplit:
    splits = dataset.fixed_splits.get(protocol, ())
    if not splits:
        others = ", ".join(dataset.fixed_splits) or "none"
        raise SplitError(f"{dataset.name} carries no {protocol!r} split (stored: {others}); try 'random' with a seed")
    if not 0 <= index < len(splits):
        raise SplitError(f"{dataset.name} has {protocol} splits 0 to {len(splits) - 1}, asked for {index}")
    return splits[index]


def _stratified(labels: Tensor, fractions: tuple[float, float, float], seed: int, kind: str) -> NodeSplit:
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise SplitError(f"fractions must be three shares that sum to 1 (train, val, test), got {fractions}")
    y = labels.cpu().numpy()
    random = np.random.RandomState(seed)
    parts: tuple[list[Array], ...] = ([], [], [])
    for members in _shuffled_classes(y, random):
        num_val = round(fractions[1] * members.size)
        # A class too small for its share of every part gives to training first: nothing is learned without it.
        num_test = min(round(fractions[2] * members.size), max(members.size - num_val - 1, 0))
        test, val, train = np.split(members, [num_test, num_test + num_val])
        for store, nodes in zip(parts, (train, val, test), strict=True):
            store.append(nodes)
    share = "/".join(f"{100 * f:g}" for f in fractions)
    train_nodes, val_nodes, test_nodes = (_sorted(nodes) for nodes in parts)
    return NodeSplit(train_nodes, val_nodes, test_nodes, f"{kind}-{share}/seed={seed}")


def _per_class(
    labels: Tensor, num_train: int, num_val: int | None, total_val: int | None, seed: int, kind: str
) -> NodeSplit:
    """``num_train`` nodes of each class, then ``num_val`` of each class or ``total_val`` of the rest; rest: test."""
    y = labels.cpu().numpy()
    random = np.random.RandomState(seed)
    train, val, rest = [], [], []
    for members in _shuffled_classes(y, random):
        needed = num_train + (num_val or 0)
        if members.size <= needed:
            raise SplitError(
                f"class {y[members[0]]} has {members.size} labelled nodes; {kind} takes {needed} of each class and "
                "needs some left for testing: try 'random', or fewer labels per class"
            )
        train.append(members[:num_train])
        val.append(members[num_train:needed])
        rest.append(members[needed:])
    test = np.concatenate(rest)
    if total_val is not None:
        if test.size <= total_val:
            raise SplitError(
                f"{test.size} nodes are left after training labels, too few for {total_val} validation nodes"
            )
        random.shuffle(test)
        val, test = [test[:total_val]], test[total_val:]
    return NodeSplit(_sorted(train), _sorted(val), _sorted([test]), f"{kind}/seed={seed}")


def _shuffled_classes(y: Array, random: np.random.RandomState) -> list[Array]:
    classes = [np.flatnonzero(y == c) for c in np.unique(y[y >= 0])]
    for members in classes:
        random.shuffle(members)
    return classes


def _sorted(parts: list[Array]) -> Tensor:
    return torch.from_numpy(np.sort(np.concatenate(parts)).astype(np.int64))
