"""Threads for compiled kernels: a few workers that sleep between jobs, as many as torch is set to use.

Kernels release the interpreter lock. numba's own parallel loops would bring a second OpenMP pool whose idle threads
spin against torch's, and cannot balance rows by their number of edges.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import torch

_lock = threading.Lock()
_workers: list[SimpleQueue[Any]] = []
_owner = os.getpid()


def _work(inbox: SimpleQueue[Any]) -> None:
    while True:
        function, args, done = inbox.get()
        try:
            function(*args)
            done.put(None)
        except BaseException as error:
            done.put(error)


def _ensure(count: int) -> None:
    global _owner
    with _lock:
        if _owner != os.getpid():
            # A forked child inherits the queues but not the threads behind them.
            _workers.clear()
            _owner = os.getpid()
        while len(_workers) < count:
            inbox: SimpleQueue[Any] = SimpleQueue()
            _workers.append(inbox)
            threading.Thread(target=_work, args=(inbox,), daemon=True, name=f"hgde-{len(_workers)}").start()


def run_blocks(kernel: Callable[..., None], blocks: int, work: int, args: tuple[Any, ...], align: int = 1) -> None:
    """``kernel(first, last, *args)`` over ``range(blocks)``, split among threads where ``work`` is worth it.

    Args:
        work: inner-loop operations of the whole job; small jobs stay on the calling thread.
        align: no part begins inside a group of so many blocks.
    """
    announce(kernel)
    groups = -(-blocks // align)
    threads = min(torch.get_num_threads(), groups, max(1, work // MIN_WORK))
    if threads <= 1:
        kernel(0, blocks, *args)
        return
    cuts = [min(blocks, align * (groups * t // threads)) for t in range(threads + 1)]
    _ensure(threads - 1)
    done: SimpleQueue[Any] = SimpleQueue()
    for t in range(1, threads):
        _workers[t - 1].put((kernel, (cuts[t], cuts[t + 1], *args), done))
    failure = None
    try:
        kernel(cuts[0], cuts[1], *args)
    finally:
        for _ in range(1, threads):
            failure = done.get() or failure
    if failure is not None:
        raise failure


MIN_WORK = 700_000
_announced = False


def announce(kernel: Any) -> None:
    """Say once that compiling is under way, if this kernel was never compiled on this machine."""
    global _announced
    if _announced or getattr(kernel, "signatures", True):
        return
    _announced = True
    stats = getattr(kernel, "_cache", None)
    path = getattr(stats, "cache_path", None)
    known = path is not None and any(name.startswith(_cache_name(kernel)) for name in _listing(path))
    if not known:
        print("hgde: compiling the fused kernels (once, then cached on disk) ...", file=sys.stderr, flush=True)


def _cache_name(kernel: Any) -> str:
    return f"{kernel.py_func.__module__.rsplit('.', 1)[-1]}.{kernel.py_func.__qualname__}-"


def _listing(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
