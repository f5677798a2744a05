"""A small graph in files, with node names of text, and the command run as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

from hgde.data.sets.disease_sim import simulate_disease

QUICK = ["--width", "3", "--time", "2", "--lr", "0.05", "--threads", "1", "--dropout", "0.2"]


def write_graph(folder: Path, num_nodes: int = 90) -> list[str]:
    """Tables of edges and nodes; gives the options that name them."""
    dataset = simulate_disease(seed=0, num_nodes=num_nodes, signal=1.5)
    pairs = dataset.graph.undirected_edges.T.tolist()
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"p{u},p{v}\n" for u, v in pairs))
    rows = zip(dataset.labels.tolist(), dataset.features.tolist(), strict=True)
    lines = (f"p{k},{('well', 'ill')[y]}," + ",".join(f"{x:.6f}" for x in row) for k, (y, row) in enumerate(rows))
    header = "id,label," + ",".join(f"x{k}" for k in range(dataset.num_features))
    (folder / "nodes.csv").write_text("\n".join([header, *lines]) + "\n")
    return ["--edges", str(folder / "edges.csv"), "--nodes", str(folder / "nodes.csv")]


def start(arguments: list[str], **options) -> subprocess.Popen:
    """``hgde`` as a process of its own, on one thread."""
    command = [sys.executable, "-c", "from hgde.cli.main import run; run()", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options
    )
