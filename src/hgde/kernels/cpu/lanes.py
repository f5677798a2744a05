"""The vector dialect in which the compiled passes are written, explained once.

A kernel is a Python function compiled by numba. Its arrays are bare pointers, indexed by one number: entry ``k`` of row
``i`` of a matrix of width ``d`` is ``x[i * d + k]``. Nothing is allocated, checked or counted, so the machine code is
what one would write in C, and compiling it is quick. Buffers for intermediate values are handed in.

A loop over a short row, written entry by entry, is not vectorised well, and the order of its sum would depend on the
machine. So the vectors are said outright. ``Lanes`` are eight numbers of one dtype:

* ``load(x, at)``: eight entries from place ``at`` on, in the array's dtype; ``wide(x, at)``: the same as doubles;
* ``store(x, at, lanes)``: write eight entries, rounded to the array's dtype;
* ``spread(number)``: eight doubles of one value; ``zeros(x)``: eight zeros of the array's dtype;
* ``widened(lanes)``: the lanes as doubles;
* ``a + b``, ``a - b``, ``a * b`` between lanes of one dtype, or lanes and a number, which takes the lanes' dtype;
* ``fma(a, b, c)``: ``a b + c`` rounded once, for lanes or numbers;
* ``total(lanes)``: their sum as a double, added in halves: always in the same order.

Rows are a multiple of :data:`LANES` long; callers pad with zeros. ``prefetch(x, at)`` asks for a cache line ahead of
time, which holds ``line(x)`` entries. Scalars of many rows or edges lie in one buffer of doubles at fixed distances
(``w[B + r]``), so that the compiler sees that they do not overlap and works on several at once.

No operation may be reordered or fused by the compiler (numba's ``fastmath`` stays off): what is written is what is
computed, so results have the same bits whatever the vector width of the machine and however the code was optimised.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

LANES = 8
_PLACES = ir.VectorType(ir.IntType(32), LANES)


class Lanes(types.Type):  # type: ignore[misc]  # numba is untyped
    """The type of eight numbers of one dtype."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


def _element(dtype: Any) -> Any:
    return ir.FloatType() if dtype == types.float32 else ir.DoubleType()


def _vector(dtype: Any) -> Any:
    return ir.VectorType(_element(dtype), LANES)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]  # numba is untyped
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector(kind.dtype))


def _function(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """An intrinsic of LLVM, declared once per module."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def _place(builder: Any, pointer: Any, at: Any, dtype: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [at]), _vector(dtype).as_pointer())


def _convert(builder: Any, value: Any, source: Any, target: Any) -> Any:
    if source == target:
        return value
    change = builder.fpext if target == types.float64 else builder.fptrunc
    return change(value, _vector(target))


@intrinsic
def load(typingctx: Any, array: Any, at: Any) -> Any:
    """``array[at : at + 8]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        dtype = signature.return_type.dtype
        return builder.load(_place(builder, args[0], args[1], dtype), align=dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, types.intp), codegen


@intrinsic
def wide(typingctx: Any, array: Any, at: Any) -> Any:
    """``array[at : at + 8]`` as doubles."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        dtype = signature.args[0].dtype
        value = builder.load(_place(builder, args[0], args[1], dtype), align=dtype.bitwidth // 8)
        return _convert(builder, value, dtype, types.float64)

    return Lanes(types.float64)(array, types.intp), codegen


@intrinsic
def store(typingctx: Any, array: Any, at: Any, lanes: Any) -> Any:
    """``array[at : at + 8] = lanes``, rounded to the array's dtype."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        dtype = signature.args[0].dtype
        value = _convert(builder, args[2], signature.args[2].dtype, dtype)
        builder.store(value, _place(builder, args[0], args[1], dtype), align=dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), codegen


@intrinsic
def widened(typingctx: Any, lanes: Any) -> Any:
    """Lanes as doubles."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _convert(builder, args[0], signature.args[0].dtype, types.float64)

    return Lanes(types.float64)(lanes), codegen


def _broadcast(builder: Any, number: Any, dtype: Any) -> Any:
    undefined = ir.Constant(_vector(dtype), ir.Undefined)
    one = builder.insert_element(undefined, number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(_PLACES, None))


@intrinsic
def spread(typingctx: Any, number: Any) -> Any:
    """A number in all eight places, as doubles."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _broadcast(builder, args[0], types.float64)

    return Lanes(types.float64)(types.float64), codegen


@intrinsic
def zeros(typingctx: Any, array: Any) -> Any:
    """Eight zeros of the array's dtype."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(_vector(signature.return_type.dtype), None)

    return Lanes(array.dtype)(array), codegen


@intrinsic
def total(typingctx: Any, lanes: Any) -> Any:
    """The sum of the eight as a double, added in halves in the lanes' own precision."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, count = args[0], LANES
        while count > 1:
            count //= 2
            halves = [
                builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(ir.IntType(32), count), list(places)))
                for places in (range(count), range(count, 2 * count))
            ]
            value = builder.fadd(*halves)
        number = builder.extract_element(value, ir.IntType(32)(0))
        return number if signature.args[0].dtype == types.float64 else builder.fpext(number, ir.DoubleType())

    return types.float64(lanes), codegen


