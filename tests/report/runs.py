"""Runs small enough for tests: a graph in CSV files with names that try to break out of a page, every task on it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from hgde import pipeline
from hgde.data.sets.disease_sim import simulate_disease
from report.samples import HOSTILE

QUICK = {
    "preset": "none",
    "model": {"width": 3, "time": 2.0, "dropout": 0.2},
    "training": {"epochs": 6, "lr": 0.05},
    "run": {"threads": 1},
}
TASKS = ("nodes", "links", "regression", "multilabel")


def write_files(folder: Path, num_nodes: int = 70) -> dict[str, str]:
    """Tables of edges and nodes, the first nodes with hostile names."""
    dataset = simulate_disease(seed=0, num_nodes=num_nodes, signal=1.5)
    names = [f"p{k}" for k in range(num_nodes)]
    # A cell cannot hold a NUL, and names are stripped of what surrounds them.
    names[: len(HOSTILE)] = [name.replace("\x00", "").strip() for name in HOSTILE]
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows((names[u], names[v]) for u, v in dataset.graph.undirected_edges.T.tolist())
    features = dataset.features.numpy()
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "state", "age", "fever", "cough", *(f"x{k}" for k in range(features.shape[1]))])
        for k, label in enumerate(dataset.labels.tolist()):
            state = ("well", "ill </td>")[label]
            age = round(float(features[k, 0]) * 10 + 40 + 5 * label, 2)
            fever, cough = int(features[k, 1] > np.median(features[:, 1])), label
            writer.writerow([names[k], state, age, fever, cough, *(f"{x:.5f}" for x in features[k])])
    return {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv"), "id_column": "id"}


def settings_for(task: str, files: dict[str, str], **more):
    columns = {"nodes": "state", "links": "state", "regression": "age", "multilabel": "fever,cough"}
    values = {**QUICK, "data": {**files, "label_column": columns[task]}, "task": {"name": task}}
    for name, section in more.items():
        values[name] = {**values.get(name, {}), **section}
    return pipeline.make_settings(values)
