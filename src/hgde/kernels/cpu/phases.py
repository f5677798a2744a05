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

from hgde.kernels.compiler.dialect import inlined, instruction
from hgde.kernels.compiler.values import VOID, WHOLE, WORD, converted, known_function

_PATIENCE = 4000
"""Times a waiting thread looks again before it lets others have its core: some tens of microseconds."""
_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64")
_HAS_YIELD = sys.platform != "win32"


@instruction
def offset(builder: Any, array: Any, at: Any) -> Any:
    """The array from place ``at`` on."""
    return builder.gep(array, [converted(builder, at, WHOLE)])


@instruction
def count_up(builder: Any, counters: Any, at: Any) -> Any:
    """``counters[at]`` before one is added to it, in one step that no thread sees halfway."""
    return builder.sext(builder.atomic_rmw("add", offset.write(builder, counters, at), WORD(1), "acq_rel"), WHOLE)


@instruction
def look(builder: Any, counters: Any, at: Any) -> Any:
    """``counters[at]`` as other threads have left it; what they wrote before is seen too."""
    return builder.sext(builder.load_atomic(offset.write(builder, counters, at), "acquire", 4), WHOLE)


@instruction
def pause(builder: Any) -> None:
    """Wait a moment without hurry."""
    if _HAS_PAUSE:
        builder.call(known_function(builder, "llvm.x86.sse2.pause", VOID, []), [])


@instruction
def give_way(builder: Any) -> None:
    """Let another thread have the core."""
    if _HAS_YIELD:
        builder.call(known_function(builder, "sched_yield", WORD, []), [])


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
