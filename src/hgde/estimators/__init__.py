"""HGDE in scikit-learn's manner: the constructor stores, ``fit`` learns, learned attributes end in ``_``."""

from hgde.estimators.inputs import Nodes
from hgde.estimators.links import HGDEEmbedder, HGDELinkPredictor
from hgde.estimators.nodes import HGDEClassifier, HGDEMultiLabelClassifier, HGDERegressor
from hgde.estimators.search import HGDEClassifierCV

__all__ = [
    "HGDEClassifier",
    "HGDEClassifierCV",
    "HGDEEmbedder",
    "HGDELinkPredictor",
    "HGDEMultiLabelClassifier",
    "HGDERegressor",
    "Nodes",
]
