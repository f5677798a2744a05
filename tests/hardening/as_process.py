"""``hgde`` as a process of its own, in an environment of the test's making."""

import os
import subprocess
import sys
from pathlib import Path

import hgde
from hgde.files import cache_folder

SOURCE = Path(hgde.__file__).parents[1]
SCRIPT = """
import json, os, sys
os.umask(0o022)
from hgde.cli.main import run
codes = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["hgde", *arguments]
    try:
        run()
        codes.append(0)
    except SystemExit as end:
        codes.append(end.code or 0)
print(json.dumps({"codes": codes, "uid": os.getuid() if hasattr(os, "getuid") else 0}))
"""
QUICK = ["--width", "3", "--time", "2", "--epochs", "3", "--preset", "none", "--threads", "1", "--quiet"]


def write_graph(folder: Path, end: str = "\n", num_nodes: int = 40) -> list[str]:
    """A small graph as tables; gives the options that name them."""
    edges = ["source,target", *(f"p{k},p{(k - 1) // 2}" for k in range(1, num_nodes))]
    nodes = ["id,label,x,city", *(f"p{k},{'ab'[k % 3 == 0]},{k % 7},Łódź" for k in range(num_nodes))]
    (folder / "edges.csv").write_bytes((end.join(edges) + end).encode())
    (folder / "nodes.csv").write_bytes((end.join(nodes) + end).encode())
    return ["--edges", str(folder / "edges.csv"), "--nodes", str(folder / "nodes.csv")]


def several(commands, environment=None, flags=(), **options) -> subprocess.CompletedProcess:
    """Several commands, one after the other in one process; its last line has their exit codes."""
    import json

    given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", **(environment or {})}
    if given.get("HOME") not in (None, "/") and "HGDE_CACHE" not in given:
        given["HGDE_CACHE"] = str(cache_folder())  # compiled kernels are not what is tested
    command = [sys.executable, *flags, "-c", SCRIPT, json.dumps([[str(word) for word in words] for words in commands])]
    return subprocess.run(command, capture_output=True, env=given, timeout=600, check=False, **options)
