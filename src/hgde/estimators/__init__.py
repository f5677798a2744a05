"""HGDE in scikit-learn's manner: the constructor stores, ``fit`` learns, learned attributes end in ``_``."""

from hgde.estimators.links import HGDEEmbedder, HGDELinkPredictor
from hgde.estimators.nodes import HGDEClassifier, HGDEMultiLabelClassifier, HGDERegressor

__all__ = ["HGDEClassifier", "HGDEEmbedder", "HGDELinkPredictor", "HGDEMultiLabelClassifier", "HGDERegressor"]
