"""A command, run and watched: seconds by the clock and of the processors, and the memory of every process it starts."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PERIOD = 0.05


def run_measured(command: Sequence[str | Path], more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a command to its end and say what it took.

    ``resident`` is the largest resident size of each process (``VmHWM``), ``anonymous`` the part of it that no file
    backs, seen every so often; the largest process comes first. Processes that only start others are left out.
    """
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    arguments = [str(argument) for argument in command]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, **(more or {})})
    peaks: dict[int, tuple[int, int]] = {}
    while process.poll() is None:
        for number in _family(process.pid):
            resident, anonymous = _memory(number)
            known = peaks.get(number, (0, 0))
            peaks[number] = max(known[0], resident), max(known[1], anonymous)
        time.sleep(PERIOD)
    assert process.stdout is not None
    said = process.stdout.read()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: exit code {process.returncode}\n{said}")
    largest = sorted(peaks.values(), reverse=True)
    working = [peak for peak in largest if peak[0] > largest[0][0] / 4]
    return {
        "seconds": seconds,
        "cpu_seconds": after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime,
        "resident": [peak[0] for peak in working],
        "anonymous": [peak[1] for peak in working],
        "said": said,
    }


def _family(number: int) -> list[int]:
    """A process and all that came of it."""
    try:
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except OSError:
        return []
    return [number, *(member for child in children for member in _family(int(child)))]


def _memory(number: int) -> tuple[int, int]:
    """Bytes: largest resident size so far, anonymous part of the present one."""
    try:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{number}/status").read_text().splitlines())
        return tuple(int(lines.get(name, "0 kB").split()[0]) * 1024 for name in ("VmHWM", "RssAnon"))
    except OSError:
        return 0, 0


def hgde(*arguments: str | Path) -> list[str | Path]:
    """The command ``hgde`` of this Python."""
    return [sys.executable, "-m", "hgde", *arguments]
