"""Who may import whom, and what must not be loaded before it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hgde

SOURCE = Path(hgde.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

_BASE = {"geometry", "settings"}
_NUMERIC = _BASE | {"graph", "solvers", "kernels", "diffusion"}
_TRAINED = _NUMERIC | {"models", "data", "training"}
ALLOWED = {
    "settings": set(),
    "geometry": set(),
    "graph": {"geometry"},
    "solvers": {"geometry"},
    "kernels": {"geometry", "graph"},
    "data": {"graph"},
    "diffusion": {"geometry", "graph", "kernels", "solvers"},
    "models": _NUMERIC,
    "training": _NUMERIC | {"models", "data"},
    "estimators": _TRAINED,
    "report": _TRAINED | {"experiments"},
    "experiments": _TRAINED | {"report"},
    "cli": _TRAINED | {"estimators", "report", "experiments", "bench"},
}


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
            yield ("." * node.level + (node.module or "")), node.lineno
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    return list(visit(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    part = part_of(path)
    if part in ("__init__", "__main__"):
        return
    for name, line in imports(path):
        assert not name.startswith("."), f"line {line}: relative import {name}"
        if name.startswith("hgde."):
            target = name.split(".")[1]
            if part in ALLOWED:
                assert target == part or target in ALLOWED[part], f"line {line}: {part} imports {target}"
            assert part == "cli" or target != "cli", f"line {line}: only the command line knows the command line"


def loaded_after(code: str) -> set[str]:
    told = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('LOADED', *sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "COLUMNS": "100"},
    )
    return set(told.stdout.rpartition("LOADED")[2].split())


HEAVY = {"torch", "numpy", "scipy", "numba", "sklearn", "pandas", "matplotlib", "geoopt", "torch_geometric"}


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_after("import hgde") & HEAVY


def test_help_loads_nothing_heavy():
    code = "from hgde.cli.main import app\ntry:\n    app({})\nexcept SystemExit:\n    pass"
    assert not loaded_after(code.format(["--help"])) & HEAVY
    assert not loaded_after(code.format(["train", "--help"])) & HEAVY


@pytest.mark.parametrize("name", hgde.__all__)
def test_every_public_name_is_there(name):
    assert getattr(hgde, name) is not None
    assert name in dir(hgde)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = hgde.nothing
