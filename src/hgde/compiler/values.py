"""Values of kernels and what can be done with them: types, conversions, arithmetic.

A value is a constant of Python, folded as long as it meets constants, or a value of LLVM, of one of these types:

    whole numbers of 64 bits, with a sign        doubles, singles
    words: whole numbers of 32 bits, without     eight of either, as lanes
    truth values                                 pointers to any of these

A whole number beside a double or a single becomes a double, and so does a single beside a double; a number beside lanes
becomes lanes of their type. Python's own constants are doubles and whole numbers; numpy's are singles and words.
Constants are folded by the same rules. Nothing is reordered.

Whole numbers are not Python's in two ways: they wrap at 64 bits (words at 32), and ``>>`` shifts in zeros, since many
processors have no vectors of the other shift. A double becomes a whole number by ``int`` only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir

LANES = 8
WHOLE, WORD, TRUTH = ir.IntType(64), ir.IntType(32), ir.IntType(1)
DOUBLE, SINGLE = ir.DoubleType(), ir.FloatType()
VOID = ir.VoidType()
_REAL = (SINGLE, DOUBLE)
_NUMBERS = {WHOLE: int, WORD: np.uint32, DOUBLE: float, SINGLE: np.float32}
_RANGES = {WHOLE: (-(2**63), 2**63 - 1), WORD: (-(2**31), 2**32 - 1)}  # entries of arrays have signs, words have none
_FOLDED = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "Mod": operator.mod, "BitAnd": operator.and_, "BitOr": operator.or_,
    "BitXor": operator.xor, "LShift": operator.lshift, "RShift": operator.rshift,
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge,
}  # fmt: skip
_ON_REALS = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}
_ON_WHOLE = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "BitAnd": "and_", "BitOr": "or_", "BitXor": "xor", "LShift": "shl",
    "RShift": "lshr",
}  # fmt: skip
_SIGNS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}


class KernelError(TypeError):
    """A kernel says something that the dialect has no meaning for."""

    has_line = False


def known_function(builder: Any, name: str, gives: Any, takes: list[Any]) -> Any:
    """A function that LLVM or the C library has, declared once in a program."""
    declared = builder.module.globals.get(name)
    return declared or ir.Function(builder.module, ir.FunctionType(gives, takes), name)


def of_type(name: str, kind: Any) -> str:
    """The name of LLVM's function for a type of number or lanes."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    return f"{name}.{f'v{LANES}' if element is not kind else ''}{'f32' if element == SINGLE else 'f64'}"


def is_constant(value: Any) -> bool:
    return isinstance(value, int | float | np.float32 | np.uint32)


def is_lanes(value: Any) -> bool:
    return isinstance(type_of(value), ir.VectorType)


def lanes_of(element: Any) -> Any:
    """The type of eight numbers."""
    return ir.VectorType(element, LANES)


def type_of(value: Any) -> Any:
    """The type that a value has, or that a constant takes when it meets no other."""
    if isinstance(value, ir.Value):
        return value.type
    if not is_constant(value):
        what = {type(None): "nothing", tuple: "several values"}.get(type(value), f"{value!r}")
        raise KernelError(f"a number, lanes or an array is expected here, not {what}")
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, np.float32):
        return SINGLE
    if isinstance(value, np.uint32):
        return WORD
    return DOUBLE if isinstance(value, float) else WHOLE


def written(value: Any) -> Any:
    """A value that instructions take."""
    kind = type_of(value)
    return _constant(value, kind) if is_constant(value) else value


def _constant(value: Any, kind: Any) -> Any:
    if kind in _REAL:
        return ir.Constant(kind, float(value))
    least, most = _RANGES.get(kind, (0, 1))
    if not least <= value <= most:
        raise KernelError(f"{value} does not fit into {kind}")
    return ir.Constant(kind, int(value))


def converted(builder: Any, value: Any, kind: Any) -> Any:
    """A number as one of another type, where that can be done without being asked for."""
    if is_constant(value) and (kind in _REAL or (kind in (WHOLE, WORD) and type_of(value) not in _REAL)):
        return _constant(value, kind)
    value = written(value)
    given = value.type
    if given == kind:
        return value
    if isinstance(kind, ir.VectorType):
        return _lanes(builder, value, kind)
    change = {
        (SINGLE, DOUBLE): builder.fpext, (DOUBLE, SINGLE): builder.fptrunc, (WHOLE, DOUBLE): builder.sitofp,
        (WHOLE, SINGLE): builder.sitofp, (TRUTH, WHOLE): builder.zext, (TRUTH, DOUBLE): builder.uitofp,
        (TRUTH, SINGLE): builder.uitofp, (WHOLE, WORD): builder.trunc, (WORD, WHOLE): builder.zext,
    }.get((given, kind))  # fmt: skip
    if change is None:
        raise KernelError(f"{given} does not become {kind}")
    return change(value, kind)


def _lanes(builder: Any, value: Any, kind: Any) -> Any:
    if isinstance(value.type, ir.VectorType):
        change = builder.fpext if kind.element == DOUBLE else builder.fptrunc
        return change(value, kind)
    number = converted(builder, value, kind.element)
    undefined = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(undefined, number, WORD(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(WORD, LANES), None))


