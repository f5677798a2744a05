"""The short form of ``make kills``: a dozen real kills; what is gone on with ends as if nothing had happened."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the harness is no part of the package

from benchmarks.kills.harness import attack, make_template

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="orphans are looked for in /proc"),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills") / "template"
    make_template(folder)
    return folder


@pytest.mark.parametrize(("name", "kills"), [("train", 5), ("compare", 3), ("report", 2)])
def test_killed_at_random_moments(name, kills, template):
    tally = attack(name, kills, template.parent, template, seed=1)
    assert tally.kills >= 1
    assert tally.is_clean, tally
