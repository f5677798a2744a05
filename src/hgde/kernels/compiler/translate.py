"""From Python's syntax tree to LLVM's program: what kernels may say, and what becomes of it.

Understood are assignments, also to several names at once and to entries of arrays; ``for`` over ``range``, with a
step that is positive or a constant; ``while``, ``if`` and ``x if condition else y``, of which only the branch taken is
computed; arithmetic, comparisons, ``and``, ``or``, ``not``; and calls of blocks, plain functions, instructions and the
few built-ins below. Anything else is refused with its line. A condition that is known in advance leaves one of its
branches.

A name has the type of what it was first given. It may be used again for something of another type once the loop or
branch that it was used in is over, but nowhere where both could be meant.

Types follow from the arguments in one pass over the tree, and LLVM does all optimisation, so a kernel is translated in
some hundredths of a second. A compiler for all of Python takes seconds for the same.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir

from hgde.kernels.compiler import values
from hgde.kernels.compiler.dialect import Block, Instruction
from hgde.kernels.compiler.values import DOUBLE, SINGLE, TRUTH, VOID, WHOLE, WORD, KernelError, converted, written

_RETURNS = {"None": VOID, "int": WHOLE, "float": DOUBLE}
_CONVERSIONS = {int: WHOLE, np.float32: SINGLE, np.float64: DOUBLE, np.uint32: WORD}


def translate(function: Callable[..., None], symbol: str, real: str) -> str:
    """The program of a kernel, with one function that can be called from outside, ``symbol``."""
    number = SINGLE if real == "float32" else DOUBLE
    kinds = {
        "Int": WHOLE, "Double": DOUBLE, "Ints": WORD.as_pointer(), "Doubles": DOUBLE.as_pointer(),
        "Reals": number.as_pointer(),
    }  # fmt: skip
    program = _Program()
    program.define(function, [kinds[kind] for kind in signature(function)], symbol)
    return str(program.module)


def signature(function: Callable[..., None]) -> list[str]:
    """The kinds of a kernel's arguments, as they are annotated."""
    return [ast.unparse(argument.annotation) if argument.annotation else "" for argument in _tree(function).args.args]


@cache
def _functions(path: str) -> dict[int, ast.FunctionDef]:
    """The functions of a file by the line they begin at, decorators included."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {min([node.lineno, *(mark.lineno for mark in node.decorator_list)]): node for node in found}


def _tree(function: Callable[..., Any]) -> ast.FunctionDef:
    code = function.__code__
    return _functions(code.co_filename)[code.co_firstlineno]


@cache
def _assigned(function: Callable[..., Any]) -> frozenset[str]:
    """The names that a function gives values to."""
    nodes = ast.walk(_tree(function))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


class _Program:
    """The functions of one kernel."""

    def __init__(self) -> None:
        self.module = ir.Module()
        self._blocks: dict[tuple[Any, ...], Any] = {}

    def block(self, function: Callable[..., Any], kinds: Sequence[Any]) -> Any:
        key = (function, *(str(kind) for kind in kinds))
        if key not in self._blocks:
            self._blocks[key] = self.define(function, kinds, f"{function.__module__}.{function.__name__}")
        return self._blocks[key]

    def define(self, function: Callable[..., Any], kinds: Sequence[Any], name: str) -> Any:
        tree = _tree(function)
        gives = _RETURNS.get(ast.unparse(tree.returns) if tree.returns else "None")
        if gives is None:
            raise KernelError(f"{function.__name__} must give None, int or float")
        made = ir.Function(self.module, ir.FunctionType(gives, kinds), self.module.get_unique_name(name))
        entry, first = made.append_basic_block(), made.append_basic_block()
        body = _Body(self, ir.IRBuilder(entry), ir.IRBuilder(first), gives)
        names = body.bound(function, list(made.args))
        body.statements(tree.body, names)
        body.close()
        ir.IRBuilder(entry).branch(first)
        return made


class _Variable:
    """A place on the stack, and the loops it was made in; LLVM keeps it in a register."""

    def __init__(self, place: Any, loops: tuple[int, ...]) -> None:
        self.place, self.loops = place, loops

    @property
    def kind(self) -> Any:
        return self.place.type.pointee


class _Names:
    """What names mean in one function: variables, arguments, and what its module holds."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.meanings: dict[str, Any] = {}

    def look_up(self, name: str) -> Any:
        if name in self.meanings:
            meaning = self.meanings[name]
            if meaning is None:
                raise KernelError(f"{name} could be of two types here")
            return meaning
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise KernelError(f"{name} is not known")


