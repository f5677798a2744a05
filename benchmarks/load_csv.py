"""Rows per second of reading a million-edge CSV file, strict and complete, beside pandas' own reading of it.

pandas only makes a table, and recent versions parse it on several threads; the graph reader also checks every row,
numbers the nodes and builds the CSR graph.

Run: ``python benchmarks/load_csv.py [edges]``
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from hgde.data import read_graph


def best_of(action: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def main(num_edges: int = 1_000_000) -> None:
    random = np.random.RandomState(0)
    pairs = random.randint(0, num_edges // 10, size=(num_edges, 2))
    print(f"{num_edges:,} edges between {num_edges // 10:,} nodes; best of three, one process, pandas {pd.__version__}")
    print(f"{'ids':<10}{'reader':<46}{'seconds':>9}{'rows/s':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for kind, prefix in (("integers", ""), ("strings", "node-")):
            path = Path(folder) / f"{kind}.csv"
            frame = pd.DataFrame({"source": pairs[:, 0], "target": pairs[:, 1]}).astype(str)
            (prefix + frame).to_csv(path, index=False)
            readers: list[tuple[str, Callable[[], object]]] = [
                ("pandas.read_csv (table only)", lambda path=path: pd.read_csv(path)),
                ("hgde.read_graph (checked, numbered, CSR graph)", lambda path=path: read_graph(path)),
            ]
            for name, action in readers:
                seconds = best_of(action)
                print(f"{kind:<10}{name:<46}{seconds:>9.2f}{num_edges / seconds:>14,.0f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
