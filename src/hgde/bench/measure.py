"""Timing and memory of one call, and a description of where they were taken."""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Row:
    """One figure beside its bar. ``value`` is ``None`` when it could not be taken; ``detail`` says why.

    >>> Row("flow", "fused against reference", value=9.3, bar=8.0, sense="at least").met
    True
    """

    name: str
    what: str
    value: float | None
    bar: float | None
    sense: Literal["at least", "at most", "report"]
    unit: str = "x"
    detail: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None or self.bar is None or self.sense == "report":
            return None
        return self.value >= self.bar if self.sense == "at least" else self.value <= self.bar


def medians(calls: dict[str, Callable[[], Any]], seconds: float = 3.0, least: int = 3) -> dict[str, float]:
    """Median seconds of each call. The calls take turns, so that a busy moment of the machine falls on all of them.

    A short call is made several times a turn and its first time is not counted: it would pay for what the other left
    behind, a cold cache and OpenMP threads that spin for a while after their work is done.
    """
    turns: dict[str, int] = {}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        turns[name] = 11 if time.perf_counter() - start < SHORT_CALL else 1
    taken: dict[str, list[float]] = {name: [] for name in calls}
    began = time.perf_counter()
    while min(map(len, taken.values())) < least or time.perf_counter() - began < seconds:
        for name, call in calls.items():
            for number in range(turns[name]):
                start = time.perf_counter()
                call()
                if number or turns[name] == 1:
                    taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in taken.items()}


SHORT_CALL = 0.05


def peak_bytes(call: Callable[[], Any]) -> int | None:
    """How far the process's memory rises above where it stood; ``None`` where the system does not tell (not Linux)."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    _return_freed_memory()
    try:
        reset.write_text("5")
        before = _field(status, "VmRSS")
        call()
        return _field(status, "VmHWM") - before
    except (OSError, KeyError):
        return None


def _return_freed_memory() -> None:
    """Give back what the C library keeps for later: otherwise new arrays are served from it and no rise is seen."""
    import ctypes

    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):  # a C library without it, or Windows
        ctypes.CDLL(None).malloc_trim(0)


def _field(status: Path, name: str) -> int:
    for line in status.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def describe_machine(threads: int) -> dict[str, Any]:
    """What a reader needs to judge the figures.

    >>> described = describe_machine(threads=1)
    >>> described["threads"], "torch" in described["packages"]
    (1, True)
    """
    import torch

    packages = ("torch", "numpy", "llvmlite", "torch_geometric", "geoopt", "GraphRicciCurvature")
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "threads": threads,
        "memory_gib": _memory_gib(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": versions,
        "wait_policy": os.environ.get("OMP_WAIT_POLICY", "default"),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "torch_parallel": torch.get_num_threads(),
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None
