"""One good file or folder of every kind; what is mangled is a copy of these."""

from __future__ import annotations

import gzip
from pathlib import Path

import networkx
import numpy as np
import pandas as pd

from hgde.data.sets.disease_sim import simulate_disease
from hgde.estimators import HGDEClassifier
from hgde.graph import Graph
from hgde.graph.measures.ricci import ollivier_ricci
from hgde.pipeline import fit, make_settings

QUICK = {
    "preset": "none",
    "model": {"name": "hgde", "width": 3, "time": 2.0},
    "training": {"epochs": 2},
    "run": {"threads": 1},
}
NODES = 24
RUNS = ("nodes", "links", "regression")


def make_samples(folder: Path) -> None:
    """Write every sample below ``folder``; deterministic."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.RandomState(0)
    tree = [(f"n{k}", f"n{(k - 1) // 2}") for k in range(1, NODES)]
    edges = pd.DataFrame(tree, columns=["source", "target"])
    edges["weight"] = random.uniform(0.5, 2.0, len(edges)).round(3)
    nodes = pd.DataFrame({
        "id": [f"n{k}" for k in range(NODES)],
        "label": [("red", "blue", "")[k % 3] for k in range(NODES)],
        "age": random.randint(20, 70, NODES),
        "height": random.normal(170, 9, NODES).round(2),
        "city": [("Oslo", "Rome", "Łódź")[k % 3] for k in range(NODES)],
    })  # fmt: skip
    edges.to_csv(folder / "edges.csv", index=False)
    nodes.to_csv(folder / "nodes.csv", index=False)
    edges.to_parquet(folder / "edges.parquet")
    nodes.to_parquet(folder / "nodes.parquet")
    (folder / "edges.csv.gz").write_bytes(gzip.compress((folder / "edges.csv").read_bytes(), mtime=0))
    _packed(folder)
    pairs = np.array([(k, (k - 1) // 2) for k in range(1, NODES)]).T
    np.savez(
        folder / "graph.npz",
        edge_index=pairs,
        edge_weight=edges["weight"].to_numpy(),
        x=random.standard_normal((NODES, 5)).astype(np.float32),
        y=np.arange(NODES) % 3,
        train_idx=np.arange(0, 12), val_idx=np.arange(12, 18), test_idx=np.arange(18, NODES),
        ids=np.array([f"n{k}" for k in range(NODES)]),
    )  # fmt: skip
    graph = networkx.Graph()
    for row in nodes.itertuples():
        graph.add_node(row.id, label=row.label, age=int(row.age), height=float(row.height))
    for row in edges.itertuples():
        graph.add_edge(row.source, row.target, weight=float(row.weight))
    networkx.write_graphml(graph, folder / "graph.graphml")
    (folder / "settings.toml").write_text(
        '[model]\nname = "hgde"\nwidth = 8\ntime = 4.0\n[model.solver]\nname = "rk4"\nstep = 0.5\n'
        '[training]\nlr = 0.02\nepochs = 5\n[data]\nname = "disease-sim"\noptions = ["num_nodes=60"]\n'
    )
    (folder / "settings.json").write_text(
        '{"model": {"name": "gcn", "width": 8}, "task": {"name": "links"}, "run": {"seed": 3, "dtype": "float64"}}'
    )
    _runs(folder)
    ollivier_ricci(Graph.from_edges(pairs), cache_dir=folder / "cache")
    make_store(folder / "store")


def _packed(folder: Path) -> None:
    import zstandard

    (folder / "edges.csv.zst").write_bytes(zstandard.compress((folder / "edges.csv").read_bytes()))


def _runs(folder: Path) -> None:
    data = {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv")}
    for task in RUNS:
        label = {"label_column": "height"} if task == "regression" else {}
        fit(make_settings({**QUICK, "data": {**data, **label}, "task": {"name": task}}), folder / f"run-{task}")
    sick = simulate_disease(seed=0, num_nodes=40)
    made = HGDEClassifier(width=3, time=2.0, epochs=2, preset="none", random_state=0)
    made.fit(sick.features.numpy(), sick.labels.numpy(), graph=sick.graph)
    made.save(folder / "estimator")


def make_store(folder: Path) -> None:
    """A folder of records as ``compare`` and ``tune`` keep them."""
    from hgde.experiments.jobs import Done, Job
    from hgde.experiments.store import Store

    store = Store(folder)
    for seed in range(3):
        job = Job("cell", "abc"[seed], "train", {"model": "gcn", "run": {"seed": seed}})
        store.add(Done(job, {"test": {"accuracy": 0.5 + seed / 10}, "versions": {"hgde": "0"}}, None, 1.0))