class _Body:
    """Writes the statements of one function of the program, with those written out into it."""

    def __init__(self, program: _Program, entry: Any, builder: Any, gives: Any) -> None:
        self.program, self.entry, self.builder, self.gives = program, entry, builder, gives
        self.loops: tuple[int, ...] = ()
        self._loops_begun = 0

    # Names.

    def bound(self, function: Callable[..., Any], arguments: Sequence[Any]) -> _Names:
        """The names of a function that is given arguments."""
        names = _Names(function)
        parameters = _tree(function).args.args
        if len(parameters) != len(arguments):
            raise KernelError(f"{function.__name__} takes {len(parameters)} arguments, not {len(arguments)}")
        for parameter, value in zip(parameters, arguments, strict=True):
            if parameter.arg in _assigned(function):
                self.assign(names, parameter.arg, value)
            else:
                names.meanings[parameter.arg] = value
        return names

    def assign(self, names: _Names, name: str, value: Any) -> None:
        value = written(value)
        known = names.meanings.get(name)
        if isinstance(known, _Variable) and known.kind != value.type:
            if known.kind == DOUBLE and value.type in (WHOLE, SINGLE):
                value = converted(self.builder, value, DOUBLE)
            elif known.loops == self.loops[: len(known.loops)] and known.loops != self.loops:
                raise KernelError(f"{name} is {known.kind} outside of this loop and cannot become {value.type}")
            else:
                known = None
        if not isinstance(known, _Variable):
            known = names.meanings[name] = _Variable(self.entry.alloca(value.type), self.loops)
        self.builder.store(value, known.place)

    def merge(self, names: _Names, *branches: dict[str, Any]) -> None:
        """Forget what a name meant that means something else after one of the branches."""
        for name, meaning in list(names.meanings.items()):
            if any(name in branch and branch[name] is not meaning for branch in branches):
                names.meanings[name] = None

    # Statements.

    def statements(self, body: Sequence[ast.stmt], names: _Names) -> None:
        for statement in body:
            if self.builder.block.is_terminated:
                return
            try:
                getattr(self, f"_{type(statement).__name__}", self._unknown)(statement, names)
            except KernelError as error:
                if error.args[0].startswith("line "):
                    raise
                where = f"line {statement.lineno} of {names.function.__code__.co_filename}"
                raise KernelError(f"{where}: {error}: {ast.unparse(statement).splitlines()[0]}") from None

    def close(self) -> None:
        if not self.builder.block.is_terminated:
            if self.gives != VOID:
                raise KernelError("the end of a function that gives something is reached without a return")
            self.builder.ret_void()

    def _unknown(self, node: ast.AST, names: _Names) -> Any:
        raise KernelError(f"{type(node).__name__} is not understood in kernels")

    def _Expr(self, node: ast.Expr, names: _Names) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.value(node.value, names)

    def _Assign(self, node: ast.Assign, names: _Names) -> None:
        value = self.value(node.value, names)
        for target in node.targets:
            self._give(target, value, names)

    def _give(self, target: ast.expr, value: Any, names: _Names) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise KernelError(f"{len(target.elts)} names are given something else")
            for part, one in zip(target.elts, value, strict=True):
                self._give(part, one, names)
        elif isinstance(target, ast.Name):
            self.assign(names, target.id, value)
        elif isinstance(target, ast.Subscript):
            self._put(self._place(target, names), value)
        else:
            self._unknown(target, names)

    def _AugAssign(self, node: ast.AugAssign, names: _Names) -> None:
        place = self._place(node.target, names) if isinstance(node.target, ast.Subscript) else None
        old = self.value(node.target, names) if place is None else self._get(place)
        new = values.arithmetic(self.builder, type(node.op).__name__, old, self.value(node.value, names))
        if place is None:
            self._give(node.target, new, names)
        else:
            self._put(place, new)

    def _For(self, node: ast.For, names: _Names) -> None:
        call = node.iter
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "range" and isinstance(node.target, ast.Name)):
            raise KernelError("a loop goes over a range, with one name")
        given = [self.value(argument, names) for argument in call.args]
        start, stop, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
        build, to = self.builder, converted(self.builder, stop, WHOLE)
        goes_down = values.is_constant(step) and step < 0
        count = self.entry.alloca(WHOLE)
        build.store(converted(build, start, WHOLE), count)
        condition, body, after = (build.append_basic_block() for _ in range(3))
        build.branch(condition)
        build.position_at_end(condition)
        build.cbranch(build.icmp_signed(">" if goes_down else "<", build.load(count), to), body, after)
        build.position_at_end(body)
        self._enter_loop()
        self.assign(names, node.target.id, build.load(count))
        self.statements(node.body, names)
        self._leave_loop()
        build.store(build.add(build.load(count), converted(build, step, WHOLE), flags=["nsw"]), count)
        build.branch(condition)
        build.position_at_end(after)

    def _While(self, node: ast.While, names: _Names) -> None:
        build = self.builder
        condition, body, after = (build.append_basic_block() for _ in range(3))
        build.branch(condition)
        build.position_at_end(condition)
        self._enter_loop()
        build.cbranch(written(self._condition(node.test, names)), body, after)
        build.position_at_end(body)
        self.statements(node.body, names)
        self._leave_loop()
        build.branch(condition)
        build.position_at_end(after)

    def _enter_loop(self) -> None:
        self._loops_begun += 1
        self.loops = (*self.loops, self._loops_begun)

    def _leave_loop(self) -> None:
        self.loops = self.loops[:-1]

    def _If(self, node: ast.If, names: _Names) -> None:
        test = self._condition(node.test, names)
        if isinstance(test, bool):
            self.statements(node.body if test else node.orelse, names)
            return
        build = self.builder
        then, otherwise, after = (build.append_basic_block() for _ in range(3))
        build.cbranch(test, then, otherwise)
        before = dict(names.meanings)
        build.position_at_end(then)
        self.statements(node.body, names)
        between = dict(names.meanings)
        one_ends = self._go_on_to(after)
        build.position_at_end(otherwise)
        self.statements(node.orelse, names)
        other_ends = self._go_on_to(after)
        build.position_at_end(after)
        self.merge(names, before, between)
        if not (one_ends or other_ends):
            build.unreachable()

    def _go_on_to(self, block: Any) -> bool:
        """Whether the branch just written comes to an end, and does not return."""
        if self.builder.block.is_terminated:
            return False
        self.builder.branch(block)
        return True

    def _Return(self, node: ast.Return, names: _Names) -> None:
        if self.gives == VOID:
            self.builder.ret_void()
        else:
            self.builder.ret(converted(self.builder, self.value(node.value, names), self.gives))

    # Expressions.

    def value(self, node: ast.expr | None, names: _Names) -> Any:
        if node is None:
            raise KernelError("a value is missing")
        return getattr(self, f"_{type(node).__name__}", self._unknown)(node, names)

    def _Constant(self, node: ast.Constant, names: _Names) -> Any:
        return node.value

    def _Name(self, node: ast.Name, names: _Names) -> Any:
        meaning = names.look_up(node.id)
        return self.builder.load(meaning.place) if isinstance(meaning, _Variable) else meaning

    def _Attribute(self, node: ast.Attribute, names: _Names) -> Any:
        return getattr(self.value(node.value, names), node.attr)

    def _Tuple(self, node: ast.Tuple, names: _Names) -> Any:
        return tuple(self.value(part, names) for part in node.elts)

    def _BinOp(self, node: ast.BinOp, names: _Names) -> Any:
        left, right = self.value(node.left, names), self.value(node.right, names)
        return values.arithmetic(self.builder, type(node.op).__name__, left, right)

    def _UnaryOp(self, node: ast.UnaryOp, names: _Names) -> Any:
        if isinstance(node.op, ast.Not):
            test = self._condition(node.operand, names)
            return not test if isinstance(test, bool) else self.builder.not_(test)
        if isinstance(node.op, ast.USub):
            return values.negative(self.builder, self.value(node.operand, names))
        return self._unknown(node.op, names)

    def _Compare(self, node: ast.Compare, names: _Names) -> Any:
        if len(node.ops) > 1:
            raise KernelError("comparisons are not chained")
        left, right = self.value(node.left, names), self.value(node.comparators[0], names)
        return values.comparison(self.builder, type(node.ops[0]).__name__, left, right)

    def _BoolOp(self, node: ast.BoolOp, names: _Names) -> Any:
        """The second side is looked at only if the first leaves it open."""
        stops = isinstance(node.op, ast.Or)
        test = self._condition(node.values[0], names)
        for part in node.values[1:]:
            if isinstance(test, bool):
                test = test if test is stops else self._condition(part, names)
                continue
            build, before = self.builder, self.builder.block
            more, after = build.append_basic_block(), build.append_basic_block()
            build.cbranch(test, *((after, more) if stops else (more, after)))
            build.position_at_end(more)
            second, ended = written(self._condition(part, names)), build.block
            build.branch(after)
            build.position_at_end(after)
            test = build.phi(TRUTH)
            test.add_incoming(TRUTH(int(stops)), before)
            test.add_incoming(second, ended)
        return test

    def _condition(self, node: ast.expr, names: _Names) -> Any:
        return values.truth(self.builder, self.value(node, names))

    def _IfExp(self, node: ast.IfExp, names: _Names) -> Any:
        test = self._condition(node.test, names)
        if isinstance(test, bool):
            return self.value(node.body if test else node.orelse, names)
        build = self.builder
        then, otherwise, after = (build.append_basic_block() for _ in range(3))
        build.cbranch(test, then, otherwise)
        ends, found = [], []
        for start, part in ((then, node.body), (otherwise, node.orelse)):
            build.position_at_end(start)
            found.append(self.value(part, names))
            ends.append(build.block)
        kind = found[0].type if _same_pointer(*found) else values.common(*found)
        result = []
        for end, one in zip(ends, found, strict=True):
            build.position_at_end(end)
            result.append(converted(build, one, kind))
            build.branch(after)
        build.position_at_end(after)
        merged = build.phi(kind)
        for one, end in zip(result, ends, strict=True):
            merged.add_incoming(one, end)
        return merged

    def _Subscript(self, node: ast.Subscript, names: _Names) -> Any:
        whole = self.value(node.value, names)
        if isinstance(whole, tuple):
            return whole[self.value(node.slice, names)]
        return self._get(self._place(node, names, whole))

    def _place(self, node: ast.Subscript, names: _Names, array: Any = None) -> Any:
        array = self.value(node.value, names) if array is None else array
        return self.builder.gep(array, [converted(self.builder, self.value(node.slice, names), WHOLE)])

    def _get(self, place: Any) -> Any:
        """An entry of an array; whole numbers are stored in 32 bits and worked with in 64."""
        entry = self.builder.load(place)
        return self.builder.sext(entry, WHOLE) if entry.type == WORD else entry

    def _put(self, place: Any, value: Any) -> None:
        self.builder.store(converted(self.builder, value, place.type.pointee), place)

    def _Call(self, node: ast.Call, names: _Names) -> Any:
        callee = self.value(node.func, names)
        arguments = [self.value(argument, names) for argument in node.args]
        if node.keywords:
            raise KernelError("arguments are given by their place")
        if isinstance(callee, Instruction):
            return callee.write(self.builder, *arguments)
        if isinstance(callee, Block):
            given = [written(argument) for argument in arguments]
            return self.builder.call(self.program.block(callee.function, [one.type for one in given]), given)
        if callee in _CONVERSIONS:
            return self._convert(arguments[0], callee)
        if callee in (min, max):
            return self._extreme(callee, *arguments)
        if callee is abs:
            return self._size(arguments[0])
        if inspect.isfunction(callee):
            return self._written_out(callee, arguments)
        raise KernelError(f"{ast.unparse(node.func)} cannot be called in kernels")

    def _convert(self, value: Any, to: Any) -> Any:
        return to(value) if values.is_constant(value) else converted(self.builder, value, _CONVERSIONS[to])

    def _extreme(self, which: Any, a: Any, b: Any) -> Any:
        if values.is_constant(a) and values.is_constant(b):
            return which(a, b)
        if values.common(a, b) != WHOLE:
            raise KernelError("min and max are of whole numbers; of others see `smaller` and `larger`")
        a, b = converted(self.builder, a, WHOLE), converted(self.builder, b, WHOLE)
        return self.builder.select(self.builder.icmp_signed("<" if which is min else ">", a, b), a, b)

    def _size(self, value: Any) -> Any:
        if values.is_constant(value):
            return abs(value)
        if value.type not in (SINGLE, DOUBLE):
            raise KernelError("abs is of doubles and singles")
        name = values.of_type("llvm.fabs", value.type)
        return self.builder.call(values.known_function(self.builder, name, value.type, [value.type]), [value])

    def _written_out(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        names = self.bound(function, arguments)
        body = _tree(function).body
        if any(isinstance(node, ast.Return) for part in body[:-1] for node in ast.walk(part)):
            raise KernelError(f"{function.__name__}, which is written out here, may return at its end only")
        if isinstance(body[-1], ast.Return):
            self.statements(body[:-1], names)
            return self.value(body[-1].value, names)
        self.statements(body, names)
        return None


def _same_pointer(a: Any, b: Any) -> bool:
    return isinstance(values.type_of(a), ir.PointerType) and values.type_of(a) == values.type_of(b)
