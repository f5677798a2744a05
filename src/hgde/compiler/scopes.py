"""Where functions are written, and what names mean inside them.

A name means a *variable*, if the function gives values to it anywhere, or else a parameter, a name of an enclosing
function, of its module, or of Python. What a variable means is followed statement by statement:

* after branches it means what it means in both of them, and after a loop, which may never run, what it meant before;
* where that leaves nothing, because one way gave it no value or one of another type, reading it is refused;
* inside a loop it keeps the type that it came in with, since the next turn finds what the last one left.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hgde.compiler.values import KernelError


@cache
def _functions(path: str) -> dict[int, ast.FunctionDef]:
    """The functions of a file by the line they begin at, decorators included."""
    defined, pending = [], list[ast.AST](ast.parse(Path(path).read_text(encoding="utf-8")).body)
    while pending:  # statements only: most of a tree is expressions, which define nothing
        node = pending.pop()
        pending += [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
        if isinstance(node, ast.FunctionDef):
            defined.append(node)
    return {min([node.lineno, *(mark.lineno for mark in node.decorator_list)]): node for node in defined}


def tree(function: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax tree of a function."""
    code = function.__code__
    defined = _functions(code.co_filename).get(code.co_firstlineno)
    if defined is None:
        raise KernelError(f"{function.__name__} is not written with def")
    return defined


def parameters(function: Callable[..., Any]) -> list[ast.arg]:
    """What a function takes, in order."""
    given = tree(function).args
    if given.posonlyargs or given.vararg or given.kwonlyargs or given.kwarg or given.defaults:
        raise KernelError(f"{function.__name__} takes arguments by place only, without defaults")
    return given.args


def signature(function: Callable[..., None]) -> list[str]:
    """The kinds of a kernel's arguments, as they are annotated."""
    return [ast.unparse(argument.annotation) if argument.annotation else "" for argument in parameters(function)]


@cache
def _assigned(function: Callable[..., Any]) -> frozenset[str]:
    """The names that a function gives values to."""
    nodes = ast.walk(tree(function))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


@contextmanager
def refused_at(node: ast.stmt, function: Callable[..., Any]) -> Iterator[None]:
    """Adds the line of a statement to what goes wrong while it is translated."""
    try:
        yield
    except Exception as error:
        if isinstance(error, KernelError) and error.has_line:
            raise
        text = f"def {node.name}" if isinstance(node, ast.FunctionDef) else ast.unparse(node).splitlines()[0]
        refusal = KernelError(f"line {node.lineno} of {function.__code__.co_filename}: {error}: {text}")
        refusal.has_line = True
        raise refusal from (None if isinstance(error, KernelError) else error)


@dataclass(frozen=True)
class Variable:
    """A place on the stack, which LLVM keeps in a register."""

    place: Any

    @property
    def kind(self) -> Any:
        return self.place.type.pointee


class Names:
    """What names mean at the statement being translated, in one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.assigned = function, _assigned(function)
        #: A variable or the value of a parameter; nothing (``None``) where it could be of two types.
        self.meanings: dict[str, Any] = {}
        self._outside: dict[str, Any] = {}  # the meanings on entering the innermost loop
        self._variables: dict[tuple[str, str], Variable] = {}

    def look_up(self, name: str) -> Any:
        if name in self.meanings:
            meaning = self.meanings[name]
            if meaning is None:
                raise KernelError(f"{name} could be of two types here")
            return meaning
        if name in self.assigned:
            raise KernelError(f"{name} has no value here, or not on every way that leads here")
        code, cells = self.function.__code__, self.function.__closure__ or ()
        enclosing = {free: cell.cell_contents for free, cell in zip(code.co_freevars, cells, strict=True)}
        for known in (enclosing, self.function.__globals__, vars(builtins)):
            if name in known:
                return known[name]
        raise KernelError(f"{name} is not known")

    def variable(self, name: str, kind: Any, entry: Any) -> Variable:
        """The variable for a name that is given something of a type; ``entry`` makes its place."""
        outside = self._outside.get(name)
        if isinstance(outside, Variable) and outside.kind != kind:
            raise KernelError(f"{name} is {outside.kind} outside of this loop and cannot become {kind}")
        # One for each type: branches that give a name values of the same type mean the same variable.
        key = name, str(kind)
        if key not in self._variables:
            self._variables[key] = Variable(entry.alloca(kind))
        self.meanings[name] = self._variables[key]
        return self._variables[key]

    @contextmanager
    def loop(self) -> Iterator[None]:
        """The statements of a loop."""
        before, outside = dict(self.meanings), self._outside
        self._outside = before
        yield
        self.meanings, self._outside = before, outside


def met(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What names mean where two branches meet."""
    return {name: meaning if other[name] is meaning else None for name, meaning in one.items() if name in other}
