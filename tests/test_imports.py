"""Who may import whom, and what must not be loaded before it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hgde

SOURCE = Path(hgde.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

_BASE = {"files", "registry", "sections", "randomness", "progress", "spelling", "lazy"}
_NUMERIC = _BASE | {"geometry", "graph", "solvers", "kernels", "diffusion", "compiler"}
_LEARNED = _NUMERIC | {"data", "models", "tasks", "training"}
_USED = _LEARNED | {"pipeline"}
ALLOWED = {
    "files": set(),
    "lazy": set(),
    "spelling": set(),
    "registry": {"spelling"},
    "sections": {"registry", "spelling"},
    "randomness": set(),
    "progress": set(),
    "geometry": _BASE,
    "compiler": _BASE,
    "graph": _BASE | {"geometry", "compiler"},
    "solvers": _BASE | {"geometry"},
    "kernels": _BASE | {"geometry", "graph", "compiler"},
    "data": _BASE | {"graph"},
    "diffusion": _BASE | {"geometry", "graph", "kernels", "solvers"},
    "models": _NUMERIC,
    "tasks": _NUMERIC | {"data", "models"},
    "training": _NUMERIC | {"models", "tasks"},
    "pipeline": _LEARNED,
    "report": _USED,
    "estimators": _USED,
    "experiments": _USED | {"report", "estimators"},
    "bench": _USED,
    "distributed": _USED,
    "cli": _USED | {"estimators", "report", "experiments", "bench", "distributed"},
}
"""Part of the package, and the parts it may import: one direction, no way back."""


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path):
    """Every module a file imports when it runs, those only a type checker reads left out."""

    def visit(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names if not alias.name.startswith("__")]
            names = names if node.module == "hgde" else [""]
            yield from ((f"{'.' * node.level}{node.module or ''}.{name}".rstrip("."), node.lineno) for name in names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            # A module named by text is imported as well.
            yield from (
                (text.value.partition(":")[0], node.lineno)
                for text in node.args
                if isinstance(text, ast.Constant) and isinstance(text.value, str)
            )
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    return list(visit(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_go_one_way(part):
    for path in (path for path in MODULES if part_of(path) == part):
        for name, line in imports(path):
            place = f"{path.relative_to(SOURCE)}, line {line}"
            assert not name.startswith("."), f"{place}: relative import {name}"
            if name.startswith("hgde."):
                target = name.split(".")[1]
                assert target == part or target in ALLOWED[part], f"{place}: {part} imports {target}"


def test_there_is_no_way_back():
    """The table above has no circle, so that the parts can be read in one order."""
    order: list[str] = []
    while len(order) < len(ALLOWED):
        ready = [part for part in ALLOWED if part not in order and ALLOWED[part] <= set(order)]
        assert ready, f"a circle among {set(ALLOWED) - set(order)}"
        order += ready


def test_every_part_is_in_the_table():
    assert {part_of(path) for path in MODULES} - {"__init__", "__main__", "py.typed"} == set(ALLOWED)


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('LOADED', *sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "COLUMNS": "100"},
    )
    return set(done.stdout.rpartition("LOADED")[2].split())


HEAVY = {"torch", "numpy", "scipy", "llvmlite", "sklearn", "pandas", "matplotlib", "geoopt", "torch_geometric"}


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_after("import hgde") & HEAVY


def test_kernels_are_asked_for_before_torch_is_loaded():
    assert not loaded_after("from hgde.experiments.demo_kernels import begin_to_compile") & HEAVY


def test_help_loads_nothing_heavy():
    code = "from hgde.cli.main import app\ntry:\n    app({})\nexcept SystemExit:\n    pass"
    assert not loaded_after(code.format(["--help"])) & HEAVY
    assert not loaded_after(code.format(["--version"])) & HEAVY


@pytest.mark.parametrize("name", hgde.__all__)
def test_every_public_name_is_there(name):
    assert getattr(hgde, name) is not None
    assert name in dir(hgde)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = hgde.nothing
