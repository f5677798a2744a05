"""Data sets: the registry, loading, and the user's own graphs."""

from hgde.data.dataset import Dataset, identity_features
from hgde.data.errors import DataError
from hgde.data.files import read_graph
from hgde.data.loading import fetch_dataset, load
from hgde.data.recipes import hgcn_features
from hgde.data.registry import DATASETS, DatasetSpec, find_spec

__all__ = [
    "DATASETS",
    "DataError",
    "Dataset",
    "DatasetSpec",
    "fetch_dataset",
    "find_spec",
    "hgcn_features",
    "identity_features",
    "load",
    "read_graph",
]
