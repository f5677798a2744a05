"""One command: ``python -m benchmarks.soak --minutes 5``."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.soak.work import fit_one, memory_mib, worker

os.environ.setdefault("OMP_NUM_THREADS", "1")

ESTIMATORS = 4
MOST_GROWTH = 1.05
_SETTLED = 0.3
"""The share of the time after which caches and allocators have what they need; memory is compared from then on."""


def in_threads(expected: list[str], seconds: float) -> dict[str, Any]:
    """Each thread fits its estimator again and again."""
    counts, wrong, sizes = [0] * ESTIMATORS, [0] * ESTIMATORS, []
    errors: list[str] = []
    until = time.time() + seconds

    def work(number: int) -> None:
        try:
            while time.time() < until:
                wrong[number] += fit_one(number) != expected[number]
                counts[number] += 1
        except Exception as error:  # what is looked for
            errors.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(ESTIMATORS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1.0)
        sizes.append(memory_mib())
    return {"fits": sum(counts), "different": sum(wrong), "errors": errors, "growth": growth(sizes), "MiB": sizes[-1]}


def in_processes(expected: list[str], seconds: float) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    until = time.time() + seconds
    started = []
    for number in range(ESTIMATORS):
        here, there = context.Pipe()
        process = context.Process(target=worker, args=(number, expected[number], until, there))
        process.start()
        there.close()
        started.append((process, here))
    fits, wrong, worst, largest, errors = 0, 0, 1.0, 0.0, []
    for process, pipe in started:
        try:
            count, different, sizes = pipe.recv()
        except EOFError:
            errors.append("a process ended before its time")
            continue
        process.join()
        fits, wrong = fits + count, wrong + different
        worst, largest = max(worst, growth(sizes)), max(largest, sizes[-1] if sizes else 0.0)
    return {"fits": fits, "different": wrong, "errors": errors, "growth": worst, "MiB": largest}


def growth(sizes: list[float]) -> float:
    """How much memory grew once settled: the mean of the last fifth over that of the first fifth after settling."""
    settled = sizes[int(_SETTLED * len(sizes)) :]
    if len(settled) < 5:
        return 1.0
    part = max(1, len(settled) // 5)
    first, last = settled[:part], settled[-part:]
    return round(sum(last) / len(last) / (sum(first) / len(first)), 4)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="for threads, and again for processes (default 5)")
    parser.add_argument("--out", type=Path, help="write a record of it to this JSON file")
    chosen = parser.parse_args()
    expected = [fit_one(number) for number in range(ESTIMATORS)]
    again = [fit_one(number) for number in range(ESTIMATORS)]
    threads = in_threads(expected, 60 * chosen.minutes)
    processes = in_processes(expected, 60 * chosen.minutes)
    from hgde.pipeline import versions

    record = {
        "what": "four estimators at once, each fitted again and again",
        "minutes each": chosen.minutes,
        "serial equals itself": expected == again,
        "threads": threads,
        "processes": processes,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
    }
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({name: value for name, value in record.items() if name != "versions"}, indent=1))
    good = expected == again and all(
        part["different"] == 0 and not part["errors"] and part["growth"] <= MOST_GROWTH for part in (threads, processes)
    )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
