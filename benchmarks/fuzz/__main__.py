"""One command: ``python -m benchmarks.fuzz --count 10000 --seed 0``; a case by its number: ``--case 1234``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

MOST_SECONDS, MOST_MIB = 10.0, 2048
LOOK_SECONDS = 0.1
ROOT = Path(__file__).parents[2]


class Worker:
    """A worker process and the lines it prints: one when it is ready, one for each case."""

    def __init__(self, command: list[str]) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        if self.lines.get(timeout=600) != "ready\n":
            raise RuntimeError("the samples themselves cannot be used; see above")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def do(self, case: int, slack: float) -> dict[str, Any]:
        """What came of a case; a hang or a death counts as such, and the process is ended.

        Time in which someone has stopped the processes (job control, a sleeping machine) is not the case's.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(f"{case}\n")
        self.process.stdin.flush()
        began, stopped = time.monotonic(), 0.0
        limit, line = MOST_SECONDS + slack, None
        while line is None and time.monotonic() - began - stopped < limit:
            looked = time.monotonic()
            with contextlib.suppress(queue.Empty):
                line = self.lines.get(timeout=LOOK_SECONDS)
            passed = time.monotonic() - looked
            # A wait that took longer than it may: this process was stopped too.
            stopped += passed if line is None and self.is_stopped() else max(0.0, passed - LOOK_SECONDS)
        if line is None:
            with contextlib.suppress(queue.Empty):  # where it hangs goes to the error stream
                self.process.send_signal(signal.SIGUSR1)
                self.lines.get(timeout=LOOK_SECONDS)
            spent = self.cpu_seconds()
            self.end()
            return {"case": case, "kind": "?", "hang": True, "seconds": limit, "cpu seconds of the worker": spent}
        if not line:
            self.end()
            return {"case": case, "kind": "?", "died": self.process.returncode, "seconds": 0.0}
        outcome = dict(json.loads(line))
        outcome["seconds"] = round(max(0.0, outcome["seconds"] - stopped), 3)
        return outcome

    def is_stopped(self) -> bool:
        return self._stat()[0] in "Tt"

    def cpu_seconds(self) -> float:
        user, system = self._stat()[11:13]
        return round((int(user) + int(system)) / os.sysconf("SC_CLK_TCK"), 1)

    def _stat(self) -> list[str]:
        """The fields of ``/proc/<pid>/stat`` after the name, the state first; zeros where there is no such file."""
        try:
            return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ["0"] * 50

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def worker_command(samples: Path, seed: int) -> list[str]:
    return ["-m", "benchmarks.fuzz.worker", str(samples), str(seed)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many mangled inputs (default 10,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="one case alone, with what came of it")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long (default 60)")
    parser.add_argument("--out", type=Path, help="write a record of it to this JSON file")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "samples"
        make = "import sys; from pathlib import Path; from benchmarks.fuzz.samples import make_samples; "
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        subprocess.run(
            [sys.executable, "-c", make + "make_samples(Path(sys.argv[1]))", str(samples)], check=True, env=environment
        )
        if chosen.case is not None:
            print(json.dumps(Worker(worker_command(samples, chosen.seed)).do(chosen.case, 300.0), indent=1))
            return
        record = run(samples, chosen)
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({name: value for name, value in record.items() if name not in ("versions", "failures")}, indent=1))
    sys.exit(0 if not record["failures"] else 1)


def run(samples: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    shown: set[tuple[str, ...]] = set()
    slowest, peak, done = (0.0, -1), 0, 0
    command = worker_command(samples, chosen.seed)
    worker = Worker(command)
    began = time.monotonic()
    for case in range(chosen.start, chosen.start + chosen.count):
        if time.monotonic() - began > 60 * chosen.minutes:
            break
        if done % 1000 == 0 and done:
            print(f"{done} of {chosen.count}, {len(failures)} failures, {time.monotonic() - began:.0f} s", flush=True)
        outcome = worker.do(case, 2.0)
        if worker.process.poll() is not None:
            worker = Worker(command)
        done += 1
        kinds[outcome["kind"]] += 1
        refused[outcome["kind"]] += outcome.get("words", "accepted") != "accepted"
        slowest = max(slowest, (outcome["seconds"], case))
        peak = max(peak, outcome.get("peak_mib", 0))
        wrong = problems(outcome)
        counts.update(wrong)
        if wrong:
            failures.append(outcome)
            signature = (*wrong, outcome["kind"], *outcome.get("where", [])[-1:])
            if signature not in shown:  # each kind of failure once
                shown.add(signature)
                print(json.dumps({"problems": wrong, **outcome}), flush=True)
            if outcome.get("peak_mib", 0) > MOST_MIB:  # a peak stays: whoever comes next would be blamed
                worker.end()
                worker = Worker(command)
    worker.end()
    names = ("tracebacks", "hangs", "over 2 GiB", "executions", "silent acceptances", "deaths")
    return {
        "what": "mangled inputs",
        "cases": done,
        "seed": chosen.seed,
        "start": chosen.start,
        "kinds": dict(kinds),
        "refused with words": dict(refused),
        **{name: counts[name] for name in names},
        "slowest seconds": round(slowest[0], 2),
        "slowest case": slowest[1],
        "peak MiB": peak,
        "seconds": round(time.monotonic() - began),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions_here(),
        "failures": failures[:50],
    }


def problems(outcome: dict[str, Any]) -> list[str]:
    """Which of the promises a case has broken."""
    found = {
        "silent acceptances": bool(outcome.get("silent")),
        "tracebacks": "traceback" in outcome and not outcome.get("silent"),
        "hangs": bool(outcome.get("hang")) or outcome["seconds"] > MOST_SECONDS,
        "over 2 GiB": outcome.get("peak_mib", 0) > MOST_MIB,
        "executions": bool(outcome.get("executed")),
        "deaths": "died" in outcome,
        "tracebacks ": "\n" in outcome.get("words", "") or len(outcome.get("words", "")) > 1000,
    }
    return [name.strip() for name, is_so in found.items() if is_so]


def versions_here() -> dict[str, str]:
    code = "import json; from hgde.pipeline import versions; print(json.dumps(versions()))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    main()
