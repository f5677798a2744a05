"""Splits: which nodes or links a model learns from, which choose the settings, which decide."""

from hgde.data.splits.hard import hard_negatives
from hgde.data.splits.links import LINK_PROTOCOLS, LinkSplit, link_split
from hgde.data.splits.nodes import HGCN_SEED, PROTOCOLS, NodeSplit, SplitError, SplitRule, node_split

__all__ = [
    "HGCN_SEED",
    "LINK_PROTOCOLS",
    "PROTOCOLS",
    "LinkSplit",
    "NodeSplit",
    "SplitError",
    "SplitRule",
    "hard_negatives",
    "link_split",
    "node_split",
]
