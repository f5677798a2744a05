"""Threads for compiled kernels: a few workers that sleep between jobs, as many as torch is set to use.

Kernels run without the interpreter lock. Work is cut into blocks that depend on the data alone; which thread takes
which block does not matter to the result.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import torch
from torch import Tensor

from hgde.kernels.cpu.load import function

#: Inner-loop operations that make it worth waking another thread.
MIN_WORK = 700_000

_lock = threading.Lock()
_workers: list[SimpleQueue[Any]] = []
_owner = os.getpid()
_scratch = threading.local()
REAL = {torch.float32: "float32", torch.float64: "float64"}


def _work(inbox: SimpleQueue[Any]) -> None:

    torch.set_num_threads(1)  # of this thread only
    while True:
        job, args, done = inbox.get()
        try:
            job(*args)
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


def buffer(size: int) -> int:
    """Address of this thread's buffer of at least ``size`` doubles."""
    held: Tensor | None = getattr(_scratch, "tensor", None)
    if held is None or held.numel() < size:
        held = _scratch.tensor = torch.zeros(size, dtype=torch.float64)
    return held.data_ptr()


def _part(kernel: Callable[..., None], begin: int, end: int, scratch: int, args: tuple[Any, ...]) -> None:
    kernel(begin, end, buffer(scratch), *args)


def run(
    name: str, dtype: torch.dtype, blocks: int, work: int, scratch: int, args: tuple[Any, ...], align: int = 1
) -> None:
    """Kernel ``name`` over ``range(blocks)``, split among threads where ``work`` is worth it.

    Args:
        work: inner-loop operations of the whole job; small jobs stay on the calling thread.
        scratch: doubles of buffer that each thread needs.
        args: numbers, and tensors whose first entry's address is handed over (``None`` is the null pointer).
        align: no part begins inside a group of so many blocks.
    """
    kernel = function(name, REAL[dtype])
    plain = tuple(a.data_ptr() if isinstance(a, Tensor) else a for a in args)
    groups = -(-blocks // align)
    threads = min(torch.get_num_threads(), groups, max(1, work // MIN_WORK))
    if threads <= 1:
        kernel(0, blocks, buffer(scratch), *plain)
        return
    cuts = [min(blocks, align * (groups * t // threads)) for t in range(threads + 1)]
    _spread([(_part, (kernel, cuts[t], cuts[t + 1], scratch, plain)) for t in range(threads)])


def _spread(jobs: list[tuple[Callable[..., None], tuple[Any, ...]]]) -> None:
    """The first job here, each other one on a worker."""
    _ensure(len(jobs) - 1)
    done: SimpleQueue[Any] = SimpleQueue()
    for inbox, (job, args) in zip(_workers, jobs[1:], strict=False):
        inbox.put((job, args, done))
    failure = None
    try:
        job, args = jobs[0]
        job(*args)
    finally:
        for _ in jobs[1:]:
            failure = done.get() or failure
    if failure is not None:
        raise failure


def run_pieces(piece: Callable[[int], None], count: int) -> None:
    """``piece(0) .. piece(count - 1)``, torch code, each on one thread: the same bits for any number of threads.

    All of them run on workers, because torch's number of threads is a property of the thread.
    """
    threads = min(max(torch.get_num_threads(), 1), count)
    if count == 0:
        return
    _ensure(threads)
    done: SimpleQueue[Any] = SimpleQueue()

    def chain(first: int) -> None:
        for k in range(first, count, threads):
            piece(k)

    for inbox, first in zip(_workers, range(threads), strict=False):
        inbox.put((chain, (first,), done))
    failure = None
    for _ in range(threads):
        failure = done.get() or failure
    if failure is not None:
        raise failure
