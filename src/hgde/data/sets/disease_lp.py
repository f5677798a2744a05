"""HGCN's simulated epidemic for link prediction."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.sets._hgcn import ADDRESS, DISEASE_SPLIT, read_disease
from hgde.data.sets._texts import HGCN, LINKS
from hgde.data.spec import DatasetSpec, Expected, github_files, register
from hgde.graph.graph import Graph

LEAKING_COLUMN = 10
"""A coordinate of the layout, equal to rounding for parent and child (correlation 0.999)."""


def without_the_leak(dataset: Dataset, task: str, protocol: str, graph: Graph) -> Dataset:
    """All columns as published; for clean links without the one that gives them away. Columns keep their numbers."""
    if protocol != "clean" or task != "links":
        return dataset
    if not isinstance(dataset.features, Tensor):
        raise DataError(f"{dataset.name}: expected dense features, got {type(dataset.features).__name__}")
    kept = [column for column in range(dataset.num_features) if column != LEAKING_COLUMN]
    return replace(
        dataset,
        features=dataset.features[:, torch.tensor(kept)],
        feature_names=[str(column) for column in kept],
        meta={**dataset.meta, "dropped_columns": [LEAKING_COLUMN]},
    )


SPEC = register(
    DatasetSpec(
        name="disease_lp",
        title="simulated epidemic on a tree, HGCN's (link prediction)",
        kind="graph",
        tasks=("links", "nodes"),
        protocols=LINKS,
        licence="not stated",
        citation=HGCN,
        read=read_disease,
        files=github_files(
            ADDRESS,
            (
                (
                    "data/disease_lp/disease_lp.edges.csv",
                    22152,
                    "b5b7e41bbfd28fc7f61590e5587622103ee9c3aa1b59911c74873a6f328dca07",
                ),
                (
                    "data/disease_lp/disease_lp.feats.npz",
                    227859,
                    "b4a726b13598c036a75e1b49f08e92820553b972966ad950b8d4d5416eb339f8",
                ),
                (
                    "data/disease_lp/disease_lp.labels.npy",
                    21448,
                    "8f2b26602764fbb785b93775d9f71194f1f36920e185af8bc5c31aea07dde858",
                ),
            ),
        ),
        expected=Expected(2665, 2664, 11, 2, 0.693, 1, 2665, 0.0, 0.0),
        notes="Column 10 nearly gives the links away (parent-child correlation 0.999): clean links leave it out.",
        split_rule=DISEASE_SPLIT,
        recipe=without_the_leak,
    )
)
