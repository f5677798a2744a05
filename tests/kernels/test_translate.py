"""The front end of kernels: what it understands means what it means in Python."""

import ctypes

import numpy as np
import pytest
from llvmlite import binding as llvm

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, Wholes, block, inlined
from hgde.compiler.memory import doubles, missing, obtain, offset, release
from hgde.compiler.translate import translate
from hgde.kernels.cpu.lanes import fma, larger, load, store, total, wide, zeros

LIMIT = 7
PAIR = (0.25, -3)


@inlined
def halved(x: float) -> tuple[float, float]:
    rest = x * 0.5
    return rest, rest + 1


@inlined
def counted(n: int) -> int:
    while n > 3:
        n -= 3
    return n


@block
def early(x: float, n: int) -> float:
    if n < 0:
        return -x
    if n == 0:
        return 0
    return x * n


@block
def add_one(a: Doubles, at: int) -> None:
    a[at] += 1


def whole_numbers(a: Doubles, n: Ints, x: Double, k: Int) -> None:
    a[0], a[1], a[2] = k // 3, k % 3, k // 8
    a[3], a[4] = k % 8, -k // LIMIT
    a[5], a[6] = k / 4, min(k, n[1]) + max(k, 2)
    n[0] = (k << 3) | (k ^ 5) | ~(k & 6)
    n[2] = -n[1]
    a[7] = n[2] * k + int(k > 2)
    a[8] = counted(n[1]) + n[1]


def branches(a: Doubles, n: Ints, x: Double, k: Int) -> None:
    a[0] = x if k > 2 else 1
    a[1] = (1.0 if k == 0 else 2.0) if x < 1 else 3.0
    if (k > 1 and x > 0) or k == -1:
        a[2] = 1
    elif not k:
        a[2] = 2
    else:
        a[2] = 3
    a[3], a[4] = halved(x)
    a[5] = halved(x)[1] * PAIR[0] + PAIR[1]
    a[6] = early(x, k) + early(x, -k) + early(x, 0)
    if LIMIT == 7:
        a[7] = abs(-x)
    else:
        a[7] = nowhere  # noqa: F821  # known to be left out
    # Of the other side nothing is computed, not even the address.
    a[8] = a[k + 1] if k < 3 else -1.0


def loops(a: Doubles, n: Ints, x: Double, k: Int) -> None:
    for i in range(k):
        a[i] = i * x
    for i in range(8, 2, -2):
        a[i] += i
    for i in range(1, 9, k):
        add_one(a, i)
    total, i = 0.0, 10
    while i > k:
        i -= 1
        if i % 2 == 0:
            total += i
    a[8] = total + i
    # The same name for something else, once its loop is over.
    for i in range(2):
        part = i + 1
        a[0] += part
    for i in range(2):
        part = i * 0.5
        a[1] += part


def swapped(a: Doubles, n: Ints, x: Double, k: Int) -> None:
    one, two = x, x + 1
    one, two = two, one
    a[0], a[1] = a[1], a[0]
    a[2], a[3] = one, two
    k *= 2
    a[4] = k


@block
def counted_up(a: Doubles, at: int) -> int:
    a[at] += 1
    return int(a[at])


@block
def first_above(a: Doubles, x: float, n: int) -> int:
    for i in range(n):
        if a[i] > x:
            return i
    return -1


@block
def returns_at_once(n: int) -> int:
    for i in range(n):
        return i + 5
    while n < 0:
        if n == -1:
            return 1
        else:  # noqa: RET505  # neither branch goes on
            return 2
    while True:
        n += 2
        if n > 4:
            return n


def times(factor):
    def scaled(x: float) -> float:
        return x * factor

    return scaled


threefold = times(3)


def names(a: Doubles, n: Ints, x: Double, k: Int) -> None:
    y = 5
    if k > 0:
        y = 0.5
        a[0] = y
    else:
        a[0] = y // 2
    if k > 1:
        y, a[8] = 1.5, 0
    else:
        y = x
    if k > 2:
        new, z = 2, 3
    elif k > 0:
        new, z = 3, 4
    else:
        return
    a[1], a[2], a[3] = y, new // 2, z
    for i in range(3):
        # What a loop uses for itself begins anew in each turn.
        z = i
        part = z // 2
        a[4] += part
        part = 0.25
        a[5] += part
    a[6] = threefold(z)


def signs(a: Doubles, n: Ints, x: Double, k: Int) -> None:
    a[0], a[1] = k // -3, k % -3
    a[2], a[3] = (k * 2 - 5) // (3 - n[0] * 2), (k * 2 - 5) % (3 - n[0] * 2)
    a[4], a[5] = -7 // (k * 2 + 1), -7 % (k * 2 + 1)
    a[6] = -(k > 0)
    a[7] = (k > 0) + (k > 1) * 2 - True
    a[8] = (k > 0 if x > 0 else k > 1) & (k > 2)


