"""The short form of ``make fuzz``: Hypothesis draws how inputs of every kind are mangled, and shrinks what breaks."""

import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))  # the fuzzer is no part of the package

from benchmarks.fuzz.mangle import CANARY
from benchmarks.fuzz.samples import make_samples
from benchmarks.fuzz.targets import KINDS, run_case

CASES = 12


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    make_samples(folder / "samples")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_mangled_inputs(kind, place, monkeypatch):
    """Refused with words or used; nothing executed, no number accepted that is not finite."""
    mark = place / "mark"
    (place / f"{CANARY}.py").write_text(f"open({str(mark)!r}, 'w').close()\nThing = None\n")
    monkeypatch.syspath_prepend(place)

    @seed(0)
    @settings(max_examples=CASES, deadline=10_000, database=None, suppress_health_check=list(HealthCheck))
    @given(random=st.randoms(use_true_random=False), number=st.integers(0, 11))
    def one(random, number):
        folder = place / "case"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        words = run_case(kind, number, place / "samples", folder, mark, random)
        assert len(words.splitlines()) == 1
        assert len(words) < 1000
        assert not mark.exists()
        assert CANARY not in sys.modules

    one()
