"""The examples of docs/solvers.md run."""

import re
from pathlib import Path

import pytest

from hgde.solvers import SOLVERS, Status

PAGE = Path(__file__).resolve().parents[2] / "docs" / "solvers.md"


@pytest.fixture
def registry_restored():
    before = set(SOLVERS.names())
    yield
    for name in set(SOLVERS.names()) - before:
        del SOLVERS._entries[name]


def test_the_examples_run(registry_restored):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    assert names["solution"].status is Status.EVENT
    assert names["solution"].times[-1] == pytest.approx(0.6931, abs=1e-4)
    assert {"ralston", "damped"} <= set(SOLVERS.names())
