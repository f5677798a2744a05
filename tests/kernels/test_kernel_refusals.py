"""The front end of kernels: what it does not understand is refused in words, with its line."""

import numpy as np
import pytest

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, block, inlined
from hgde.compiler.translate import translate
from hgde.compiler.values import KernelError
from hgde.kernels.cpu.lanes import load, store

LIMIT = 7


@inlined
def halved(x: float) -> tuple[float, float]:
    return x * 0.5, x * 0.5 + 1


@block
def add_one(a: Doubles, at: int) -> None:
    a[at] += 1


@block
def calls_itself(n: int) -> int:
    return calls_itself(n - 1) if n > 0 else 0


@inlined
def leaves_early(x: float) -> float:
    if x > 0:
        return x
    return 0.0


def refused_name(a: Doubles) -> None:
    a[0] = unheard_of  # noqa: F821  # that is the point


def refused_statement(a: Doubles) -> None:
    with a:
        pass


def refused_types_in_a_loop(a: Doubles) -> None:
    x = 0
    for _ in range(3):
        x = x + 0.5
    a[0] = x


def refused_types_in_branches(a: Doubles, k: Int) -> None:
    x = 0
    if k > 0:
        x = 0.5
    a[0] = x


def refused_return(a: Doubles) -> None:
    a[0] = leaves_early(a[1])


def refused_recursion(n: Ints) -> None:
    n[0] = calls_itself(n[1])


def refused_arguments(a: Doubles) -> None:
    add_one(a)


def refused_floats(a: Doubles) -> None:
    a[0] = min(a[1], a[2])


def refused_lanes(x: Reals, out: Doubles) -> None:
    store(out, 0, load(x, 0) + load(out, 0))


def refused_iteration(a: Doubles) -> None:
    for x in a:
        x += 1


@inlined
def leaves_in_branches(x: float) -> float:
    if x > 0:
        return x
    else:  # noqa: RET505  # that is the point
        return 0.0


@inlined
def by_keyword(x: float, *, y: float) -> float:
    return x + y


@block
def cut_off(x: float) -> int:
    return x


@block
def says_nothing(x: float):
    return x


def refused_return_in_branches(a: Doubles) -> None:
    a[0] = leaves_in_branches(a[1])
    a[1] = 7


def refused_keywords(a: Doubles) -> None:
    a[0] = by_keyword(a[1])


def refused_value_without_annotation(a: Doubles) -> None:
    a[0] = says_nothing(a[1])


def refused_cut(a: Doubles) -> None:
    a[0] = cut_off(a[1])


def refused_index(a: Doubles, x: Double) -> None:
    a[0] = a[x]


def refused_end(a: Doubles) -> None:
    a[0] = a[-1]


def refused_range(a: Doubles, x: Double) -> None:
    for i in range(x):
        a[i] = 0


def refused_step(a: Doubles) -> None:
    for i in range(0, 8, 0):
        a[i] = 0


def refused_else_of_for(a: Doubles) -> None:
    for i in range(3):
        a[i] = 0
    else:
        a[0] = 1


def refused_else_of_while(a: Doubles) -> None:
    while a[0] < 3:
        a[0] += 1
    else:
        a[0] = 1


def refused_name_of_a_branch(a: Doubles, k: Int) -> None:
    if k > 0:
        x = 1
    a[0] = x


def refused_name_of_the_other_branch(a: Doubles, k: Int) -> None:
    if k > 0:
        x = 1
        a[1] = x
    else:
        a[0] = x


def refused_name_of_a_loop(a: Doubles, k: Int) -> None:
    for i in range(k):
        x = i
    a[0] = x


def refused_name_too_early(a: Doubles) -> None:
    a[0] = LIMIT  # noqa: F823  # that is the point
    LIMIT = 3  # noqa: F841  # what is tested


def refused_type_left_by_a_branch(a: Doubles, k: Int) -> None:
    for _ in range(3):
        x = 0
        while k > 0:
            x = 0.5
        a[0] = x


def refused_operand(a: Doubles, k: Int) -> None:
    a[0] = k or a[1]


def refused_size(n: Ints) -> None:
    n[0] = np.uint32(n[1]) + 0x100000000


def refused_shift(a: Doubles, k: Int) -> None:
    a[0] = k << 64


def refused_shift_of_a_negative(a: Doubles) -> None:
    a[0] = -LIMIT >> 1


