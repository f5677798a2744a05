"""The function that machine code is entered by: it takes up a job (:mod:`~hgde.compiler.jobs`)."""

from __future__ import annotations

from llvmlite import ir

from hgde.compiler.jobs import CALLS, COUNT, TAKEN
from hgde.compiler.values import DOUBLE, VOID, WHOLE

_TYPES = {"i": WHOLE, "d": DOUBLE, "p": ir.IntType(8).as_pointer()}


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
    turn = build.atomic_rmw("add", build.gep(job, [WHOLE(TAKEN)]), WHOLE(1), "acq_rel")
    build.cbranch(build.icmp_signed("<", turn, build.load(build.gep(job, [WHOLE(COUNT)]))), call, end)
    build = ir.IRBuilder(call)
    address = build.load(build.gep(job, [build.add(turn, WHOLE(CALLS))]))
    arguments = build.inttoptr(address, pointer)
    given = [
        build.load(build.bitcast(build.gep(arguments, [WHOLE(at)]), kind.as_pointer())) for at, kind in enumerate(types)
    ]
    build.call(called, given)
    build.branch(take)
    ir.IRBuilder(end).ret_void()
    return str(module)
