"""How much memory a piece of work takes: the largest resident size during it, above what was there before."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
from pathlib import Path

from hgde.kernels import give_back

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMeter:
    """Peak memory since it was made, MiB; not a number where the system does not say (outside Linux)."""

    def __init__(self) -> None:
        gc.collect()
        _give_back()
        try:
            _CLEAR.write_text("5")  # resets the peak to the present size
            self._before = _field("VmRSS")
        except OSError:
            self._before = math.nan

    def read(self) -> float:
        try:
            return max(0.0, _field("VmHWM") - self._before)
        except OSError:
            return math.nan


def _give_back() -> None:
    """Return freed memory to the system, so that what is used again counts."""
    give_back()  # of a training that was given up
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _field(name: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return float(line.split()[1]) / 1024
