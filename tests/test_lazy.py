"""Names imported when first used: each is found, all are listed, an unknown one is refused."""

import importlib

import pytest

PACKAGES = ["hgde", "hgde.data", "hgde.kernels"]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_of_a_package_is_there_and_listed(name):
    package = importlib.import_module(name)
    assert package.__all__ == sorted(set(package.__all__))
    for known in package.__all__:
        assert getattr(package, known) is not None
    assert {*package.__all__, "__doc__"} <= set(dir(package))


@pytest.mark.parametrize("name", PACKAGES)
def test_an_unknown_name_is_refused_like_any_modules(name):
    package = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'no_such_name'"):
        package.__getattr__("no_such_name")
