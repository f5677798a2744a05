"""What the README shows is what happens: its Python runs, the extras and versions it names are those of the package."""

import re
import tomllib
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
PAGES = [(ROOT / "README.md").read_text(encoding="utf-8"), (ROOT / "docs" / "index.md").read_text(encoding="utf-8")]


def test_its_python_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGES[0], flags=re.DOTALL)
    assert "cross_val_score" in blocks[0]
    # The same calls with models that learn for an epoch.
    code = "\n".join(blocks).replace("HGDEClassifier()", 'HGDEClassifier(preset="none", epochs=1)')
    edges = np.array([np.arange(20), (np.arange(20) + 1) % 20])
    space = {"X": np.eye(20), "y": np.arange(20) // 10, "edges": edges}
    exec(compile(code, "README.md", "exec"), space)
    assert space["model"].predict(space["X"]).shape == (20,)
    assert space["solution"].states.shape == (2, 100, 2)


def test_versions_and_extras_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)[1]
    for page in PAGES:
        assert re.findall(r"torch==(\d+(?:\.\d+)+)", page) == [pinned]
    rows = re.findall(r"^\| (`.*`) \| .* \|$", PAGES[1].partition("| extra |")[2], flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == set(project["optional-dependencies"])
