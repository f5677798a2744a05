"""The short form of ``make fuzz``: Hypothesis draws how inputs of every kind are mangled, and shrinks what breaks."""

import shutil
import signal
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))  # the fuzzer is no part of the package

from benchmarks.fuzz import __main__ as fuzz
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


SLEEPER = """
import json, signal, sys, time
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
print("ready", flush=True)
for line in sys.stdin:
    seconds = float(line) / 1000
    time.sleep(seconds)
    print(json.dumps({"case": int(line), "kind": "sleep", "words": "accepted", "seconds": seconds}), flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="whether a process is stopped is looked for in /proc")
def test_a_case_that_hangs_is_told_from_one_that_was_stopped(monkeypatch):
    monkeypatch.setattr(fuzz, "MOST_SECONDS", 0.6)
    worker = fuzz.Worker(["-c", SLEEPER])
    assert fuzz.problems(worker.do(100, slack=0.0)) == []
    worker.process.send_signal(signal.SIGSTOP)
    threading.Timer(1.5, worker.process.send_signal, [signal.SIGCONT]).start()
    assert fuzz.problems(worker.do(100, slack=0.0)) == []
    assert fuzz.problems(worker.do(60_000, slack=0.0)) == ["hangs"]
    assert worker.process.poll() is not None, "what hangs is ended"
