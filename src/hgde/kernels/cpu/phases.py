"""Several threads inside one call of a kernel, which goes through phases that wait for one another.

Every thread calls the kernel with the same arguments but a buffer and a view of the counters, ``sync``, of its own. A
phase is cut into parts that depend on the data alone; a thread takes the next part that nobody has taken, works on it,
and says so. When none is left it waits for those still at work, then all go on to the next phase:

    for phase in range(phases):
        part = take(sync, phase, parts)
        while part < parts:
            ...
            part = next_part(sync, phase, parts)
        meet(sync, phase, parts)

Each thread begins with a share of its own, the same in every phase, so that what it left of those rows is still in its
core's cache; one that is through helps the others. Which thread takes which part does not matter to the result, and a
thread that arrives late, or never, is not waited for: the others do its share. A phase costs well under a microsecond
besides its work, where a job handed to a sleeping thread costs twenty or more.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

from hgde.compiler.dialect import block, inlined, instruction
from hgde.compiler.memory import offset as offset
from hgde.compiler.values import VOID, WHOLE, WORD, known_function
from hgde.kernels.cpu.sizes import LINE

_PATIENCE = 4000
"""Times a waiting thread looks again before it lets others have its core: some tens of microseconds."""
_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64")
_HAS_YIELD = sys.platform != "win32"


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
def counter(sync: Any, phase: int, number: int) -> int:
    """Where a counter of a phase lies: one for the share of each thread, and the last for the parts that are done."""
    me, crew = sync[0], sync[1]
    return LINE * (crew - me + phase * (crew + 1) + number)


@block
def take(sync: Any, phase: int, parts: int) -> int:
    """The next part of a phase, of one's own share or of the next that has any left; ``parts`` if there is none."""
    me, crew = sync[0], sync[1]
    for beyond in range(me, me + crew):
        who = beyond % crew
        low, high = who * parts // crew, (who + 1) * parts // crew
        at = counter(sync, phase, who)
        if look(sync, at) < high - low:
            part = low + count_up(sync, at)
            if part < high:
                return part
    return parts


@inlined
def next_part(sync: Any, phase: int, parts: int) -> int:
    """Say that a part is done, and take another."""
    count_up(sync, counter(sync, phase, sync[1]))
    return take(sync, phase, parts)


@inlined
def meet(sync: Any, phase: int, parts: int) -> None:
    """Wait until every part of a phase is done."""
    turns, at = 0, counter(sync, phase, sync[1])
    while look(sync, at) < parts:
        pause()
        turns += 1
        if turns > _PATIENCE:
            give_way()
