"""What kernels say about memory besides reading and writing entries of arrays."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from hgde.compiler.dialect import instruction
from hgde.compiler.values import DOUBLE, VOID, WHOLE, converted, known_function

_BYTES = ir.IntType(8).as_pointer()


@instruction
def offset(builder: Any, array: Any, at: Any) -> Any:
    """The array from place ``at`` on."""
    return builder.gep(array, [converted(builder, at, WHOLE)])


@instruction
def doubles(builder: Any, array: Any) -> Any:
    """An array of whole numbers as one of doubles, in the same place."""
    return builder.bitcast(array, DOUBLE.as_pointer())


@instruction
def obtain(builder: Any, count: Any) -> Any:
    """An array of whole numbers, all zero, to be given back by :func:`release`; look whether it is :func:`missing`."""
    calloc = known_function(builder, "calloc", _BYTES, [WHOLE, WHOLE])
    return builder.bitcast(builder.call(calloc, [converted(builder, count, WHOLE), WHOLE(8)]), WHOLE.as_pointer())


@instruction
def missing(builder: Any, array: Any) -> Any:
    """Whether there was no memory for an array."""
    return builder.icmp_unsigned("==", array, ir.Constant(array.type, None))


@instruction
def release(builder: Any, array: Any) -> None:
    builder.call(known_function(builder, "free", VOID, [_BYTES]), [builder.bitcast(array, _BYTES)])
