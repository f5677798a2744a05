"""Pieces that run one after the other and meet: the program of each is written as if it had a process to itself.

A piece runs, in a thread of its own, until it needs something of the others. Then it waits, the next one runs, and when
all have arrived the coordinator does what they met for. One piece runs at a time: threads serve to keep each piece's
place in its program, through ``backward()`` too. What a piece computes depends on its own program and on what it is
handed, never on which pieces share its process; therein lies that results do not depend on the number of ranks.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch

from hgde.kernels.cpu.pages import keep_at_most
from hgde.kernels.cpu.threads import Room

T = TypeVar("T")
Operation = Callable[[dict[int, Any]], Iterable[tuple[int, Any]]]
"""What pieces meet for: takes what each brings, gives each what it goes on with, in the order in which they may."""


_M_ARENA_MAX = -8


def share_memory() -> None:
    """Let all threads allocate from one place, where the C library allows it, and keep nothing that was freed.

    By default each thread has its own, and keeps what it freed to itself: with a thread for each piece a third more
    memory is held than is in use. One piece runs at a time, so nobody waits for the other's.
    """
    keep_at_most(0)
    if sys.platform.startswith("linux"):
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


class OutOfStep(RuntimeError):
    """Pieces that met for different things, which is a fault of the program and not of the user."""


class _Stopped(BaseException):
    """Ends the thread of a piece after another has failed."""


def _closed() -> threading.Lock:
    """A lock that one thread waits at and another opens: far cheaper than a semaphore."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class _Member:
    def __init__(self) -> None:
        self.go = _closed()
        self.thread: threading.Thread | None = None
        self.wish: tuple[Operation, Any] | None = None
        self.reply: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False


class Lockstep:
    """Runs the pieces of one process.

    >>> def total(values):
    ...     return [(number, sum(values.values())) for number in values]
    >>> step = Lockstep([3, 4])
    >>> step.run(lambda number: number + step.meet(number, total, 10 * number))
    {3: 73, 4: 74}
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = list(numbers)
        share_memory()
        #: Pieces take turns, so one set of buffers serves them all.
        self._room = Room(torch.get_num_threads())
        self._members: dict[int, _Member] = {}
        self._back = _closed()
        self._is_stopped = False

    def meet(self, number: int, operation: Operation, value: Any) -> Any:
        """Wait until all pieces have come here, bring ``value`` and return with what ``operation`` gives this one."""
        member = self._members[number]
        member.wish = (operation, value)
        self._back.release()
        member.go.acquire()
        if self._is_stopped:
            raise _Stopped
        reply, member.reply = member.reply, None
        return reply

    def run(self, work: Callable[[int], T]) -> dict[int, T]:
        """``work(number)`` of every piece, to the end."""
        self._members = {number: _Member() for number in self.numbers}
        self._is_stopped = False
        grad = torch.is_grad_enabled()
        for number, member in self._members.items():
            context = contextvars.copy_context()
            member.thread = threading.Thread(
                target=context.run, args=(self._live, number, work, grad), name=f"piece-{number}", daemon=True
            )
        try:
            ready: Iterable[tuple[int, Any]] = [(number, None) for number in self.numbers]
            while True:
                for number, reply in ready:
                    self._resume(self._members[number], reply)
                waiting = [number for number, member in self._members.items() if not member.is_done]
                if not waiting:
                    return {number: member.result for number, member in self._members.items()}
                ready = self._serve(waiting)
        finally:
            self._stop()

    def _resume(self, member: _Member, reply: Any) -> None:
        assert member.thread is not None
        member.reply, member.wish = reply, None
        if member.thread.ident is None:
            member.thread.start()
        else:
            member.go.release()
        self._back.acquire()
        if member.error is not None:
            raise member.error

    def _serve(self, waiting: list[int]) -> Iterable[tuple[int, Any]]:
        wishes = {number: self._members[number].wish for number in waiting}
        operations = {wish[0] for wish in wishes.values() if wish is not None}
        if len(waiting) < len(self.numbers) or len(operations) != 1:
            raise OutOfStep(f"pieces {waiting} of {self.numbers} met for {len(operations)} different things")
        return operations.pop()({number: wish[1] for number, wish in wishes.items() if wish is not None})

    def _live(self, number: int, work: Callable[[int], Any], grad: bool) -> None:
        member = self._members[number]
        try:
            # All of these belong to a thread. The order of torch's own sums depends on its number of threads, that of
            # kernels does not.
            torch.set_num_threads(1)
            self._room.enter()
            with torch.set_grad_enabled(grad):
                member.result = work(number)
        except _Stopped:
            return
        except BaseException as error:  # handed to the coordinator, which raises it
            member.error = error
        member.is_done = True
        self._back.release()

    def _stop(self) -> None:
        self._is_stopped = True
        for member in self._members.values():
            thread = member.thread
            if thread is not None and thread.ident is not None and thread.is_alive():
                member.go.release()
                thread.join()
