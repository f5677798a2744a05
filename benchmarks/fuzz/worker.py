"""One process that works through cases; the parent watches its time and memory, and ends it when it hangs."""

from __future__ import annotations

import faulthandler
import json
import logging
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

from benchmarks.fuzz.mangle import CANARY
from benchmarks.fuzz.targets import KINDS, TARGETS, run_case

from hgde.graph import Graph
from hgde.graph.measures.ricci import ollivier_ricci

ROOM = 6 << 30
"""Bytes of data a worker may have: enough to see 2 GiB exceeded, too little to take the machine down."""


def main() -> None:
    samples, seed = Path(sys.argv[1]), int(sys.argv[2])
    faulthandler.register(signal.SIGUSR1)  # the parent asks where a case hangs
    logging.getLogger("hgde").setLevel(logging.ERROR)  # warnings are not what is looked for
    resource.setrlimit(resource.RLIMIT_DATA, (ROOM, ROOM))
    with tempfile.TemporaryDirectory() as root:
        mark = Path(root) / "canary"
        (Path(root) / f"{CANARY}.py").write_text(f"open({str(mark)!r}, 'w').close()\nThing = None\n")
        sys.path.insert(0, root)
        warm_up(samples, Path(root))
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(one(int(line), seed, samples, Path(root), mark)), flush=True)


def warm_up(samples: Path, root: Path) -> None:
    """Use every sample as it is: imports and compiled kernels are nobody's hang, and all samples must be good."""
    for kind, targets in TARGETS.items():
        for number, target in enumerate(targets):
            place = root / f"warm-{kind.split()[0]}-{number}"
            place.mkdir()
            for name in target.copied:
                (shutil.copytree if (samples / name).is_dir() else shutil.copy)(samples / name, place / name)
            target.use(place)
    # Read from the cache above; a damaged cache would have to compile what works curvatures out.
    ollivier_ricci(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)]))


def one(number: int, seed: int, samples: Path, root: Path, mark: Path) -> dict[str, object]:
    kind = KINDS[number % len(KINDS)]
    place = root / f"case-{number}"
    place.mkdir()
    began = time.perf_counter()
    outcome: dict[str, object] = {"case": number, "kind": kind}
    try:
        outcome["words"] = run_case(kind, number // len(KINDS), samples, place, mark, Random(f"{seed}/{number}"))
    except BaseException as error:  # this is what is looked for
        outcome["traceback"] = f"{type(error).__name__}: {error}"[:300]
        outcome["where"] = [
            f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]
        ]
        outcome["silent"] = type(error).__name__ == "Silent"
    outcome["seconds"] = round(time.perf_counter() - began, 3)
    outcome["executed"] = mark.exists() or CANARY in sys.modules
    outcome["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    mark.unlink(missing_ok=True)
    sys.modules.pop(CANARY, None)
    shutil.rmtree(place, ignore_errors=True)
    return outcome


if __name__ == "__main__":
    main()
