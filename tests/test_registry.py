"""Registries: four ways to name an entry, words for a name that nothing answers to, nothing loaded by a stranger."""

import sys

import pytest

from hgde.registry import REGISTRIES, Registry, RegistryError, untrusted


@pytest.fixture
def colours():
    registry = Registry("colour", "test-colours", accepts=lambda value: isinstance(value, type))

    @registry.register("red", "crimson")
    class Red:
        """Like blood."""

    @registry.register("blue")
    class Blue:
        """Like the sky."""

    yield registry
    del REGISTRIES["test-colours"]


def test_by_name_alias_object_and_path(colours):
    red = colours.get("red")
    assert colours.get("crimson") is red
    assert colours.get(red) is red
    assert colours.get("collections:OrderedDict").__name__ == "OrderedDict"
    assert colours.names() == ["blue", "red"]
    assert colours.name_of(red) == "red"
    assert dict(colours.items())["red"] is red


def test_unknown_names_say_the_nearest(colours):
    with pytest.raises(RegistryError, match=r"unknown colour 'blu'; did you mean 'blue'\?.*hgde list test-colours"):
        colours.get("blu")
    with pytest.raises(RegistryError, match="expected a colour or its name, got int"):
        colours.get(3)
    with pytest.raises(RegistryError, match=r"there is no colour at 'no.such:Thing'"):
        colours.get("no.such:Thing")
    with pytest.raises(RegistryError, match="'math:pi' is not a colour"):
        colours.get("math:pi")


def test_two_entries_may_not_share_a_name(colours):
    with pytest.raises(RegistryError, match="two test-colours are called 'red'"):
        colours.add("red", dict)


def test_an_untrusted_file_loads_no_code(colours, tmp_path, monkeypatch):
    (tmp_path / "innocent.py").write_text("class Green: pass\nraise SystemExit('executed')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with untrusted(), pytest.raises(RegistryError, match="names code that is not loaded"):
        colours.get("innocent:Green")
    assert "innocent" not in sys.modules
    with untrusted():
        assert colours.get("collections:OrderedDict")  # what is loaded already may be named


def test_a_home_that_cannot_be_imported_fails_at_every_look(tmp_path, monkeypatch):
    """Claimed complete before it is, a registry would answer the second look with "unknown"."""
    home = tmp_path / "broken_home"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (home / "entry.py").write_text("raise ImportError('a library is missing')\n")
    (home / "_helper.py").write_text("raise SystemExit('helpers are not imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("thing", "test-broken", home=("broken_home",))
    try:
        for _ in range(2):
            with pytest.raises(ImportError, match="a library is missing"):
                registry.names()
    finally:
        del REGISTRIES["test-broken"]
