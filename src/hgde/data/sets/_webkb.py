"""Texas, Wisconsin and Cornell from the Geom-GCN text files and their ten split files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.io.npz import from_arrays, read_arrays
from hgde.data.spec import DatasetSpec, Expected, github_files
from hgde.data.splits.nodes import SplitRule

GEOM_GCN = "graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
GRAPH_KAN = "WillHua127/GraphKAN-Graph-Kolmogorov-Arnold-Networks/d3249c06598f8c20806d490ba4847e1cd85fd014"


def webkb(
    *,
    name: str,
    title: str,
    expected: Expected,
    address: str,
    files: tuple[tuple[str, int, str], ...],
    notes: str = "",
) -> DatasetSpec:
    """What the graphs of web pages share."""
    return DatasetSpec(
        name=name,
        title=title,
        kind="graph",
        tasks=("nodes", "links"),
        protocols="nodes: ten fixed splits of 48/32/20 %; mean accuracy over them",
        licence="not stated",
        citation="Pei et al.: Geom-GCN: Geometric Graph Convolutional Networks, ICLR 2020; WebKB, Craven et al., "
        "AAAI 1998",
        read=read,
        files=github_files(address, files),
        expected=expected,
        notes=notes,
        split_rule=SplitRule("stored"),
    )


def read(files: Mapping[str, Path], name: str) -> Dataset:
    """Nodes from ``out1_node_feature_label.txt`` (id, comma-separated 0/1 words, label), edges made undirected."""
    nodes, edges = files["out1_node_feature_label.txt"], files["out1_graph_edges.txt"]
    rows = _table(nodes, 3)
    features: list[list[int]] = [[] for _ in rows]
    labels = np.full(len(rows), -1, dtype=np.int64)
    for line, (node, words, label) in rows:
        number = _integer(node, nodes, line, "node_id")
        if not 0 <= number < len(rows):
            raise DataError.at(nodes, f"node {number} of {len(rows)}", line=line, column="node_id")
        features[number] = [_integer(word, nodes, line, "feature") for word in words.split(",")]
        labels[number] = _integer(label, nodes, line, "label")
    if len({len(row) for row in features}) != 1:
        raise DataError.at(nodes, "rows have different numbers of features, or a node is missing")
    pairs = [[_integer(end, edges, line, "node_id") for end in ends] for line, ends in _table(edges, 2)]
    arrays: dict[str, Any] = {
        "edge_index": np.asarray(pairs, dtype=np.int64).T,
        "x": np.asarray(features, dtype=np.float32),
        "y": labels,
    }
    splits = [read_arrays(path) for path in sorted(path for file, path in files.items() if "_split_" in file)]
    for part in ("train", "val", "test"):
        arrays[f"{part}_mask"] = np.stack([split[f"{part}_mask"].astype(bool) for split in splits])
    return from_arrays(arrays, name, nodes)


def _table(path: Path, columns: int) -> list[tuple[int, list[str]]]:
    rows = []
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines()[1:], start=2):
        if text.strip():
            fields = text.split("\t")
            if len(fields) != columns:
                raise DataError.at(path, f"expected {columns} tab-separated fields, got {len(fields)}", line=line)
            rows.append((line, fields))
    return rows


def _integer(text: str, path: Path, line: int, column: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DataError.at(path, f"expected an integer, got {text[:40]!r}", line=line, column=column) from None
