"""What is silenced or skipped says why, on the same line; the library speaks through logging."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [path for folder in ("src", "tests", "benchmarks", "docs") for path in sorted((ROOT / folder).rglob("*.py"))]
SILENCED = re.compile(r"#\s*(?:noqa|type: ignore|pragma)\b[^#]*$")
SKIPS = {"skip": 0, "xfail": 0, "importorskip": 2, "skipif": 1}
"""Calls of pytest that leave a test out, and how many arguments come before the reason."""


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "docs"])
def test_silenced_checks_have_reasons(folder):
    for path in (path for path in FILES if path.is_relative_to(ROOT / folder)):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            assert path == Path(__file__) or not SILENCED.search(line), f"{path}:{number} gives no reason: {line}"


def test_skipped_tests_have_reasons():
    for path in (path for path in FILES if path.is_relative_to(ROOT / "tests")):
        text = path.read_text(encoding="utf-8")
        if not any(f".{name}(" in text for name in SKIPS):  # to parse everything takes long
            continue
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if name in SKIPS and ast.unparse(call.func).startswith("pytest."):
                given = len(call.args) > SKIPS[name] or any(word.arg == "reason" for word in call.keywords)
                assert given, f"{path}:{call.lineno} gives no reason"


def test_the_library_does_not_print():
    for path in (path for path in FILES if path.is_relative_to(ROOT / "src")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "print(" in text else ():
            prints = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            assert not prints, f"{path}:{node.lineno} prints; use logging, or typer in a command"
