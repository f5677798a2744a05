"""From Python's syntax tree to LLVM's program: what kernels may say, and what becomes of it.

Understood are assignments, also to several names at once and to entries of arrays; ``for`` over ``range``, with a
step that is positive or a constant; ``while``, ``if`` and ``x if condition else y``, of which only the branch taken is
computed; arithmetic, comparisons, ``and``, ``or``, ``not``; and calls of blocks, plain functions, instructions and the
few built-ins. They mean what they mean in Python, but for the size of numbers (:mod:`~hgde.compiler.values`).
Anything else is refused with its line. A condition that is known in advance leaves one of its branches.

A name that holds a double stays one when it is given a whole number or a single. Otherwise it takes the type of what it
is given, but nowhere where several types could be meant (:mod:`~hgde.compiler.scopes`).

Types follow from the arguments in one pass over the tree, and LLVM does all optimisation, so a kernel is translated in
some hundredths of a second. A compiler for all of Python takes seconds for the same.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from llvmlite import ir

from hgde.compiler import values
from hgde.compiler.dialect import Block, Instruction
from hgde.compiler.scopes import Names, Variable, met, parameters, refused_at, signature, tree
from hgde.compiler.values import (
    BUILT_IN,
    DOUBLE,
    SINGLE,
    TRUTH,
    VOID,
    WHOLE,
    WORD,
    KernelError,
    converted,
    written,
)

_REALS = {"float32": SINGLE, "float64": DOUBLE}
_RETURNS = {"None": VOID, "int": WHOLE, "float": DOUBLE}


def translate(function: Callable[..., None], symbol: str, real: str, known: Mapping[str, int]) -> str:
    """The program of a kernel, with one function to call, ``symbol``; ``known`` arguments are taken but not read."""
    if real not in _REALS:
        raise KernelError(f"{real} is not one of {', '.join(_REALS)}")
    kinds = {
        "Int": WHOLE, "Double": DOUBLE, "Ints": WORD.as_pointer(), "Wholes": WHOLE.as_pointer(),
        "Doubles": DOUBLE.as_pointer(), "Reals": _REALS[real].as_pointer(),
    }  # fmt: skip
    program = _Program()
    with refused_at(tree(function), function):
        given = signature(function)
        unknown = [kind for kind in given if kind not in kinds]
        if unknown:
            raise KernelError(f"arguments are annotated {', '.join(kinds)}, not {unknown[0] or 'with nothing'}")
        program.define(function, [kinds[kind] for kind in given], symbol, known)
    return str(program.module)


class _Program:
    """The functions of one kernel."""

    def __init__(self) -> None:
        self.module = ir.Module()
        self._blocks: dict[tuple[Any, ...], Any] = {}

    def block(self, function: Callable[..., Any], kinds: Sequence[Any]) -> Any:
        key = (function, *(str(kind) for kind in kinds))
        if key not in self._blocks:
            self._blocks[key] = None
            made = self.define(function, kinds, f"{function.__module__}.{function.__name__}", {})
            # A kernel as one function would take LLVM twice as long, and run no faster: blocks are whole loops.
            made.attributes.add("noinline")
            self._blocks[key] = made
        if self._blocks[key] is None:
            raise KernelError(f"{function.__name__} calls itself")
        return self._blocks[key]

    def define(self, function: Callable[..., Any], kinds: Sequence[Any], name: str, known: Mapping[str, int]) -> Any:
        definition = tree(function)
        gives = _RETURNS.get(ast.unparse(definition.returns) if definition.returns else "None")
        if gives is None:
            raise KernelError(f"{function.__name__} must give None, int or float")
        made = ir.Function(self.module, ir.FunctionType(gives, kinds), self.module.get_unique_name(name))
        entry, first = made.append_basic_block(), made.append_basic_block()
        body = _Body(self, ir.IRBuilder(entry), ir.IRBuilder(first), gives)
        arguments, names = list(made.args), [parameter.arg for parameter in parameters(function)]
        for given, value in known.items():
            arguments[names.index(given)] = value
        body.statements(definition.body, body.bound(function, arguments))
        if not body.builder.block.is_terminated:
            with refused_at(definition.body[-1], function):
                body.end()
        ir.IRBuilder(entry).branch(first)
        return made


class _Body:
    """Writes the statements of one function of the program, with those written out into it."""

    def __init__(self, program: _Program, entry: Any, builder: Any, gives: Any) -> None:
        self.program, self.entry, self.builder, self.gives = program, entry, builder, gives

    def bound(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Names:
        """The names of a function that is given arguments."""
        names, expected = Names(function), parameters(function)
        if len(expected) != len(arguments):
            raise KernelError(f"{function.__name__} takes {len(expected)} arguments, not {len(arguments)}")
        for parameter, value in zip(expected, arguments, strict=True):
            if parameter.arg in names.assigned:
                self.assign(names, parameter.arg, value)
            else:
                names.meanings[parameter.arg] = value
        return names

    def assign(self, names: Names, name: str, value: Any) -> None:
        value, known = written(value), names.meanings.get(name)
        if isinstance(known, Variable) and known.kind == DOUBLE and value.type in (WHOLE, SINGLE):
            value = converted(self.builder, value, DOUBLE)
        self.builder.store(value, names.variable(name, value.type, self.entry).place)

    def statements(self, body: Sequence[ast.stmt], names: Names) -> None:
        for statement in body:
            if self.builder.block.is_terminated:
                return
            with refused_at(statement, names.function):
                getattr(self, f"_{type(statement).__name__}", self._unknown)(statement, names)

    def end(self) -> None:
        """The end of the function, where no return precedes it."""
        if self.gives != VOID:
            raise KernelError("the end of a function that gives something is reached without a return")
        self.builder.ret_void()

    def _unknown(self, node: ast.AST, names: Names) -> Any:
        raise KernelError(f"{type(node).__name__} is not understood in kernels")

    def _Expr(self, node: ast.Expr, names: Names) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.value(node.value, names)

    def _Assign(self, node: ast.Assign, names: Names) -> None:
        value = self.value(node.value, names)
        for target in node.targets:
            self._give(target, value, names)

    def _give(self, target: ast.expr, value: Any, names: Names) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise KernelError(f"{len(target.elts)} names are not given as many values")
            for part, one in zip(target.elts, value, strict=True):
                self._give(part, one, names)
        elif isinstance(target, ast.Name):
            self.assign(names, target.id, value)
        elif isinstance(target, ast.Subscript):
            self._put(self._place(target, names), value)
        else:
            self._unknown(target, names)

    def _AugAssign(self, node: ast.AugAssign, names: Names) -> None:
        place = self._place(node.target, names) if isinstance(node.target, ast.Subscript) else None
        old = self.value(node.target, names) if place is None else self._get(place)
        new = values.arithmetic(self.builder, type(node.op).__name__, old, self.value(node.value, names))
        if place is None:
            self._give(node.target, new, names)
        else:
            self._put(place, new)

    def _For(self, node: ast.For, names: Names) -> None:
        call = node.iter
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "range" and isinstance(node.target, ast.Name)):
            raise KernelError("a loop goes over a range, with one name")
        given = [self.value(argument, names) for argument in call.args]
        if not 1 <= len(given) <= 3 or call.keywords or node.orelse:
            raise KernelError("a range has a start, a stop and a step, and its loop no else")
        start, stop, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
        if values.is_constant(step) and step == 0:
            raise KernelError("the step of a range is not zero")
        goes_down = values.is_constant(step) and step < 0
        build = self.builder
        start, stop, step = (converted(build, one, WHOLE) for one in (start, stop, step))
        count = self.entry.alloca(WHOLE)
        build.store(start, count)
        condition, body, after = (build.append_basic_block() for _ in range(3))
        build.branch(condition)
        build.position_at_end(condition)
        build.cbranch(build.icmp_signed(">" if goes_down else "<", build.load(count), stop), body, after)
        build.position_at_end(body)
        with names.loop():
            self.assign(names, node.target.id, build.load(count))
            self.statements(node.body, names)
        if not build.block.is_terminated:
            build.store(build.add(build.load(count), step, flags=["nsw"]), count)
            build.branch(condition)
        build.position_at_end(after)

    def _While(self, node: ast.While, names: Names) -> None:
        if node.orelse:
            raise KernelError("a loop has no else")
        build = self.builder
        condition, body, after = (build.append_basic_block() for _ in range(3))
        build.branch(condition)
        build.position_at_end(condition)
        with names.loop():
            test = self._condition(node.test, names)
            build.cbranch(written(test), body, after)
            build.position_at_end(body)
            self.statements(node.body, names)
        self._go_on_to(condition)
        build.position_at_end(after)
        if test is True:  # only a return leaves it
            build.unreachable()

    def _If(self, node: ast.If, names: Names) -> None:
        test = self._condition(node.test, names)
        if isinstance(test, bool):
            self.statements(node.body if test else node.orelse, names)
            return
        build = self.builder
        then, otherwise, after = (build.append_basic_block() for _ in range(3))
        build.cbranch(test, then, otherwise)
        before, ends = dict(names.meanings), list[dict[str, Any]]()
        for start, part in ((then, node.body), (otherwise, node.orelse)):
            names.meanings = dict(before)
            build.position_at_end(start)
            self.statements(part, names)
            if self._go_on_to(after):
                ends.append(names.meanings)
        build.position_at_end(after)
        if ends:
            names.meanings = met(ends[0], ends[-1])
        else:
            build.unreachable()

    def _go_on_to(self, block: Any) -> bool:
        """Whether what was just written comes to an end, and does not return."""
        if self.builder.block.is_terminated:
            return False
        self.builder.branch(block)
        return True

    def _Return(self, node: ast.Return, names: Names) -> None:
        if self.gives == VOID:
            if node.value is not None:
                raise KernelError("a function that returns something says so: -> int or -> float")
            self.builder.ret_void()
        else:
            self.builder.ret(converted(self.builder, self.value(node.value, names), self.gives))

    def value(self, node: ast.expr | None, names: Names) -> Any:
        if node is None:
            raise KernelError("a value is missing")
        return getattr(self, f"_{type(node).__name__}", self._unknown)(node, names)

    def _Constant(self, node: ast.Constant, names: Names) -> Any:
        return node.value

    def _Name(self, node: ast.Name, names: Names) -> Any:
        meaning = names.look_up(node.id)
        return self.builder.load(meaning.place) if isinstance(meaning, Variable) else meaning

    def _Attribute(self, node: ast.Attribute, names: Names) -> Any:
        owner = self.value(node.value, names)
        if not isinstance(owner, ModuleType):
            raise KernelError("only modules have attributes")
        return getattr(owner, node.attr)

    def _Tuple(self, node: ast.Tuple, names: Names) -> Any:
        return tuple(self.value(part, names) for part in node.elts)

    def _BinOp(self, node: ast.BinOp, names: Names) -> Any:
        left, right = self.value(node.left, names), self.value(node.right, names)
        return values.arithmetic(self.builder, type(node.op).__name__, left, right)

    def _UnaryOp(self, node: ast.UnaryOp, names: Names) -> Any:
        if isinstance(node.op, ast.Not):
            test = self._condition(node.operand, names)
            return not test if isinstance(test, bool) else self.builder.not_(test)
        if isinstance(node.op, ast.USub):
            return values.negative(self.builder, self.value(node.operand, names))
        if isinstance(node.op, ast.Invert):
            return values.arithmetic(self.builder, "BitXor", self.value(node.operand, names), -1)
        return self._unknown(node.op, names)

    def _Compare(self, node: ast.Compare, names: Names) -> Any:
        if len(node.ops) > 1:
            raise KernelError("comparisons are not chained")
        left, right = self.value(node.left, names), self.value(node.comparators[0], names)
        return values.comparison(self.builder, type(node.ops[0]).__name__, left, right)

    def _BoolOp(self, node: ast.BoolOp, names: Names) -> Any:
        """As a value: that of numbers would be one of them, in Python, so they are left to conditions."""
        return self._connected(node, names, self._truth_value)

    def _truth_value(self, node: ast.expr, names: Names) -> Any:
        value = self.value(node, names)
        if values.type_of(value) != TRUTH:
            raise KernelError(f"`and` and `or` give truth values: compare {ast.unparse(node)} with zero")
        return value

    def _condition(self, node: ast.expr, names: Names) -> Any:
        if isinstance(node, ast.BoolOp):
            return self._connected(node, names, self._condition)
        return values.truth(self.builder, self.value(node, names))

    def _connected(self, node: ast.BoolOp, names: Names, look: Callable[[ast.expr, Names], Any]) -> Any:
        """The second side is looked at only if the first leaves it open."""
        stops = isinstance(node.op, ast.Or)
        test = look(node.values[0], names)
        for part in node.values[1:]:
            if isinstance(test, bool):
                test = test if test is stops else look(part, names)
                continue
            build, before = self.builder, self.builder.block
            more, after = build.append_basic_block(), build.append_basic_block()
            build.cbranch(test, *((after, more) if stops else (more, after)))
            build.position_at_end(more)
            second, ended = written(look(part, names)), build.block
            build.branch(after)
            build.position_at_end(after)
            test = build.phi(TRUTH)
            test.add_incoming(TRUTH(int(stops)), before)
            test.add_incoming(second, ended)
        return test

    def _IfExp(self, node: ast.IfExp, names: Names) -> Any:
        test = self._condition(node.test, names)
        if isinstance(test, bool):
            return self.value(node.body if test else node.orelse, names)
        build = self.builder
        then, otherwise, after = (build.append_basic_block() for _ in range(3))
        build.cbranch(test, then, otherwise)
        ends = []
        for start, part in ((then, node.body), (otherwise, node.orelse)):
            build.position_at_end(start)
            ends.append((self.value(part, names), build.block))
        (one, _), (other, _) = ends
        kind = values.type_of(one)
        kind = kind if kind == values.type_of(other) else values.common(one, other)
        build.position_at_end(after)
        merged = build.phi(kind)
        for value, end in ends:
            build.position_at_end(end)
            merged.add_incoming(converted(build, value, kind), end)
            build.branch(after)
        build.position_at_end(after)
        return merged

    def _Subscript(self, node: ast.Subscript, names: Names) -> Any:
        whole = self.value(node.value, names)
        if isinstance(whole, tuple):
            return whole[self.value(node.slice, names)]
        return self._get(self._place(node, names, whole))

    def _place(self, node: ast.Subscript, names: Names, array: Any = None) -> Any:
        array = self.value(node.value, names) if array is None else array
        if not isinstance(values.type_of(array), ir.PointerType):
            raise KernelError("only arrays and tuples have entries")
        at = self.value(node.slice, names)
        if values.is_constant(at) and at < 0:
            raise KernelError("an array has no end to count back from")
        return self.builder.gep(array, [converted(self.builder, at, WHOLE)])

    def _get(self, place: Any) -> Any:
        """An entry of an array; whole numbers are stored in 32 bits and worked with in 64."""
        entry = self.builder.load(place)
        return self.builder.sext(entry, WHOLE) if entry.type == WORD else entry

    def _put(self, place: Any, value: Any) -> None:
        self.builder.store(converted(self.builder, value, place.type.pointee), place)

    def _Call(self, node: ast.Call, names: Names) -> Any:
        callee = self.value(node.func, names)
        arguments = [self.value(argument, names) for argument in node.args]
        if node.keywords:
            raise KernelError("arguments are given by their place")
        if isinstance(callee, Instruction):
            return callee.write(self.builder, *arguments)
        if isinstance(callee, Block):
            given = [written(argument) for argument in arguments]
            result = self.builder.call(self.program.block(callee.function, [one.type for one in given]), given)
            return None if result.type == VOID else result
        if callee in BUILT_IN:
            return BUILT_IN[callee](self.builder, *arguments)
        if inspect.isfunction(callee):
            return self._written_out(callee, arguments)
        raise KernelError(f"{ast.unparse(node.func)} cannot be called in kernels")

    def _written_out(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        names, body = self.bound(function, arguments), tree(function).body
        if any(isinstance(node, ast.Return) and node is not body[-1] for part in body for node in ast.walk(part)):
            raise KernelError(f"{function.__name__}, which is written out here, may return at its end only")
        last = body[-1]
        if not isinstance(last, ast.Return):
            self.statements(body, names)
            return None
        self.statements(body[:-1], names)
        with refused_at(last, function):
            return None if last.value is None else self.value(last.value, names)
