"""Threads for compiled kernels: torch's own, as many as it is set to use.

Kernels run without the interpreter lock. Work is cut into blocks that depend on the data alone; which thread takes
which block does not matter to the result.

Where torch has its threads from OpenMP (GNU's, on Linux) kernels run on the same. For milliseconds after any operation
of torch those wait for the next one in a loop that keeps a core busy: threads of our own would have to share it with
them, while theirs begin at once. Elsewhere, and in a forked child, which inherits none, a few workers of our own do.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import torch
from torch import Tensor

from hgde.compiler.load import function
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.sizes import LINE

#: Inner-loop operations that make it worth waking another thread: for one job, and for a kernel that goes through
#: phases, whose caller works on until the other arrives.
MIN_WORK, MIN_SHARED = 700_000, 150_000

_lock = threading.Lock()
_workers: list[SimpleQueue[Any]] = []
_here = threading.local()
#: ``GOMP_parallel(function, argument, threads, flags)``: the function on several threads of torch's.
_openmp: Any = getattr(ctypes.CDLL(None), "GOMP_parallel", None) if sys.platform == "linux" else None
if _openmp is not None:
    _openmp.argtypes, _openmp.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint), None


def _begin_anew() -> None:
    """A forked child inherits what stands for its parent's threads, but none of the threads."""
    global _openmp
    _workers.clear()
    _openmp = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
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
    with _lock:
        while len(_workers) < count:
            inbox: SimpleQueue[Any] = SimpleQueue()
            _workers.append(inbox)
            threading.Thread(target=_work, args=(inbox,), daemon=True, name=f"hgde-{len(_workers)}").start()


