"""PubMed with the paper's settings (``hrk4``, ``T = 16``, width 64), a few epochs of every diffusivity: all finite?

    python benchmarks/paper_settings.py [--epochs 3] [--out results/paper-settings.jsonl] [name ...]

Each diffusivity has a process of its own and a line in the file once it is done; what is there is not run again.
All pairs of 19,717 nodes, 64 times an epoch and 128 times backward, take minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RUN = """
import json, resource, sys, time
from hgde.pipeline import fit, make_settings
name, epochs = sys.argv[1], int(sys.argv[2])
settings = make_settings({
    "data": {"name": "pubmed"},
    "model": {"width": 64, "time": 16.0, "solver": "hrk4", "diffusivity": name, "gradient": "recompute"},
    "preset": "none", "training": {"epochs": epochs, "patience": epochs},
})
begun = time.process_time()
outcome = fit(settings).summary.outcomes[0]
print(json.dumps({
    "diffusivity": name, "losses": [record["loss"] for record in outcome.history], "validation": outcome.validation,
    "projected": outcome.projected,
    "processor_s": round(time.process_time() - begun, 1),
    "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
}))
"""


def main() -> int:
    from hgde.diffusion import DIFFUSIVITIES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=sorted(DIFFUSIVITIES.names()))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/paper-settings.jsonl"))
    options = parser.parse_args()
    known: dict[str, Any] = {}
    if options.out.exists():
        known = {r["diffusivity"]: r for r in map(json.loads, options.out.read_text(encoding="utf-8").splitlines())}
    bad = 0
    for name in options.names:
        begun = time.perf_counter()
        if name not in known or len(known[name]["losses"]) < options.epochs:
            command = [sys.executable, "-c", RUN, name, str(options.epochs)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name}: failed\n{done.stderr[-1500:]}")
                bad += 1
                continue
            known[name] = json.loads(done.stdout.splitlines()[-1])
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[name]) + "\n")
        losses = known[name]["losses"]
        finite = all(map(math.isfinite, losses))
        bad += not finite
        shown = " ".join(f"{loss:.4f}" for loss in losses)
        word = "finite" if finite else "NOT FINITE"
        print(f"{name:18s} {word}: losses {shown}; {known[name]['processor_s']} s of one thread, "
              f"{known[name]['peak_gib']} GiB ({time.perf_counter() - begun:.0f} s)", flush=True)  # fmt: skip
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
