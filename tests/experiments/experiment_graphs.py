"""Small graphs on disk for tests of experiments."""

from pathlib import Path

import numpy as np


def write_blocks(folder: Path, nodes: int = 90, classes: int = 3, seed: int = 0, shuffle_test: bool = False) -> dict:
    """A stochastic block graph as CSV with a column of parts; the nested settings that read it.

    ``shuffle_test`` permutes the labels of the test nodes among themselves and changes nothing else.
    """
    random = np.random.default_rng(seed)
    labels = np.arange(nodes) % classes
    chance = np.where(labels[:, None] == labels[None, :], 0.15, 0.01)
    edges = np.argwhere(np.triu(random.random((nodes, nodes)) < chance, 1))
    features = random.normal(size=(nodes, 6)) + 0.8 * np.eye(classes, 6)[labels]
    parts = np.array(["train", "val", "test"])[random.permutation(nodes) % 3]
    if shuffle_test:
        held = np.flatnonzero(parts == "test")
        labels = labels.copy()
        labels[held] = labels[np.random.default_rng(seed + 1).permutation(held)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"n{u},n{v}\n" for u, v in edges))
    head = "id,label,split," + ",".join(f"f{k}" for k in range(6)) + "\n"
    rows = "".join(
        f"n{i},c{labels[i]},{parts[i]}," + ",".join(f"{x:.6f}" for x in features[i]) + "\n" for i in range(nodes)
    )
    (folder / "nodes.csv").write_text(head + rows)
    return {"data": {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv")}}
