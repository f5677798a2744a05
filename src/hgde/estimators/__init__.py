"""HGDE in scikit-learn's manner: the constructor stores, ``fit`` learns, learned attributes end in ``_``."""

from hgde.estimators.classifier import HGDEClassifier
from hgde.estimators.links import HGDEEmbedder, HGDELinkPredictor

__all__ = ["HGDEClassifier", "HGDEEmbedder", "HGDELinkPredictor"]