def refused_division(a: Doubles, k: Int) -> None:
    a[0] = k // 0


def refused_power(a: Doubles) -> None:
    a[0] = LIMIT**2


def refused_comparison_of_lanes(x: Reals) -> None:
    if load(x, 0) > load(x, 8):
        x[0] = 0


def refused_nothing(a: Doubles) -> None:
    x = add_one(a, 1)
    a[0] = x


def refused_several(a: Doubles) -> None:
    x = halved(a[0])
    a[0] = x[1]


def refused_attribute(a: Doubles) -> None:
    a[0] = a.type


def refused_more_arguments(a: Doubles, x: Double) -> None:
    a[0] = int(x, 16)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (refused_name, "unheard_of is not known"),
        (refused_statement, "With is not understood"),
        (refused_types_in_a_loop, "x is i64 outside of this loop"),
        (refused_types_in_branches, "x could be of two types"),
        (refused_return, "may return at its end only"),
        (refused_arguments, "takes 2 arguments, not 1"),
        (refused_floats, "min and max are of whole numbers"),
        (refused_lanes, "lanes of different types"),
        (refused_iteration, "a loop goes over a range"),
        (refused_return_in_branches, "may return at its end only"),
        (refused_keywords, "arguments by place only"),
        (refused_index, "double does not become i64"),
        (refused_end, "no end to count back from"),
        (refused_range, "double does not become i64"),
        (refused_step, "step of a range is not zero"),
        (refused_else_of_for, "its loop no else"),
        (refused_else_of_while, "a loop has no else"),
        (refused_name_of_a_branch, "x has no value here, or not on every way"),
        (refused_name_of_the_other_branch, "x has no value here"),
        (refused_name_of_a_loop, "x has no value here, or not on every way"),
        (refused_name_too_early, "LIMIT has no value here"),
        (refused_type_left_by_a_branch, "x is i64 outside of this loop"),
        (refused_operand, "`and` and `or` give truth values"),
        (refused_size, "4294967296 does not fit into i32"),
        (refused_shift, "cannot be shifted by 64"),
        (refused_shift_of_a_negative, "cannot be shifted to the right"),
        (refused_division, "division by zero"),
        (refused_power, "there is no Pow of i64"),
        (refused_comparison_of_lanes, "there is no Gt of <8 x float>"),
        (refused_nothing, "is expected here, not nothing"),
        (refused_several, "is expected here, not several values"),
        (refused_attribute, "only modules have attributes"),
        (refused_more_arguments, "positional arguments"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_not_understood_is_refused_with_its_line(function, words):
    with pytest.raises(KernelError, match=words) as error:
        translate(function, "entry", "float32", {})
    line = int(str(error.value).split()[1])
    first = function.__code__.co_firstlineno
    assert first < line < first + 8
    assert __file__ in str(error.value)


def refused_annotation(a: Doubles, k: int) -> None:
    a[0] = k


def refused_defaults(a: Doubles, k: Int = 3) -> None:
    a[0] = k


def refused_result(a: Doubles) -> Doubles:
    return a


@block
def ends_without(x: float) -> float:
    while x > 0:
        x -= 1


def refused_open_end(a: Doubles) -> None:
    a[0] = ends_without(a[1])


@pytest.mark.parametrize(
    ("function", "at", "words"),
    [
        (refused_annotation, refused_annotation, "annotated Int, Double, Ints, Wholes, Doubles, Reals, not int"),
        (refused_defaults, refused_defaults, "without defaults"),
        (refused_result, refused_result, "must give None, int or float"),
        (refused_value_without_annotation, says_nothing.function, "says so: -> int or -> float"),
        (refused_cut, cut_off.function, "double does not become i64"),
        (refused_recursion, calls_itself.function, "calls_itself calls itself"),
        (refused_open_end, ends_without.function, "reached without a return"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_a_function_takes_and_gives_is_refused_where_it_is_defined(function, at, words):
    with pytest.raises(KernelError, match=words) as error:
        translate(function, "entry", "float32", {})
    first = at.__code__.co_firstlineno
    assert first <= int(str(error.value).split()[1]) < first + 4


def test_other_dtypes_are_refused():
    with pytest.raises(KernelError, match="float16 is not one of float32, float64"):
        translate(refused_name, "entry", "float16", {})
