"""Airport: airports and flight routes, with HGCN's input columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hgde.data.dataset import Dataset, RowScaling
from hgde.data.errors import DataError
from hgde.data.io.npz import from_arrays
from hgde.data.io.pickles import Record, load_pickle
from hgde.data.sets._hgcn import ADDRESS
from hgde.data.sets._texts import HGCN, LINKS
from hgde.data.spec import DatasetSpec, Expected, github_files, register
from hgde.data.splits.nodes import SplitRule
from hgde.graph.graph import Graph

_POPULATION_COLUMN = 4
_POPULATION_BINS = (7 / 7, 8 / 7, 9 / 7)
_LARGEST_DEGREE = 5


def read(files: Mapping[str, Path], name: str) -> Dataset:
    """A pickled networkx graph with a ``feat`` vector per node; labels are column 4 cut into four classes."""
    path = files["airport.p"]
    record = load_pickle(path)
    state = record.state if isinstance(record, Record) else {}
    nodes = state.get("_node", state.get("node"))
    neighbours = state.get("_adj", state.get("adj"))
    if not isinstance(nodes, dict) or not isinstance(neighbours, dict):
        raise DataError.at(path, "expected a pickled networkx graph")
    number_of = {node: number for number, node in enumerate(nodes)}
    try:
        x = np.stack([np.asarray(nodes[node]["feat"], dtype=np.float64) for node in nodes])
        pairs = [(number_of[u], number_of[v]) for u, ends in neighbours.items() for v in ends]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError.at(path, f"expected a feature vector 'feat' for every node ({error!r})") from None
    bins = np.digitize(x[:, _POPULATION_COLUMN], _POPULATION_BINS)
    arrays = {
        "edge_index": np.asarray(pairs, dtype=np.int64).T,
        "x": x.astype(np.float32),
        "y": bins - bins.min(),
    }
    return from_arrays(arrays, name, path)


def hgcn_columns(dataset: Dataset, task: str, protocol: str, graph: Graph) -> Dataset:
    """HGCN's inputs: the stored columns, then the degree one-hot (0 to 4, and 5 or more) and a constant.

    Unless links are predicted, the column that the label was cut from is left out. Columns keep their numbers: 0 to 4
    are stored, the degrees are 5 to 10, the constant is 11. Unless the settings say otherwise the stored columns are
    divided by their sum, a signed one as published (which can be close to zero), that of absolute values when clean.
    """
    stored = dataset.features
    if not isinstance(stored, Tensor):
        raise DataError(f"{dataset.name}: expected dense features, got {type(stored).__name__}")
    kept = [column for column in range(stored.shape[1]) if task == "links" or column != _POPULATION_COLUMN]
    degree = graph.degree.clamp_max(_LARGEST_DEGREE).to(stored.device)
    one_hot = torch.nn.functional.one_hot(degree, _LARGEST_DEGREE + 1).to(stored.dtype)
    features = torch.cat([stored[:, kept], one_hot, torch.ones_like(stored[:, :1])], dim=1)
    added = range(stored.shape[1], stored.shape[1] + _LARGEST_DEGREE + 2)
    return replace(
        dataset,
        features=features,
        feature_names=[str(column) for column in (*kept, *added)],
        scaling=RowScaling(len(kept), signed=protocol == "published"),
        meta={**dataset.meta, "dropped_columns": [] if task == "links" else [_POPULATION_COLUMN]},
    )


SPEC = register(
    DatasetSpec(
        name="airport",
        title="airports and flight routes",
        kind="graph",
        tasks=("nodes", "links"),
        protocols=f"nodes: HGCN's split as published, stratified 70/15/15 % clean; accuracy. {LINKS}",
        licence="not stated",
        citation=HGCN,
        read=read,
        files=github_files(
            ADDRESS,
            (("data/airport/airport.p", 554100, "ab16b04cea3666e87dbd8a5bff3de68da61330f4604fa21082f7a17e806e64d8"),),
        ),
        expected=Expected(3188, 18630, 5, 4, 0.722, 11, 3158, 1.0, 0.185),
        notes="Column 4 is the label in another form: it is left out for node classification. 44 % of the published "
        "test nodes are training nodes too. A decision tree on column 3 alone reaches 98.5 %.",
        split_rule=SplitRule("hgcn", (0.70, 0.15, 0.15)),
        recipe=hgcn_columns,
    )
)
