"""How kernels are called: with a *job*, which any number of threads may take up together.

A job is a list of calls. In memory it is words of 64 bits: how many calls have been taken, how many there are, and for
each of them where its arguments lie, one word each. Whoever takes the job up makes the next call that nobody has taken
until none is left (:mod:`~hgde.compiler.entry`), so a job is done whether one thread comes or several.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

TAKEN, COUNT, CALLS = range(3)
"""Where these lie in a job."""
_PACKED = {"i": "q", "d": "d", "p": "Q"}


class Kernel:
    """Machine code that takes up jobs, at an address."""

    def __init__(self, address: int, kinds: str) -> None:
        self.address = address
        self.take_up: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        self._arguments = struct.Struct("=" + "".join(_PACKED[kind] for kind in kinds))

    def blank_job(self, count: int) -> Any:
        """Room for a job of so many calls: an array of words, which must live until the job is done."""
        head, size = CALLS + count, self._arguments.size
        words = (ctypes.c_int64 * (head + count * size // 8))()
        words[COUNT] = count
        for n in range(count):
            words[CALLS + n] = ctypes.addressof(words) + 8 * head + n * size
        return words

    def fill(self, words: Any, heads: Sequence[Sequence[Any]], rest: Sequence[Any]) -> None:
        """Make a job, new or done, that of calls with these first arguments and the rest in common."""
        at, size, pack = 8 * (CALLS + len(heads)), self._arguments.size, self._arguments.pack_into
        words[TAKEN] = 0
        for head in heads:
            pack(words, at, *head, *rest)
            at += size

    def call(self, *given: Any) -> None:
        """One call on this thread: numbers, and arrays of numpy whose first entry's address is handed over."""
        plain = [one.ctypes.data if hasattr(one, "ctypes") else one for one in given]
        job = self.blank_job(1)
        self.fill(job, [()], plain)
        self.take_up(ctypes.addressof(job))
