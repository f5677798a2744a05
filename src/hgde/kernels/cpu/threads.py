"""Threads for compiled kernels: a few workers that sleep between jobs, as many as torch is set to use.

Kernels run without the interpreter lock. Work is cut into blocks that depend on the data alone; which thread takes
which block does not matter to the result.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import torch
from torch import Tensor

from hgde.kernels.compiler.load import function

#: Inner-loop operations that make it worth waking another thread: for one job, and for a kernel that goes through
#: phases, whose caller works on until the other arrives.
MIN_WORK, MIN_SHARED = 700_000, 150_000

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


def run_together(
    name: str, dtype: torch.dtype, phases: int, most_parts: int, work: int, scratch: int, args: tuple[Any, ...]
) -> None:
    """A kernel that goes through ``phases``, see :mod:`hgde.kernels.cpu.phases`, by as many threads as are free.

    The arguments are those of :func:`run`; ``most_parts`` is the largest number of parts that a phase has.
    """
    kernel = function(name, REAL[dtype])
    sync = torch.zeros(2 * phases, dtype=torch.int32)
    plain = (sync.data_ptr(), *(a.data_ptr() if isinstance(a, Tensor) else a for a in args))
    threads = min(torch.get_num_threads(), most_parts, max(1, work // MIN_SHARED))
    choice = _choice(name, work, threads) if threads > 1 and work < ALWAYS_SHARED else None
    if choice is not None and not choice.is_shared():
        threads = 1
    began = time.perf_counter()
    helpers = [_Helper(kernel, scratch, plain) for _ in range(threads - 1)]
    _ensure(len(helpers))
    for inbox, helper in zip(_workers, helpers, strict=False):
        inbox.put((helper.join, (), _UNREAD))
    try:
        kernel(buffer(scratch), *plain)
    finally:
        for helper in helpers:
            helper.leave()
    if choice is not None:
        choice.learn(threads > 1, time.perf_counter() - began)


class _Choice:
    """Whether a short job is worth sharing just now, by what it took both ways.

    On a quiet machine two threads are nearly twice as fast. Where other work wants the cores, a thread that is taken
    off its core halfway through a part holds up all others, and one thread alone is faster.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._taken: list[float | None] = [None, None]  # alone, shared

    def is_shared(self) -> bool:
        """The faster way; now and then, and at first, the other."""
        self._calls += 1
        alone, shared = self._taken
        if alone is None or shared is None:
            return alone is not None
        return (shared < alone) != (self._calls % _LOOK_AGAIN == 0)

    def learn(self, is_shared: bool, seconds: float) -> None:
        known = self._taken[is_shared]
        self._taken[is_shared] = seconds if known is None else 0.7 * known + 0.3 * seconds


#: Jobs of so much work take milliseconds and are always shared.
ALWAYS_SHARED = 60_000_000
_LOOK_AGAIN = 48
_MOST_CHOICES = 256
_choices: dict[tuple[str, int, int], _Choice] = {}


def _choice(*job: Any) -> _Choice:
    """What is known of a job: kernel, work, threads."""
    known = _choices.get(job)
    if known is None:
        if len(_choices) >= _MOST_CHOICES:
            _choices.clear()
        known = _choices[job] = _Choice()
    return known


class _Helper:
    """A worker's part in a shared call. One that has not begun when the work is done is no longer wanted."""

    def __init__(self, kernel: Callable[..., None], scratch: int, args: tuple[Any, ...]) -> None:
        self._call, self._begun, self._done = (kernel, scratch, args), threading.Lock(), threading.Lock()
        self._done.acquire()

    def join(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        kernel, scratch, args = self._call
        try:
            kernel(buffer(scratch), *args)
        finally:
            self._done.release()

    def leave(self) -> None:
        """Wait for the worker if it has begun: it still reads what the caller is about to free."""
        if not self._begun.acquire(blocking=False):
            self._done.acquire()


class _Unread:
    """Where the workers' word that they are done goes if nobody waits for it."""

    def put(self, _: Any) -> None:
        return


_UNREAD = _Unread()


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