def common(*values: Any) -> Any:
    """The type in which values meet."""
    kinds = [type_of(value) for value in values]
    vectors = {str(kind): kind for kind in kinds if isinstance(kind, ir.VectorType)}
    if len(vectors) > 1:
        raise KernelError(f"lanes of different types meet: {', '.join(vectors)}")
    if vectors:
        return next(iter(vectors.values()))
    if any(kind in _REAL for kind in kinds):
        return SINGLE if all(kind == SINGLE for kind in kinds) else DOUBLE
    if WORD in kinds:
        mixed = [value for value in values if type_of(value) != WORD and not is_constant(value)]
        if mixed:
            raise KernelError("a word meets a whole number of 64 bits; convert one of them")
        return WORD
    if all(kind in (WHOLE, TRUTH) for kind in kinds):
        return WHOLE
    raise KernelError(f"{' and '.join(str(kind) for kind in kinds)} have no type in common")


def arithmetic(builder: Any, name: str, a: Any, b: Any) -> Any:
    """``a op b``; ``name`` is that of Python's syntax tree."""
    kind = common(a, b)
    if name in ("LShift", "RShift") and is_constant(b) and not 0 <= b < getattr(kind, "width", 0):
        raise KernelError(f"{kind} cannot be shifted by {b}")
    if is_constant(a) and is_constant(b):
        return _fold(name, a, b, kind)
    if name == "Div" and kind in (WHOLE, WORD):
        kind = DOUBLE
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    known = _ON_REALS if element in _REAL else _ON_WHOLE
    if name in known:
        return getattr(builder, known[name])(converted(builder, a, kind), converted(builder, b, kind))
    if kind == WHOLE and name in ("FloorDiv", "Mod"):
        return _floored(builder, name, converted(builder, a, kind), b)
    raise KernelError(f"there is no {name} of {kind}")


def _fold(name: str, a: Any, b: Any, kind: Any) -> Any:
    if name not in _FOLDED:
        raise KernelError(f"there is no {name} of {kind}")
    if name == "RShift" and a < 0:
        raise KernelError(f"{a} cannot be shifted to the right: zeros are shifted in")
    with np.errstate(over="ignore"):  # words wrap
        return _FOLDED[name](_NUMBERS[kind](a), _NUMBERS[kind](b))


def _floored(builder: Any, name: str, a: Any, b: Any) -> Any:
    """Quotient or rest as in Python, whose rest has the divisor's sign."""
    if is_constant(b) and b == 0:
        raise KernelError("division by zero")
    if is_constant(b) and b > 0 and b & (b - 1) == 0:
        return builder.ashr(a, WHOLE(b.bit_length() - 1)) if name == "FloorDiv" else builder.and_(a, WHOLE(b - 1))
    divisor, zero = converted(builder, b, WHOLE), WHOLE(0)
    rest = builder.srem(a, divisor)
    signs_differ = builder.icmp_signed("<", builder.xor(rest, divisor), zero)
    off = builder.and_(signs_differ, builder.icmp_signed("!=", rest, zero))
    if name == "Mod":
        return builder.select(off, builder.add(rest, divisor), rest)
    quotient = builder.sdiv(a, divisor)
    return builder.select(off, builder.sub(quotient, WHOLE(1)), quotient)


def comparison(builder: Any, name: str, a: Any, b: Any) -> Any:
    kind = common(a, b)
    if name not in _SIGNS or isinstance(kind, ir.VectorType):
        raise KernelError(f"there is no {name} of {kind}")
    if is_constant(a) and is_constant(b):
        return bool(_fold(name, a, b, kind))
    sign, a, b = _SIGNS[name], converted(builder, a, kind), converted(builder, b, kind)
    if kind in _REAL:
        # NaN equals nothing, itself included, and is neither more nor less.
        return builder.fcmp_unordered(sign, a, b) if sign == "!=" else builder.fcmp_ordered(sign, a, b)
    return builder.icmp_unsigned(sign, a, b) if kind == WORD else builder.icmp_signed(sign, a, b)


def negative(builder: Any, value: Any) -> Any:
    if is_constant(value):
        return -value
    kind = common(value, value)  # truth values count as whole numbers
    value = converted(builder, value, kind)
    return builder.neg(value) if kind in (WHOLE, WORD) else builder.fneg(value)


def truth(builder: Any, value: Any) -> Any:
    """A value as the condition of a branch."""
    if is_constant(value):
        return bool(value)
    return value if type_of(value) == TRUTH else comparison(builder, "NotEq", value, 0)


def _cut(builder: Any, value: Any) -> Any:
    """``int``: a number without what is behind the point."""
    if is_constant(value):
        return int(value)
    return builder.fptosi(value, WHOLE) if type_of(value) in _REAL else converted(builder, value, WHOLE)


def _rounded(to: Any, builder: Any, value: Any) -> Any:
    """numpy's types: a number as a single, a double or a word."""
    return to(value) if is_constant(value) else converted(builder, value, type_of(to(0)))


def _extreme(which: Any, builder: Any, a: Any, b: Any) -> Any:
    if is_constant(a) and is_constant(b):
        return which(a, b)
    if common(a, b) != WHOLE:
        raise KernelError("min and max are of whole numbers; of others see `smaller` and `larger`")
    a, b = converted(builder, a, WHOLE), converted(builder, b, WHOLE)
    return builder.select(builder.icmp_signed("<" if which is min else ">", a, b), a, b)


def _size(builder: Any, value: Any) -> Any:
    if is_constant(value):
        return abs(value)
    kind = type_of(value)
    if kind not in _REAL:
        raise KernelError("abs is of doubles and singles")
    return builder.call(known_function(builder, of_type("llvm.fabs", kind), kind, [kind]), [value])


#: What kernels may call besides functions of their own: ``write(builder, *arguments)`` for each.
BUILT_IN: dict[Any, Callable[..., Any]] = {
    int: _cut, abs: _size, **{which: partial(_extreme, which) for which in (min, max)},
    **{to: partial(_rounded, to) for to in (np.float32, np.float64, np.uint32)},
}  # fmt: skip