def _as_lanes(context: Any, builder: Any, value: Any, kind: Any, dtype: Any) -> Any:
    if isinstance(kind, Lanes):
        return value
    return _broadcast(builder, context.cast(builder, value, kind, dtype), dtype)


def _common(kinds: Any) -> Any:
    """The lanes among the arguments' types, which must agree; numbers may stand beside them."""
    found = {kind for kind in kinds if isinstance(kind, Lanes)}
    known = all(isinstance(kind, Lanes | types.Float | types.Integer) for kind in kinds)
    return found.pop() if len(found) == 1 and known else None


def _number(*kinds: Any) -> Any:
    """Single precision if all are, else double."""
    return types.float32 if all(kind == types.float32 for kind in kinds) else types.float64


@intrinsic
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """``a b + c`` rounded once: the same bits on every machine, in one instruction on those that have it."""
    lanes = _common((a, b, c))
    dtype = lanes.dtype if lanes is not None else _number(a, b, c)
    result = lanes if lanes is not None else dtype

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = zip(args, signature.args, strict=True)
        if lanes is None:
            return builder.fma(*(context.cast(builder, value, kind, dtype) for value, kind in kinds))
        vector = _vector(dtype)
        function = _function(builder, f"llvm.fma.v{LANES}f{dtype.bitwidth}", vector, [vector] * 3)
        return builder.call(function, [_as_lanes(context, builder, value, kind, dtype) for value, kind in kinds])

    return result(a, b, c), codegen


def _define(operation: Any, instruction: str) -> None:
    @type_callable(operation)
    def typed(context: Any) -> Any:
        def typer(a: Any, b: Any) -> Any:
            return _common((a, b))

        return typer

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        dtype = signature.return_type.dtype
        pairs = zip(args, signature.args, strict=True)
        sides = [_as_lanes(context, builder, value, kind, dtype) for value, kind in pairs]
        return getattr(builder, instruction)(*sides)

    for kinds in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lower_builtin(operation, *kinds)(lower)


_define(operator.add, "fadd")
_define(operator.iadd, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.imul, "fmul")


@intrinsic
def prefetch(typingctx: Any, array: Any, at: Any) -> Any:
    """Ask for the cache line of ``array[at]`` before it is needed: neighbours' rows lie anywhere in memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        flag, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        function = _function(builder, "llvm.prefetch.p0", ir.VoidType(), [byte, flag, flag, flag])
        pointer = builder.bitcast(builder.gep(args[0], [args[1]]), byte)
        builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def line(typingctx: Any, array: Any) -> Any:
    """How many entries of an array a cache line of 64 bytes holds."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.IntType(64)(512 // signature.args[0].dtype.bitwidth)

    return types.intp(array), codegen


@intrinsic
def root(typingctx: Any, x: Any) -> Any:
    """The square root, correctly rounded."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.sqrt", [args[0].type]), [args[0]])

    return _number(x)(_number(x)), codegen


def _choice(test: str) -> Any:
    @intrinsic
    def choose(typingctx: Any, a: Any, b: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            # Unordered: a NaN in the first argument wins the comparison, so that it does not pass unseen.
            return builder.select(builder.fcmp_unordered(test, args[0], args[1]), args[0], args[1])

        kind = _number(a, b)
        return kind(kind, kind), codegen

    return choose


larger = _choice(">")
"""The larger of two numbers; NaN if the first is NaN."""
smaller = _choice("<")
"""The smaller of two numbers; NaN if the first is NaN."""
