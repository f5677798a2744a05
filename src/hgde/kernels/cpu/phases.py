"""Several threads inside one call of a kernel, which goes through phases that wait for one another.

Every thread calls the kernel with the same arguments but a buffer of its own. A phase is cut into parts that depend on
the data alone; a thread takes the next part that nobody has taken, works on it, and says so. When none is left it waits
for those still at work, then all go on to the next phase:

    for phase in range(phases):
        part = take(sync, phase)
        while part < parts:
            ...
            part = next_part(sync, phase)
        meet(sync, phase, parts)

Which thread takes which part does not matter to the result, and a thread that arrives late, or never, is not waited
for: the others do its share. A phase costs well under a microsecond besides its work, where a job handed to a sleeping
thread costs twenty or more. ``sync`` holds two counters of 32 bits for each phase, zero to begin with.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hgde.kernels.cpu.compile import inlined

_PATIENCE = 4000
"""Times a waiting thread looks again before it lets others have its core: some tens of microseconds."""
_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64")
_HAS_YIELD = sys.platform != "win32"


@intrinsic
def count_up(typingctx: Any, counters: Any, at: Any) -> Any:
    """``counters[at]`` before one is added to it, in one step that no thread sees halfway."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.gep(args[0], [args[1]])
        old = builder.atomic_rmw("add", place, ir.IntType(32)(1), "acq_rel")
        return builder.sext(old, ir.IntType(64))

    return types.intp(counters, types.intp), codegen


@intrinsic
def look(typingctx: Any, counters: Any, at: Any) -> Any:
    """``counters[at]`` as other threads have left it; what they wrote before is seen too."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load_atomic(builder.gep(args[0], [args[1]]), "acquire", 4)
        return builder.sext(value, ir.IntType(64))

    return types.intp(counters, types.intp), codegen


@intrinsic
def pause(typingctx: Any) -> Any:
    """Wait a moment without hurry."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _HAS_PAUSE:
            name = "llvm.x86.sse2.pause"
            known = builder.module.globals.get(name)
            builder.call(known or ir.Function(builder.module, ir.FunctionType(ir.VoidType(), []), name), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def give_way(typingctx: Any) -> Any:
    """Let another thread have the core."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _HAS_YIELD:
            name = "sched_yield"
            known = builder.module.globals.get(name)
            builder.call(known or ir.Function(builder.module, ir.FunctionType(ir.IntType(32), []), name), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def offset(typingctx: Any, array: Any, at: Any) -> Any:
    """The array from place ``at`` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return array(array, types.intp), codegen


@inlined
def take(sync: Any, phase: int) -> int:
    """The next part of a phase."""
    return count_up(sync, 2 * phase)


@inlined
def next_part(sync: Any, phase: int) -> int:
    """Say that a part is done, and take another."""
    count_up(sync, 2 * phase + 1)
    return count_up(sync, 2 * phase)


@inlined
def meet(sync: Any, phase: int, parts: int) -> None:
    """Wait until every part of a phase is done."""
    turns = 0
    while look(sync, 2 * phase + 1) < parts:
        pause()
        turns += 1
        if turns > _PATIENCE:
            give_way()
