"""Every public name is explained with an example, and the examples do what they say.

Public are the names that ``import hgde`` gives, those that a package lists in ``__all__``, what registries hold, and
what the documentation imports.
"""

import ast
import doctest
import inspect
import io
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import hgde
from hgde.registry import REGISTRIES, Registry

ROOT = Path(__file__).parents[2]
PACKAGES = ["hgde", *(package.name for package in pkgutil.walk_packages(hgde.__path__, "hgde.") if package.ispkg)]
NEEDS_TRITON = "hgde.kernels.triton"


def offered(package):
    module = import_module(package)
    return [(name, getattr(module, name)) for name in getattr(module, "__all__", ())]


def public_names():
    """``(where it is offered, object)``, each object once; constants and aliases of types have no docstring."""
    found = {}
    for package in PACKAGES:
        if package == NEEDS_TRITON:
            continue
        for name, value in offered(package):
            if isinstance(value, Registry):
                for entry_name, entry in value.items():
                    if getattr(entry, "title", None) is None:  # a data set is explained by its title
                        found.setdefault(id(entry), (f"{package}.{name}: {entry_name}", entry))
            elif inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(id(value), (f"{package}.{name}", value))
    for name, value in shown_names():
        found.setdefault(id(value), (name, value))
    return sorted(found.values(), key=lambda pair: pair[0])


def shown_names():
    """What the pages of the documentation import, whether or not a package lists it."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = [
        block for page in pages for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]
    blocks += [path.read_text("utf-8") for path in sorted((ROOT / "docs" / "tutorials").glob("*.py"))]
    for node in (node for block in blocks for node in ast.walk(ast.parse(block))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hgde"):
            for name in (alias.name for alias in node.names):
                try:
                    value = getattr(import_module(node.module), name)
                except ImportError:  # of an extra that is not installed
                    continue
                if inspect.isclass(value) or inspect.isfunction(value):
                    yield f"{node.module}.{name}", value


PUBLIC = public_names()


@pytest.fixture
def registries():
    """What an example registers is gone when it ends."""
    before = {name: (registry.names(), dict(registry._entries))[1] for name, registry in REGISTRIES.items()}
    yield
    for name, entries in before.items():
        REGISTRIES[name]._entries.clear()
        REGISTRIES[name]._entries.update(entries)


def test_registries_hold_public_names():
    names = [name for name, _ in PUBLIC]
    assert "hgde.MODELS: gcn" in names
    assert "hgde.solvers.Tableau" in names
    assert len(names) > 200


@pytest.mark.parametrize(("name", "value"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_every_public_name_has_an_example_that_runs(name, value, registries, tmp_path, monkeypatch):
    """An example can be copied: it knows nothing but the name it explains."""
    text = inspect.cleandoc(value.__doc__ or "")
    own = getattr(value, "function", value).__name__
    # A dataclass without words of its own is given its signature.
    assert text, f"{name} has no docstring"
    assert not text.startswith(f"{own}("), f"{name} has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {own: value, "__name__": "__main__"}, name, None, 0)
    assert test.examples, f"{name} has no example in its docstring"
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.write)
    assert result.failed == 0, said.getvalue()


def test_names_that_need_triton_have_examples():
    pytest.importorskip("triton", reason="the package triton is not installed")
    for name, value in offered(NEEDS_TRITON):
        assert ">>>" in value.__doc__, f"{name} has no example in its docstring"


MODULES = ("hgde.progress", "hgde.report.callbacks", "hgde.report.command", "hgde.report.contents",
           "hgde.report.from_comparison", "hgde.report.from_tuning", "hgde.report.page", "hgde.report.projection",
           "hgde.report.explorer", "hgde.experiments.demo_data", "hgde.geometry.models")  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_modules(name):
    result = doctest.testmod(import_module(name), report=True)
    assert result.attempted
    assert result.failed == 0