class Room:
    """What kernels have to work with: so many threads, torch's number by default, and buffers kept for the next call.

    A thread has its own, unless it enters one that it shares with others; of these only one may run at a time.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._scratch = torch.zeros(0, dtype=torch.float64)
        self._begin, self._count = 0, 0
        self._lent: dict[tuple[str, torch.dtype], Tensor] = {}

    @property
    def threads(self) -> int:
        return torch.get_num_threads() if self._threads is None else self._threads

    def enter(self) -> None:
        """From now on this is the room of the calling thread."""
        _here.room = self

    def buffers(self, size: int, count: int) -> list[int]:
        """Addresses of as many buffers of at least ``size`` doubles."""
        size = (size + 7) // 8 * 8
        if self._count < size * count:
            self._scratch = torch.zeros(size * count, dtype=torch.float64)
            self._begin, self._count = self._scratch.data_ptr(), size * count
        return [self._begin + 8 * size * n for n in range(count)]

    def lent(self, name: str, size: int, dtype: torch.dtype) -> Tensor:
        """See :func:`lent`."""
        known = self._lent.get((name, dtype))
        if known is None or not size <= known.numel() <= 4 * size + 1024:
            known = self._lent[name, dtype] = pages.empty(size, dtype)
        return known


def _room() -> Room:
    found: Room | None = getattr(_here, "room", None)
    if found is None:
        found = _here.room = Room()
    return found


def lent(name: str, size: int, dtype: torch.dtype) -> Tensor:
    """A buffer of at least ``size`` numbers, of whatever values, until the name is asked for again in this room.

    Large ones would be fetched from the system page by page at every call, which takes as long as some of the work.
    """
    return _room().lent(name, size, dtype)


class Given(str):
    """The name of an argument that comes with each call, at its place among the others of a :class:`Call`."""

    __slots__ = ()


class Call:
    """A kernel with its arguments, which are packed once: from one call to the next only some of them change.

    Args:
        scratch: doubles of buffer that each thread needs.
        args: ints, floats, tensors whose first entry's address is handed over (``None`` is the null pointer), and
            :class:`Given` for what comes with each call. Tensors are held.
    """

    def __init__(self, name: str, dtype: torch.dtype, scratch: int, args: tuple[Any, ...]) -> None:
        self.name, self._scratch, self._held = name, scratch, args
        self._kernel = function(name, REAL[dtype])
        # Asking whether a number is a tensor takes longer than anything else here.
        self._plain = [a if type(a) in _NUMBERS else _word(a) for a in args]
        self._places = {str(a): place for place, a in enumerate(args) if type(a) is Given}
        self._jobs: dict[int, tuple[Any, int]] = {}

    def _set(self, given: dict[str, Any]) -> None:
        plain, places = self._plain, self._places
        for name, value in given.items():
            plain[places[name]] = value if type(value) in _NUMBERS else value.data_ptr()

    def _share(self, heads: Sequence[tuple[int, ...]]) -> None:
        """The calls that begin with these arguments, as many threads as there are of them."""
        kernel, threads = self._kernel, len(heads)
        known = self._jobs.get(threads)
        if known is None:
            blank = kernel.blank_job(threads)
            known = self._jobs[threads] = blank, ctypes.addressof(blank)
        job, place = known
        kernel.fill(job, heads, self._plain)
        if threads == 1:
            kernel.take_up(place)
        elif _openmp is not None:
            _openmp(kernel.address, place, threads, 0)
        else:
            _spread([(kernel.take_up, (place,))] * threads)


_NUMBERS = (int, float)


def _word(argument: Any) -> int:
    return 0 if argument is None or type(argument) is Given else argument.data_ptr()


class LoneCall(Call):
    """A kernel on the calling thread alone."""

    def __call__(self, **given: Any) -> None:
        self._set(given)
        self._share([tuple(_room().buffers(self._scratch, 1))])


class SplitCall(Call):
    """A kernel over ``range(blocks)``, split among threads where ``work`` is worth it.

    Args:
        work: inner-loop operations of the whole job; small jobs stay on the calling thread.
        align: no part begins inside a group of so many blocks.
    """

    def __init__(
        self, name: str, dtype: torch.dtype, blocks: int, work: int, scratch: int, args: tuple[Any, ...], align: int = 1
    ) -> None:
        super().__init__(name, dtype, scratch, args)
        self._blocks, self._work, self._align = blocks, work, align

    def __call__(self, **given: Any) -> None:
        self._set(given)
        room, blocks, align = _room(), self._blocks, self._align
        groups = -(-blocks // align)
        threads = max(1, min(room.threads, groups, self._work // MIN_WORK))
        cuts = [min(blocks, align * (groups * t // threads)) for t in range(threads + 1)]
        parts = zip(pairwise(cuts), room.buffers(self._scratch, threads), strict=True)
        self._share([(*cut, own) for cut, own in parts])


class SharedCall(Call):
    """A kernel that goes through ``phases``, see :mod:`hgde.kernels.cpu.phases`, by as many threads as are free.

    Args:
        most_parts: the largest number of parts that a phase has.
        work: as for :class:`SplitCall`.
    """

    def __init__(
        self, name: str, dtype: torch.dtype, phases: int, most_parts: int, work: int, scratch: int,
        args: tuple[Any, ...],
    ) -> None:  # fmt: skip
        super().__init__(name, dtype, scratch, args)
        self._phases, self._parts, self._work = phases, most_parts, work
        self._sync: dict[int, tuple[Any, int]] = {}

    def __call__(self, **given: Any) -> None:
        self._set(given)
        room, work = _room(), self._work
        threads = max(1, min(room.threads, self._parts, work // MIN_SHARED))
        choice = _choice(self.name, work, threads) if threads > 1 and work < ALWAYS_SHARED else None
        if choice is not None and not choice.is_shared():
            threads = 1
        began = 0.0 if choice is None else time.perf_counter()
        first = self._counters(threads)
        heads = [(own, first + 4 * LINE * n) for n, own in enumerate(room.buffers(self._scratch, threads))]
        self._share(heads)
        if choice is not None:
            choice.learn(threads > 1, time.perf_counter() - began)

    def _counters(self, threads: int) -> int:
        """Where the counters of the phases are, see :func:`hgde.kernels.cpu.phases.counter`; the first lines tell each
        thread which it is and how many there are."""
        known = self._sync.get(threads)
        if known is None:
            sync = (ctypes.c_int32 * ((threads + self._phases * (threads + 1)) * LINE))()
            for n in range(threads):
                sync[n * LINE], sync[n * LINE + 1] = n, threads
            self._sync[threads] = sync, ctypes.addressof(sync)
            return self._sync[threads][1]
        sync, first = known
        told = 4 * LINE * threads
        ctypes.memset(first + told, 0, ctypes.sizeof(sync) - told)
        return first


def run(
    name: str, dtype: torch.dtype, blocks: int, work: int, scratch: int, args: tuple[Any, ...], align: int = 1
) -> None:
    """A :class:`SplitCall` that is made once."""
    SplitCall(name, dtype, blocks, work, scratch, args, align)()


def run_together(
    name: str, dtype: torch.dtype, phases: int, most_parts: int, work: int, scratch: int, args: tuple[Any, ...]
) -> None:
    """A :class:`SharedCall` that is made once."""
    SharedCall(name, dtype, phases, most_parts, work, scratch, args)()


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
