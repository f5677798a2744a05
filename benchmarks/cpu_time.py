"""Training epochs by processor time on one thread: what remains comparable while other work runs on the machine.

    HGDE_DATA=... OMP_NUM_THREADS=1 python benchmarks/cpu_time.py [turns]

Every call takes its turn, the least of all turns counts. Without ``HGDE_DATA`` random data of Cora's size are used.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch

from hgde.bench import networks, problems


def least(calls: dict[str, Callable[[], None]], turns: int) -> dict[str, float]:
    """Milliseconds of processor time."""
    taken = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(turns):
        for name, call in calls.items():
            for _ in range(3):
                start = time.process_time()
                call()
                taken[name].append(1e3 * (time.process_time() - start))
    return {name: min(values) for name, values in taken.items()}


def main() -> None:
    torch.set_num_threads(1)
    turns, data = int(sys.argv[1]) if len(sys.argv) > 1 else 10, problems.citations("cora")
    calls: dict[str, Callable[[], None]] = {}
    for depth in (2, 4, 8, 16):
        calls[f"HGDE, T = {depth}"] = networks.hgde_epoch(data, 16, float(depth))
        calls[f"CSR GCN, {depth} layers"] = networks.csr_gcn_epoch(data, 16, depth)
    for solver in ("hrk4", "ham", "rk4"):
        calls[f"HGDE, {solver}, T = 8"] = networks.hgde_epoch(data, 16, 8.0, solver=solver)
    for heads in (1, 4):
        chosen = {"name": "attention", "heads": heads}
        calls[f"HGDE, attention, {heads} heads, T = 8"] = networks.hgde_epoch(data, 16, 8.0, diffusivity=chosen)
        calls[f"PyG GAT, {heads} heads, 8 layers"] = networks.pyg_epoch(data, 16, 8, heads)
    for name, value in least(calls, turns).items():
        print(f"| {name} | {value:.2f} ms |")


if __name__ == "__main__":
    main()
