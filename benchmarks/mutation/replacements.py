"""What each operator puts in place of what, and what is left alone."""

from __future__ import annotations

import ast

ARITHMETIC: dict[type[ast.operator], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("/",)),
    ast.Div: ("/", ("*",)),
    ast.FloorDiv: ("//", ("*",)),
    ast.Mod: ("%", ("*",)),
    ast.Pow: ("**", ("*",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
}
#: The first replacement is the opposite, the second the boundary.
COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: (r"<", (">", "<=")),
    ast.LtE: (r"<=", (">=", "<")),
    ast.Gt: (r">", ("<", ">=")),
    ast.GtE: (r">=", ("<=", ">")),
    ast.Eq: (r"==", ("!=",)),
    ast.NotEq: (r"!=", ("==",)),
    ast.Is: (r"is", ("is not",)),
    ast.IsNot: (r"is\s+not", ("is",)),
    ast.In: (r"in", ("not in",)),
    ast.NotIn: (r"not\s+in", ("in",)),
}
_PAIRS = (
    "min max, minimum maximum, fmin fmax, amin amax, argmin argmax, clamp_min clamp_max, any all, sqrt rsqrt, "
    "sum mean, zeros ones, zeros_like ones_like, new_zeros new_ones, "
    "rows indices, sinh cosh, sin cos, exp expm1, log log1p, "
    "floor ceil, expmap logmap, expmap0 logmap0, query key"
)
TWINS = {a: b for pair in _PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}
#: Twins that exist as plain functions too, not only as attributes.
PLAIN_TWINS = {"min", "max", "any", "all"}
#: Methods without arguments that can be left out.
DROPPED = {"detach", "abs", "clone"}
NUMBERS = {"Tensor", "float", "int"}
KEPT_KEYWORDS = {"device", "dtype", "strict", "flag", "choices", "repr", "exist_ok", "parents"}
#: Marks what a class's body does when it is read, whichever test happens to be the first that needs it.
BODY = " (class)"
SKIPPED_FUNCTIONS = {"__repr__", "__str__", "extra_repr"}
LOGS = {"log", "logger", "logging", "warnings"}