def effects(a: Doubles, n: Ints, x: Double, k: Int) -> None:
    # The old value and the place are taken before the right side is computed.
    a[0] += counted_up(a, 0)
    i = 1
    a[i] = counted_up(a, i)
    i, a[i] = 2, 10
    while counted_up(a, i) < 6 and counted_up(a, 3) < 7:
        a[4] += 1
    for i in range(k):
        i = i // 2
        k = 100
        a[5] += i
    for j in range(4):
        j *= 2
        a[j] += j
    a[7] = a[8] + counted_up(a, 8)
    a[6] = first_above(a, 2.5, n[0]) + 10 * returns_at_once(k)


def conditions(a: Doubles, n: Ints, x: Double, k: Int) -> None:
    a[0] = k > 0 and x > 0
    a[1] = int(not (k or x < 0))
    if k and x:
        a[2] = -1
    known = LIMIT > 3 and k > 1
    if not known or counted_up(a, 3) > 8:
        a[4] = -1
    a[5] = (a[6] if k > 1 else a[7]) if known or k == 0 else (x if k < 0 else k)


def call(function, *given, real="float64"):
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(translate(function, "entry", real, {}))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(module, machine) as engine:
        kinds = [
            ctypes.c_void_p if isinstance(one, np.ndarray)
            else (ctypes.c_double if isinstance(one, float) else ctypes.c_int64)
            for one in given
        ]  # fmt: skip
        plain = [one.ctypes.data if isinstance(one, np.ndarray) else one for one in given]
        ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address("entry"))(*plain)


KERNELS = [whole_numbers, branches, loops, swapped, names, signs, effects, conditions]
BLOCKS = ("early", "add_one", "counted_up", "first_above", "returns_at_once")


@pytest.mark.parametrize("function", KERNELS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("k", [-1, 0, 1, 3, 8])
def test_what_is_understood_means_the_same_as_in_python(function, k, monkeypatch):
    if function is loops and k < 1:
        pytest.skip("a step that is not a constant is positive")
    expected = np.arange(9.0), np.array([3, 5, 9], np.int32)
    found = tuple(part.copy() for part in expected)
    # In Python a block is its function.
    for name in BLOCKS:
        monkeypatch.setitem(function.__globals__, name, globals()[name].function)
    function(*expected, 0.75, k)
    monkeypatch.undo()
    call(function, *found, 0.75, k)
    for one, two in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, two)


def lanes(x: Reals, out: Doubles) -> None:
    sums = zeros(x)
    for k in range(0, 16, 8):
        sums = fma(load(x, k), x[1], sums)
    store(out, 0, wide(x, 0) - 1)
    out[8] = total(sums)
    out[9] = larger(x[3], 0.0)


@pytest.mark.parametrize("real", ["float32", "float64"])
def test_lanes_are_eight_numbers_of_the_kernels_dtype(real):
    x, out = np.linspace(-1, 2, 16).astype(real), np.zeros(10)
    call(lanes, x, out, real=real)
    np.testing.assert_array_equal(out[:8], x[:8].astype(np.float64) - 1)
    assert out[8] == pytest.approx((x * x[1]).sum(), rel=1e-6)
    assert out[9] == max(x[3], 0)


def memory(count: Int, n: Wholes, a: Doubles) -> None:
    own = obtain(2 * count)
    if missing(own):
        n[0] = -1
        return
    n[0] = own[0] + own[2 * count - 1]
    second = doubles(offset(own, count))
    for k in range(count):
        own[k], second[k] = n[k] << 40, 0.5 * k
    for k in range(count):
        n[k], a[k] = own[k], second[k]
    release(own)


def test_memory_comes_as_zeros_and_holds_whole_numbers_of_64_bits_and_doubles():
    n, a = np.arange(1, 6), np.full(5, np.nan)
    call(memory, 5, n, a)
    assert n.tolist() == [0, *(k << 40 for k in range(2, 6))]
    assert a.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    call(memory, 2**59, n, a)
    assert n[0] == -1


def words(n: Ints, x: Reals) -> None:
    key = np.uint32(n[0])
    n[1] = (key ^ (key >> 16)) * 0x85EBCA6B
    n[2] = int(key > np.uint32(5))
    x[0] = np.float32(0.1) * x[1]
    x[2] = 0.1 * x[1]
    # Constants follow the same rules as what is not known in advance.
    n[3] = int(np.float32(0.1) * 3.0 == np.float64(x[3]) * 3.0) + int(np.uint32(7) * 0x85EBCA6B == -key * 0x85EBCA6B)
    n[4] = -np.uint32(n[0] + 6)


def test_words_have_no_sign_and_singles_stay_single():
    n, x = np.array([-7, 0, 0, 0, 0], np.int32), np.array([0, 1 / 3, 0, 0.1], np.float32)
    call(words, n, x, real="float32")
    key = np.uint32(2**32 - 7)
    with np.errstate(over="ignore"):
        assert np.uint32(n[1]) == (key ^ (key >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    assert n[2] == 1
    assert x[0] == np.float32(0.1) * x[1]
    assert x[2] == np.float32(0.1 * np.float64(x[1]))
    assert n[3] == 2
    assert n[4] == 1
