"""Data sets: the registry, loading, and the user's own graphs."""

from hgde.data.dataset import Dataset, identity_features
from hgde.data.errors import DataError
from hgde.data.loading import load
from hgde.data.recipes import hgcn_features
from hgde.data.registry import DATASETS, DatasetSpec, find_spec

__all__ = ["DATASETS", "DataError", "Dataset", "DatasetSpec", "find_spec", "hgcn_features", "identity_features", "load"]
