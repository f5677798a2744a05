"""The language in which kernels are written: a small part of Python, with marks for what a function is.

A *kernel* is what is called from outside; its annotations are its signature:

    Int      a whole number             Ints     pointer to 32-bit whole numbers
    Double   a double                   Wholes   pointer to 64-bit whole numbers
                                        Doubles  pointer to doubles
    Reals    pointer to numbers of the kernel's dtype: there is one object for float32 and one for float64

It is made of *blocks*, functions of their own in the machine code, of plain functions, which are written out where they
are called (marked :func:`inlined` where they serve nothing else), and of *instructions*, which say in LLVM's words what
Python cannot. Blocks and plain functions are compiled for whatever types they are given; the annotations of their
arguments are for readers. :mod:`~hgde.compiler.translate` says which Python is understood, and
:mod:`~hgde.kernels.cpu.lanes` how vectors are written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Int: TypeAlias = int
Double: TypeAlias = float
Ints: TypeAlias = Any
Wholes: TypeAlias = Any
Doubles: TypeAlias = Any
Reals: TypeAlias = Any


def kernel(function: Callable[..., None]) -> Callable[..., None]:
    """Mark a function as a kernel; it is compiled when it is first called for."""
    return function


def inlined(function: Callable[..., Any]) -> Any:
    """Mark a function that is written out where it is called. It may return at its end only."""
    return function


@dataclass(frozen=True)
class Block:
    """A function that machine code calls: compiled once for each kernel and the types it is given."""

    function: Callable[..., Any]


def block(function: Callable[..., Any]) -> Any:
    """A building block; its return annotation (``None``, ``int`` or ``float``) says what it gives."""
    return Block(function)


@dataclass(frozen=True)
class Instruction:
    """What Python cannot say: ``write(builder, *arguments)`` says it in LLVM's words and returns a value or nothing."""

    write: Callable[..., Any]


def instruction(write: Callable[..., Any]) -> Any:
    """Mark a function that takes LLVM's builder and values, and writes instructions."""
    return Instruction(write)
