"""Seconds until a first training step is done, with nothing compiled before: fresh processes, empty folders.

    python benchmarks/first_use.py [--dtype float32] [name ...]

For each diffusivity a process imports the package, then times one forward and backward pass of a small model, once with
an empty cache (compiling) and once more with the cache it left (loading). The import of torch is not counted. On a busy
machine the processor time, of the process and its compiling workers, says more than the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

LIMIT = 8.0
RUN = """
import json, os, resource, sys, time
import torch
name, dtype = sys.argv[1], getattr(torch, sys.argv[2])
start, used = time.perf_counter(), time.process_time()
import numpy as np
from scipy import sparse
from hgde.graph import Graph, SparseFeatures
from hgde.models import HGDE, Shape
from hgde.sections import build
imported = time.perf_counter()
torch.manual_seed(0)
torch.set_default_dtype(dtype)
graph = Graph.from_edges(torch.randint(0, 60, (2, 150)), 60, self_loops=True)
matrix = sparse.random(60, 40, 0.2, "csr", random_state=np.random.default_rng(0))
features = SparseFeatures.from_scipy(matrix, dtype)
model = HGDE(build(HGDE.Settings, {"time": 2.0, "diffusivity": name}), Shape(40, 60, 3))
model.begin(features, graph)
out = model(features, graph)
forward = time.perf_counter()
out.square().sum().backward()
end = time.perf_counter()
time.sleep(3.5)  # until the workers have gone, and their time is counted
workers = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "import": imported - start, "forward": forward - imported, "backward": end - forward, "total": end - start,
    "processor": time.process_time() - used + workers.ru_utime + workers.ru_stime,
}))
"""


def measure(name: str, dtype: str, folder: str) -> dict[str, float]:
    environment = {**os.environ, "HGDE_CACHE": folder}
    command = [sys.executable, "-c", RUN, name, dtype]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    from hgde.diffusion import DIFFUSIVITIES

    parser = argparse.ArgumentParser(description="seconds until a first training step is done")
    parser.add_argument("names", nargs="*", default=list(DIFFUSIVITIES))
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    given = parser.parse_args()
    print("| diffusivity | first use, s | of these import / forward / backward | second use, s | processor, s |")
    print("| --- | --- | --- | --- | --- |")
    slow = False
    for name in given.names:
        with tempfile.TemporaryDirectory() as folder:
            first, second = (measure(name, given.dtype, folder) for _ in range(2))
        parts = " / ".join(f"{first[part]:.1f}" for part in ("import", "forward", "backward"))
        print(
            f"| {name} | {first['total']:.1f} | {parts} | {second['total']:.1f} | {first['processor']:.1f} |",
            flush=True,
        )
        slow = slow or first["total"] > LIMIT
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
