"""Ranks of one machine, each kept to cores of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

_held: list[BaseFileLock] = []
"""Locks of the cores that this process is bound to, released when it ends."""


def bind_to_cores() -> None:
    """Keep this rank to its share of the machine's cores, unless ranks of another run have any of them.

    The threads of a rank take turns, and a system that wakes them on each other's cores makes ranks wait: two ranks on
    two cores are a tenth slower unbound. ``HGDE_BIND=0`` leaves it to the system, ``HGDE_BIND=1`` binds in any case.
    """
    wish = os.environ.get("HGDE_BIND", "auto")
    rank, size = (int(os.environ.get(name, usual)) for name, usual in (("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "1")))
    if wish == "0" or size == 1 or _held or not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    share = cores[len(cores) * rank // size : len(cores) * (rank + 1) // size]
    if len(cores) >= size and (wish == "1" or _take(share)):
        os.sched_setaffinity(0, share)


def _take(cores: list[int]) -> bool:
    """Whether no other process has been given any of some cores; if so, nobody else will be while this one runs."""
    from filelock import FileLock, Timeout

    taken = []
    try:
        for core in cores:
            lock = FileLock(Path(tempfile.gettempdir()) / f"hgde-core-{core}.lock", timeout=0)
            lock.acquire()
            taken.append(lock)
    except (Timeout, OSError):  # another run's, or another user's
        for lock in taken:
            lock.release()
        return False
    _held.extend(taken)
    return True
