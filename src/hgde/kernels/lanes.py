"""Eight numbers at a time, said outright: ``load``, ``store``, ``+ - *``, ``total``.

A loop over a short row written with indices is not vectorised well: the compiler has to prove that rows do not overlap,
and unrolls for rows far longer than ours. A ``Lanes`` value is a vector register (or two); arithmetic with a number
spreads the number. Rows must be a multiple of :data:`LANES` long; callers pad with zeros.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

LANES = 8
_FLAGS = ("reassoc", "contract", "arcp", "nsz")


class Lanes(types.Type):  # type: ignore[misc]  # numba is untyped
    """The type of eight numbers of one dtype."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


def _vector(dtype: Any) -> Any:
    return ir.VectorType(ir.FloatType() if dtype == types.float32 else ir.DoubleType(), LANES)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]  # numba is untyped
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector(kind.dtype))


def _place(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, int]:
    """Pointer to eight consecutive entries of a contiguous matrix, and how an entry is aligned."""
    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, args[0])
    place = cgutils.get_item_pointer(context, builder, kind, array, args[1:3], wraparound=False)
    return builder.bitcast(place, _vector(kind.dtype).as_pointer()), kind.dtype.bitwidth // 8


@intrinsic
def load(typingctx: Any, array: Any, row: Any, column: Any) -> Any:
    """``array[row, column : column + 8]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, align = _place(context, builder, signature, args)
        return builder.load(place, align=align)

    return Lanes(array.dtype)(array, types.intp, types.intp), codegen


@intrinsic
def store(typingctx: Any, array: Any, row: Any, column: Any, lanes: Any) -> Any:
    """``array[row, column : column + 8] = lanes``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, align = _place(context, builder, signature, args)
        builder.store(args[3], place, align=align)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, lanes), codegen


@intrinsic
def zeros(typingctx: Any, array: Any) -> Any:
    """Eight zeros of the array's dtype."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(_vector(signature.return_type.dtype), None)

    return Lanes(array.dtype)(array), codegen


@intrinsic
def total(typingctx: Any, lanes: Any) -> Any:
    """The sum of the eight, added in halves."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, count = args[0], LANES
        while count > 1:
            count //= 2
            halves = [
                builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(ir.IntType(32), count), list(places)))
                for places in (range(count), range(count, 2 * count))
            ]
            value = builder.fadd(*halves, flags=_FLAGS)
        return builder.extract_element(value, ir.IntType(32)(0))

    return lanes.dtype(lanes), codegen


def _spread(context: Any, builder: Any, value: Any, kind: Any, lanes: Any) -> Any:
    """A number of any dtype in all eight places."""
    if isinstance(kind, Lanes):
        return value
    number = context.cast(builder, value, kind, lanes.dtype)
    vector = _vector(lanes.dtype)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


def _define(operation: Any, instruction: str) -> None:
    class Template(AbstractTemplate):  # type: ignore[misc]  # numba is untyped
        def generic(self, args: Any, kws: Any) -> Any:
            found = [kind for kind in args if isinstance(kind, Lanes)]
            if len(args) == 2 and found and all(isinstance(kind, Lanes | types.Float) for kind in args):
                return signature(found[0], *args)
            return None

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pairs = zip(args, signature.args, strict=True)
        sides = [_spread(context, builder, value, kind, signature.return_type) for value, kind in pairs]
        return getattr(builder, instruction)(*sides, flags=_FLAGS)

    infer_global(operation)(Template)
    for kinds in ((Lanes, Lanes), (Lanes, types.Float), (types.Float, Lanes)):
        lower_builtin(operation, *kinds)(lower)


_define(operator.add, "fadd")
_define(operator.iadd, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.imul, "fmul")
