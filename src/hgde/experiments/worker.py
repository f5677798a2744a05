"""The process at the other end of :mod:`hgde.experiments.jobs`: takes jobs from a pipe, sends back what came of it."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

_PR_SET_PDEATHSIG = 1


def serve(pipe: Connection, parent: int) -> None:
    """Work until the parent sends ``None``, closes the pipe, or is gone."""
    # Ctrl-C reaches the whole group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with(parent)
    import torch

    from hgde.experiments.work import do

    torch.set_num_threads(1)  # a forked process has its parent's number, but none of its threads
    gc.freeze()  # libraries stay: a collection, of which every run has one, need not look through them
    with contextlib.suppress(EOFError, OSError):
        while (job := pipe.recv()) is not None:
            done = do(job)
            pipe.send((done.result, done.failure))


def die_with(parent: int) -> None:
    """End this process when its parent ends: by the kernel on Linux, and by looking every second anywhere."""
    if sys.platform.startswith("linux"):
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before the kernel was asked
        os._exit(1)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
