"""How kernels are called: with a *job*, which any number of threads may take up together.

A job is a list of calls. In memory it is words of 64 bits: how many calls have been taken, how many there are, and for
each of them where its arguments lie, one word each. Whoever takes the job up makes the next call that nobody has taken
until none is left, so a job is done whether one thread comes or several.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from hgde.kernels.compiler.values import DOUBLE, VOID, WHOLE

_TAKEN, _COUNT, _CALLS = range(3)
_TYPES = {"i": WHOLE, "d": DOUBLE, "p": ir.IntType(8).as_pointer()}
_PACKED = {"i": "q", "d": "d", "p": "Q"}


def entry(symbol: str, body: str, kinds: str) -> str:
    """A program with one function, ``symbol``, which takes up a job whose calls are of the function ``body``."""
    types, pointer = [_TYPES[kind] for kind in kinds], WHOLE.as_pointer()
    module = ir.Module()
    called = ir.Function(module, ir.FunctionType(VOID, types), body)
    made = ir.Function(module, ir.FunctionType(VOID, [pointer]), symbol)
    begin, take, call, end = (made.append_basic_block() for _ in range(4))
    job = made.args[0]
    ir.IRBuilder(begin).branch(take)
    build = ir.IRBuilder(take)
    turn = build.atomic_rmw("add", build.gep(job, [WHOLE(_TAKEN)]), WHOLE(1), "acq_rel")
    build.cbranch(build.icmp_signed("<", turn, build.load(build.gep(job, [WHOLE(_COUNT)]))), call, end)
    build = ir.IRBuilder(call)
    address = build.load(build.gep(job, [build.add(turn, WHOLE(_CALLS))]))
    arguments = build.inttoptr(address, pointer)
    given = [
        build.load(build.bitcast(build.gep(arguments, [WHOLE(at)]), kind.as_pointer())) for at, kind in enumerate(types)
    ]
    build.call(called, given)
    build.branch(take)
    ir.IRBuilder(end).ret_void()
    return str(module)


class Kernel:
    """Machine code that takes up jobs, at an address."""

    def __init__(self, address: int, kinds: str) -> None:
        self.address = address
        self.take_up: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        self._arguments = struct.Struct("=" + "".join(_PACKED[kind] for kind in kinds))

    def job(self, calls: Sequence[Sequence[Any]]) -> Any:
        """The job of these calls, given by their arguments: an array of words, which must live until it is done."""
        head, size = _CALLS + len(calls), self._arguments.size
        words = (ctypes.c_int64 * (head + len(calls) * size // 8))()
        words[_COUNT] = len(calls)
        for n, given in enumerate(calls):
            words[_CALLS + n] = ctypes.addressof(words) + 8 * head + n * size
            self._arguments.pack_into(words, 8 * head + n * size, *given)
        return words
