"""Every tutorial runs as a script and has what its page is made of."""

import runpy
import tempfile
from pathlib import Path

import pytest

from hgde.registry import REGISTRIES

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.py"))


def test_there_are_tutorials():
    assert {path.stem for path in TUTORIALS} >= {
        "own_graph", "links", "choosing_a_solver", "flow_matching", "own_diffusivity", "pyg_model",
        "larger_than_memory",
    }  # fmt: skip


@pytest.fixture
def registries():
    """What a tutorial registers is gone when it ends."""
    before = {name: dict(registry._entries) for name, registry in REGISTRIES.items()}
    yield
    for name, registry in REGISTRIES.items():
        for added in set(registry._entries) - set(before.get(name, {})):
            if name in before and registry._entries[added].__module__ == "__main__":
                del registry._entries[added]


@pytest.mark.slow  # make docs-test runs them
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_runs(path, tmp_path, monkeypatch, capsys, registries):
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""# ')
    assert "# %%" in text
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()
