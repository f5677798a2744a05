"""Data: registered sets, the user's own graphs, splits, and preprocessing. Names are imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hgde.lazy import on_first_use

_HOMES = {
    "hgde.data.columns": ("Column", "Columns"),
    "hgde.data.dataset": ("Dataset", "identity_features", "looks_continuous"),
    "hgde.data.errors": ("DataError", "DataWarning"),
    "hgde.data.io.graphs": ("read_graph",),
    "hgde.data.loading": ("fetch_dataset", "load", "open_dataset"),
    "hgde.data.preprocessing": ("Preprocessor",),
    "hgde.data.settings": ("DataSettings", "PreprocessingSettings"),
    "hgde.data.spec": ("DATASETS", "DatasetSpec", "find_spec"),
    "hgde.data.splits": ("LinkSplit", "NodeSplit", "SplitError", "hard_negatives", "link_split", "node_split"),
    "hgde.data.steps": ("STEPS", "Step"),
    "hgde.data.store": ("load_dataset", "save_dataset"),
}
__getattr__, __dir__, __all__ = on_first_use(__name__, _HOMES)

if TYPE_CHECKING:
    from hgde.data.columns import Column as Column
    from hgde.data.columns import Columns as Columns
    from hgde.data.dataset import Dataset as Dataset
    from hgde.data.dataset import identity_features as identity_features
    from hgde.data.dataset import looks_continuous as looks_continuous
    from hgde.data.errors import DataError as DataError
    from hgde.data.errors import DataWarning as DataWarning
    from hgde.data.io.graphs import read_graph as read_graph
    from hgde.data.loading import fetch_dataset as fetch_dataset
    from hgde.data.loading import load as load
    from hgde.data.loading import open_dataset as open_dataset
    from hgde.data.preprocessing import Preprocessor as Preprocessor
    from hgde.data.settings import DataSettings as DataSettings
    from hgde.data.settings import PreprocessingSettings as PreprocessingSettings
    from hgde.data.spec import DATASETS as DATASETS
    from hgde.data.spec import DatasetSpec as DatasetSpec
    from hgde.data.spec import find_spec as find_spec
    from hgde.data.splits import LinkSplit as LinkSplit
    from hgde.data.splits import NodeSplit as NodeSplit
    from hgde.data.splits import SplitError as SplitError
    from hgde.data.splits import hard_negatives as hard_negatives
    from hgde.data.splits import link_split as link_split
    from hgde.data.splits import node_split as node_split
    from hgde.data.steps import STEPS as STEPS
    from hgde.data.steps import Step as Step
    from hgde.data.store import load_dataset as load_dataset
    from hgde.data.store import save_dataset as save_dataset
