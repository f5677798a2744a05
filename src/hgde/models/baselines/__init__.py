"""Plain models to compare with, trained by the same trainer on the same split."""

from hgde.models.baselines.gcn import GCN
from hgde.models.baselines.mlp import MLP

__all__ = ["GCN", "MLP"]
