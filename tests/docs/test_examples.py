"""Every public name is explained with an example, and the examples do what they say."""

import doctest
import inspect
import pkgutil
from importlib import import_module

import pytest

import hgde
from hgde.registry import Registry


def explained(name):
    value = getattr(hgde, name)
    return Registry.__doc__ if isinstance(value, Registry) else inspect.getdoc(value)


@pytest.mark.parametrize("name", hgde.__all__)
def test_every_public_name_has_an_example_that_runs(name):
    text = explained(name)
    assert text
    value = getattr(hgde, name)
    test = doctest.DocTestParser().get_doctest(text, {name: value}, name, None, 0)
    assert test.examples, f"{name} has no example in its docstring"
    before = set(hgde.METRICS.names()) if name == "metric" else set()
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    result = runner.run(test, out=said.append)
    if name == "metric":
        for added in set(hgde.METRICS.names()) - before:
            hgde.METRICS._entries.pop(added)
    assert result.failed == 0, "".join(said)


PACKAGES = [package.name for package in pkgutil.walk_packages(hgde.__path__, "hgde.") if package.ispkg]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_that_a_package_offers_is_explained(package):
    if package == "hgde.kernels.triton":
        pytest.importorskip("triton", reason="the package triton is not installed")
    module = import_module(package)
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if isinstance(vars(value).get("__doc__") if inspect.isclass(value) else None, property):
            continue  # each of its objects is explained by what it wraps
        if inspect.isclass(value) or inspect.isfunction(value):
            text = inspect.getdoc(value) or ""
            # A dataclass without words of its own is given its signature.
            assert text and not text.startswith(f"{name}("), f"{package}.{name} has no docstring"  # noqa: PT018


MODULES = ("hgde.progress", "hgde.report.callbacks", "hgde.report.command", "hgde.report.contents",
           "hgde.report.from_comparison", "hgde.report.from_tuning", "hgde.report.page", "hgde.report.projection",
           "hgde.report.projection.principal", "hgde.report.projection.horopca", "hgde.report.projection.stress",
           "hgde.report.projection.cosne", "hgde.report.projection.quality", "hgde.report.explorer",
           "hgde.report.explorer.assets", "hgde.report.explorer.payload", "hgde.experiments.demo_data",
           "hgde.geometry.models")  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_modules(name):
    result = doctest.testmod(import_module(name), report=True)
    assert result.attempted
    assert result.failed == 0
