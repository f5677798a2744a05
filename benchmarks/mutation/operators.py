"""What is changed: every place of a source file where one of the operators below applies.

A mutant is one small replacement of bytes, found on the syntax tree and applied to the text, so that everything else of
the file, line numbers included, stays as it was. Not touched: annotations, decorators, docstrings, words of errors and
of logging, ``assert`` (there for the type checker), ``__repr__`` and its kin, and arguments that only say where or how
a tensor is kept (``device``, ``dtype``, ``strict`` of ``zip``).
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from dataclasses import dataclass

from benchmarks.mutation.replacements import (
    ARITHMETIC,
    BODY,
    COMPARISONS,
    DROPPED,
    KEPT_KEYWORDS,
    LOGS,
    NUMBERS,
    PLAIN_TWINS,
    SKIPPED_FUNCTIONS,
    TWINS,
)


@dataclass(frozen=True)
class Mutant:
    """One replacement in one file. ``key`` does not change when lines above it do.

    ``scope`` is a digest of the function it is in, or of the class, or of the file where it is in neither.
    """

    path: str
    function: str
    operator: str
    line: int
    start: int
    end: int
    replacement: bytes
    before: str
    after: str
    key: str
    scope: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.replacement + source[self.end :]


def mutants(path: str, source: bytes) -> list[Mutant]:
    """All mutants of a file; ``path`` is relative to the package."""
    finder = _Finder(source)
    tree = ast.parse(source)
    finder.visit(tree)
    spans = _scopes(source, tree)
    made: list[Mutant] = []
    repeats: Counter[tuple[str, ...]] = Counter()
    for edit in dict.fromkeys(finder.edits):
        before, after = _lines(source, edit)
        what = (path, edit.function, edit.operator, before, after)
        repeats[what] += 1
        key = hashlib.sha256("\0".join((*what, str(repeats[what]))).encode()).hexdigest()[:12]
        line = source.count(b"\n", 0, edit.start) + 1
        place = (line, edit.start, edit.end, edit.replacement)
        scope = _scope(source, spans, edit.start)
        made.append(Mutant(path, edit.function, edit.operator, *place, before, after, key, scope))
    return made


def scope_at(source: bytes, start: int) -> str:
    """The scope of a mutant that begins at a byte."""
    return _scope(source, _scopes(source, ast.parse(source)), start)


def _scopes(source: bytes, tree: ast.Module) -> list[tuple[int, int]]:
    """Where functions are, those inside of others left out, and then where classes are."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    functions: list[tuple[int, int]] = []
    classes: list[tuple[int, int]] = []

    def look(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert node.end_lineno is not None
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                span = starts[first - 1], starts[node.end_lineno]
                if isinstance(node, ast.FunctionDef):
                    functions.append(span)
                else:
                    classes.append(span)
                    look(node.body)

    look(tree.body)
    return functions + classes


def _scope(source: bytes, spans: list[tuple[int, int]], start: int) -> str:
    low, high = next(((a, b) for a, b in spans if a <= start < b), (0, len(source)))
    return hashlib.sha256(source[low:high]).hexdigest()[:16]


def is_valid(mutant: Mutant, source: bytes) -> bool:
    """Whether a mutant is a program at all; too slow to ask of those that are not drawn."""
    try:
        ast.parse(mutant.apply(source))
    except SyntaxError:
        return False
    return True


@dataclass(frozen=True)
class _Edit:
    function: str
    operator: str
    start: int
    end: int
    replacement: bytes


def _lines(source: bytes, edit: _Edit) -> tuple[str, str]:
    """The lines an edit touches, before and after, without their indentation."""
    low = source.rfind(b"\n", 0, edit.start) + 1
    high = source.find(b"\n", edit.end)
    high = len(source) if high < 0 else high
    before = source[low:high]
    after = source[low : edit.start] + edit.replacement + source[edit.end : high]
    one, two = (" ".join(text.decode().split()) for text in (before, after))
    return one, two


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.edits: list[_Edit] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._scope: list[str] = []
        self._kinds: list[dict[str, str]] = [{}]
        self._returns: list[str] = [""]

    # places

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _add(self, operator: str, start: int, end: int, replacement: str) -> None:
        function = ".".join(self._scope).replace(".<locals>.<locals>", ".<locals>")
        if self._scope and len(self._returns) == 1:
            function += BODY
        self.edits.append(_Edit(function, operator, start, end, replacement.encode()))

    def _replace(self, operator: str, node: ast.expr | ast.stmt, replacement: str) -> None:
        self._add(operator, *self._span(node), replacement)

    def _between(self, operator: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Replace the symbol that stands between two expressions; parentheses and line breaks may be there too."""
        start, end = self._span(left)[1], self._span(right)[0]
        match = re.search(old, self.source[start:end].decode())
        if match:
            self._add(operator, start + match.start(), start + match.end(), new)

    # what is left alone

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Import(self, node: ast.Import) -> None: ...

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.BinOp) and not self._scope and isinstance(node.value.op, ast.BitOr):
            return  # an alias of types
        if any(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets) and self._inside():
            self._replace("statement", node, "pass")
        self.visit(node.value)

    def _inside(self) -> bool:
        """Whether this is inside a function that is not a constructor, where assignments are what makes the object."""
        return bool(self._scope) and self._scope[-1] not in ("__init__", "__post_init__")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    # scopes

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in SKIPPED_FUNCTIONS or node.name == "__init_subclass__":
            return
        # Defaults are evaluated outside of the function.
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.visit(default)
        known = {
            a.arg: ast.unparse(a.annotation) for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.annotation
        }
        self._scope.append(node.name)
        self._kinds.append({**self._kinds[-1], **known})
        self._returns.append(ast.unparse(node.returns) if node.returns is not None else "")
        self._scope.append("<locals>")
        self._body(node.body)
        self._scope.pop()
        self._returns.pop()
        self._kinds.pop()
        self._scope.pop()

    def _body(self, body: list[ast.stmt]) -> None:
        # Inside a function the scope ends in <locals>, which belongs to what is defined in it only.
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                self.visit(statement)
            else:
                self._scope.pop()
                self.visit(statement)
                self._scope.append("<locals>")

    # statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring, or `...`
        call = node.value
        if isinstance(call, ast.Call):
            name = ast.unparse(call.func)
            if name.split(".")[0] in LOGS or name == "super().__init__":
                return
        if not isinstance(node.value, ast.Yield):
            self._replace("statement", node, "pass")
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace("statement", node, "pass")
        symbols = ARITHMETIC.get(type(node.op))
        if symbols is not None:
            for new in symbols[1]:
                self._between("arithmetic", node.target, node.value, re.escape(symbols[0] + "="), new + "=")
        self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        if node.exc is not None:
            self._replace("statement", node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace("statement", node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace("statement", node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        kind, text = self._returns[-1], self._text(node.value)
        if kind == "bool":
            self._replace("return", node.value, f"not ({text})")
        elif kind in NUMBERS:
            self._replace("return", node.value, f"2 * ({text})")
        elif kind.endswith("| None") and text != "None":
            self._replace("return", node.value, "None")
        self.visit(node.value)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if ast.unparse(item.context_expr) == "torch.no_grad()":
                self._replace("gradient", item.context_expr, "torch.enable_grad()")
        self.generic_visit(node)

    # expressions

    def _negate(self, test: ast.expr) -> None:
        # `not x` and single comparisons have mutants of their own that say the same.
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return
        self._replace("negation", test, f"not ({self._text(test)})")

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace("negation", node, f"bool({self._text(node.operand)})")
        elif isinstance(node.op, ast.USub) and ast.unparse(node.operand) != "1":
            self._replace("sign", node, self._text(node.operand))
        elif isinstance(node.op, ast.Invert):
            self._replace("negation", node, self._text(node.operand))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("boolean", left, right, rf"\b{old}\b", new)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.BitOr) and _is_type(node.left):
            return
        symbols = ARITHMETIC.get(type(node.op))
        joins_words = isinstance(node.left, ast.Constant | ast.JoinedStr | ast.List) and not _is_number(node.left)
        if symbols is not None and not joins_words:
            for new in symbols[1]:
                self._between("arithmetic", node.left, node.right, re.escape(symbols[0]), new)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        before = node.left
        for op, after in zip(node.ops, node.comparators, strict=True):
            old, several = COMPARISONS[type(op)]
            for new in several:
                boundary = len(several) == 2 and new == several[1]
                self._between("boundary" if boundary else "comparison", before, after, old, new)
            before = after
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace("constant", node, str(not value))
        elif isinstance(value, int | float):
            for new in dict.fromkeys((value + 1, 2 * value)):
                if new != value:
                    self._replace("constant", node, repr(new))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in ("rows", "indices", "query", "key") and isinstance(node.ctx, ast.Load):
            self._rename(node)
        self.visit(node.value)

    def _rename(self, node: ast.Attribute) -> None:
        end = self._span(node)[1]
        self._add("twin", end - len(node.attr), end, TWINS[node.attr])

    def visit_Call(self, node: ast.Call) -> None:
        func = node.func
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Name) and func.value.id in LOGS:
                return
            if func.attr in TWINS and func.attr not in ("rows", "indices", "query", "key"):
                self._rename(func)
            if func.attr in DROPPED and not node.args:
                self._replace("gradient" if func.attr == "detach" else "dropped", node, self._text(func.value))
            self.visit(func.value)
        elif isinstance(func, ast.Name) and func.id in PLAIN_TWINS:
            self._replace("twin", func, TWINS[func.id])
        elif not isinstance(func, ast.Name):
            self.visit(func)
        if isinstance(func, ast.Name) and func.id in ("TypeVar", "cast", "isinstance", "issubclass", "Registry"):
            return
        self._swap_arguments(node)
        self._drop_keywords(node)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg not in KEPT_KEYWORDS:
                self.visit(keyword.value)

    def _swap_arguments(self, node: ast.Call) -> None:
        """Neighbouring positional names that are both annotated with one type, or both not annotated."""
        kinds = self._kinds[-1]
        for one, two in zip(node.args, node.args[1:], strict=False):
            if not (isinstance(one, ast.Name | ast.Attribute) and isinstance(two, ast.Name | ast.Attribute)):
                continue
            known = [kinds.get(self._text(n)) for n in (one, two)]
            if self._text(one) == self._text(two) or known[0] != known[1]:
                continue
            middle = self.source[self._span(one)[1] : self._span(two)[0]].decode()
            start, end = self._span(one)[0], self._span(two)[1]
            self._add("arguments", start, end, self._text(two) + middle + self._text(one))

    def _drop_keywords(self, node: ast.Call) -> None:
        # Fields of settings and of dataclasses have keywords for the declaration, not for a computation.
        if isinstance(node.func, ast.Name) and node.func.id in ("setting", "choice", "section", "field"):
            return
        parts: list[ast.expr] = [*node.args, *(k.value for k in node.keywords)]
        for place, keyword in enumerate(node.keywords, start=len(node.args)):
            if keyword.arg is None or keyword.arg in KEPT_KEYWORDS or place == 0:
                continue
            start, end = self._span(parts[place - 1])[1], self._span(keyword.value)[1]
            gap = self.source[start : self._span(keyword.value)[0]]
            if gap.count(b",") == 1 and b")" not in gap and b"]" not in gap:
                self._add("keyword", start, end, "")


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_type(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id[:1].isupper()) or ast.unparse(node) in (
        "int",
        "str",
        "float",
        "list",
    )
