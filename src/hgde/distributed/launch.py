"""Ranks on one machine without ``torchrun``: the same command, started so many times."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from hgde.distributed.ranks import RankError

GRACE = 20.0
"""Seconds that the other ranks have, after one has died, to say so and end by themselves."""


def is_launched() -> bool:
    """Whether this process is one of several ranks already."""
    return "WORLD_SIZE" in os.environ and "RANK" in os.environ


def launch(arguments: Sequence[str], ranks: int) -> None:
    """Run ``python -m hgde ARGUMENTS`` as so many ranks and wait for all of them.

    Raises:
        RankError: if one fails; the message says which and how.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = os.environ.get("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // ranks)))
    processes = []
    for rank in range(ranks):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": threads,
            "HGDE_PARENT": str(os.getpid()),
        }
        processes.append(subprocess.Popen([sys.executable, "-m", "hgde", *arguments], env=environment))
    try:
        _watch(processes)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def _watch(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    failed: int | None = None
    deadline = float("inf")
    while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
        dead = [rank for rank, process in enumerate(processes) if process.poll() not in (None, 0)]
        if dead and failed is None:
            failed, deadline = dead[0], time.monotonic() + GRACE
        time.sleep(0.1)
    dead = [rank for rank, process in enumerate(processes) if process.poll() not in (None, 0)]
    if dead:
        first = dead[0] if failed is None else failed
        raise RankError(f"rank {first} {_manner(processes[first].returncode)}; the run has stopped")


def _manner(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}; go on with --resume, with any number of ranks"
    return f"ended with exit code {code}"


def die_with_parent() -> None:
    """End this rank when the process that launched it is gone, however that happened."""
    parent = os.environ.get("HGDE_PARENT")
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
