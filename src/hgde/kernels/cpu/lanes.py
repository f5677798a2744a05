"""The vector dialect in which the compiled passes are written, explained once.

A kernel is a Python function translated for LLVM. Its arrays are bare pointers, indexed by one number: entry ``k`` of
row ``i`` of a matrix of width ``d`` is ``x[i * d + k]``. Nothing is allocated, checked or counted, so the machine code
is what one would write in C, and compiling it is quick. Buffers for intermediate values are handed in.

A loop over a short row, written entry by entry, is not vectorised well, and the order of its sum would depend on the
machine. So the vectors are said outright. ``Lanes`` are eight numbers of one dtype:

* ``load(x, at)``: eight entries from place ``at`` on, in the array's dtype; ``wide(x, at)``: the same as doubles;
* ``store(x, at, lanes)``: write eight entries, rounded to the array's dtype;
* ``spread(number)``: eight doubles of one value; ``zeros(x)``: eight zeros of the array's dtype;
* ``widened(lanes)``: the lanes as doubles;
* ``a + b``, ``a - b``, ``a * b`` between lanes of one dtype, or lanes and a number, which takes the lanes' dtype;
* ``fma(a, b, c)``: ``a b + c`` rounded once, for lanes or numbers;
* ``total(lanes)``: their sum as a double, added in halves: always in the same order; ``most(lanes)``: the largest.

Rows are a multiple of :data:`LANES` long; callers pad with zeros. ``prefetch(x, at)`` asks for a cache line ahead of
time, which holds ``line(x)`` entries. Scalars of many rows or edges lie in one buffer of doubles at fixed distances
(``w[B + r]``), so that the compiler sees that they do not overlap and works on several at once.

No operation may be reordered or fused by the compiler (no ``fast`` flags are given): what is written is what is
computed, so results have the same bits whatever the vector width of the machine and however the code was optimised.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from hgde.compiler.dialect import instruction
from hgde.compiler.values import (
    DOUBLE,
    SINGLE,
    VOID,
    WHOLE,
    WORD,
    common,
    converted,
    is_lanes,
    known_function,
    lanes_of,
    of_type,
    type_of,
)
from hgde.compiler.values import (
    LANES as LANES,
)


def _bytes(element: Any) -> int:
    return 4 if element == SINGLE else 8


def _place(builder: Any, array: Any, at: Any) -> Any:
    """Where eight entries from ``at`` on lie."""
    entry = builder.gep(array, [converted(builder, at, WHOLE)])
    return builder.bitcast(entry, lanes_of(array.type.pointee).as_pointer())


@instruction
def load(builder: Any, array: Any, at: Any) -> Any:
    """``array[at : at + 8]``."""
    return builder.load(_place(builder, array, at), align=_bytes(array.type.pointee))


@instruction
def wide(builder: Any, array: Any, at: Any) -> Any:
    """``array[at : at + 8]`` as doubles."""
    return converted(builder, load.write(builder, array, at), lanes_of(DOUBLE))


@instruction
def store(builder: Any, array: Any, at: Any, lanes: Any) -> None:
    """``array[at : at + 8] = lanes``, rounded to the array's dtype."""
    element = array.type.pointee
    builder.store(converted(builder, lanes, lanes_of(element)), _place(builder, array, at), align=_bytes(element))


@instruction
def widened(builder: Any, lanes: Any) -> Any:
    """Lanes as doubles."""
    return converted(builder, lanes, lanes_of(DOUBLE))


@instruction
def spread(builder: Any, number: Any) -> Any:
    """A number in all eight places, as doubles."""
    return converted(builder, number, lanes_of(DOUBLE))


@instruction
def zeros(builder: Any, array: Any) -> Any:
    """Eight zeros of the array's dtype."""
    return ir.Constant(lanes_of(array.type.pointee), None)


def _halved(builder: Any, lanes: Any, join: Any) -> Any:
    """One number from eight, joined in halves."""
    count = LANES
    while count > 1:
        count //= 2
        halves = [
            builder.shuffle_vector(lanes, lanes, ir.Constant(ir.VectorType(WORD, count), list(places)))
            for places in (range(count), range(count, 2 * count))
        ]
        lanes = join(*halves)
    return builder.extract_element(lanes, WORD(0))


@instruction
def total(builder: Any, lanes: Any) -> Any:
    """The sum of the eight as a double, added in halves in the lanes' own precision."""
    return converted(builder, _halved(builder, lanes, builder.fadd), DOUBLE)


def _number(*values: Any) -> Any:
    """Single precision if all are, else double."""
    return SINGLE if all(type_of(value) == SINGLE for value in values) else DOUBLE


@instruction
def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """``a b + c`` rounded once: the same bits on every machine, in one instruction on those that have it."""
    kind = common(a, b, c) if any(is_lanes(value) for value in (a, b, c)) else _number(a, b, c)
    function = known_function(builder, of_type("llvm.fma", kind), kind, [kind] * 3)
    return builder.call(function, [converted(builder, value, kind) for value in (a, b, c)])


def _ask(builder: Any, array: Any, at: Any, to_write: int) -> None:
    byte = ir.IntType(8).as_pointer()
    function = known_function(builder, "llvm.prefetch.p0", VOID, [byte, WORD, WORD, WORD])
    entry = builder.bitcast(builder.gep(array, [converted(builder, at, WHOLE)]), byte)
    builder.call(function, [entry, WORD(to_write), WORD(3), WORD(1)])


@instruction
def prefetch(builder: Any, array: Any, at: Any) -> None:
    """Ask for the cache line of ``array[at]`` before it is needed: neighbours' rows lie anywhere in memory."""
    _ask(builder, array, at, 0)


@instruction
def prefetch_to_write(builder: Any, array: Any, at: Any) -> None:
    """:func:`prefetch` of what is written: a store that waits for memory holds up those to the buffers behind it."""
    _ask(builder, array, at, 1)


@instruction
def line(builder: Any, array: Any) -> int:
    """How many entries of an array a cache line of 64 bytes holds."""
    return 64 // _bytes(array.type.pointee)


@instruction
def root(builder: Any, x: Any) -> Any:
    """The square root, correctly rounded."""
    kind = _number(x)
    return builder.call(
        known_function(builder, of_type("llvm.sqrt", kind), kind, [kind]), [converted(builder, x, kind)]
    )


def _choice(test: str) -> Any:
    @instruction
    def choose(builder: Any, a: Any, b: Any) -> Any:
        kind = common(a, b) if is_lanes(a) or is_lanes(b) else _number(a, b)
        one, two = converted(builder, a, kind), converted(builder, b, kind)
        # Unordered: a NaN in the first argument wins the comparison, so that it does not pass unseen.
        return builder.select(builder.fcmp_unordered(test, one, two), one, two)

    return choose


larger = _choice(">")
"""The larger of two numbers, or of each two of lanes; NaN if the first is NaN."""
smaller = _choice("<")
"""The smaller of two numbers, or of each two of lanes; NaN if the first is NaN."""


@instruction
def most(builder: Any, lanes: Any) -> Any:
    """The largest of the eight, if none is NaN."""
    return _halved(builder, lanes, lambda one, two: builder.select(builder.fcmp_unordered(">", one, two), one, two))
