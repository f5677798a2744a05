"""A rank that hears nothing of another one says so on standard error, through logging, and ends."""

import json
import subprocess
import sys

import pytest

# Each case in a process of its own, forked from one that has imported the module, and of the package no more than that:
# to import all of it is most of what the cases cost.
RANKS = """
import json, os, sys, tempfile, threading, time, types
import hgde
package = sys.modules["hgde.distributed"] = types.ModuleType("hgde.distributed")
package.__path__ = [os.path.join(folder, "distributed") for folder in hgde.__path__]
from hgde.distributed import heartbeat

class Silent:
    def add(self, name, amount):
        return 0

class Closed:
    def add(self, name, amount):
        raise RuntimeError("closed")

class Slow:
    calls = 0
    def add(self, name, amount):
        self.calls += 1
        return self.calls // 6  # the other one counts, but not at every look

def wait_for(store):
    heartbeat.PERIOD, heartbeat.SILENCE = 0.05, 0.3
    heartbeat.Heartbeat(store, rank=0, size=2)
    threading.Event().wait(60)  # as in a collective that never ends

def silent():
    wait_for(Silent())

def closed():
    wait_for(Closed())

def stopped():
    heartbeat.PERIOD, heartbeat.SILENCE = 0.05, 0.5
    began, clock = time.monotonic(), time.monotonic
    time.monotonic = lambda: clock() + (1000 if clock() - began > 0.3 else 0)
    heartbeat.Heartbeat(Slow(), rank=0, size=2)
    time.sleep(1)
    os._exit(0)

def start(case):
    said = {name: tempfile.TemporaryFile("w+") for name in ("stdout", "stderr")}
    process = os.fork()
    if process == 0:
        for number, name in enumerate(said, 1):
            os.dup2(said[name].fileno(), number)
        case()
        os._exit(1)
    return process, said

def end(process, said):
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    for file in said.values():
        file.seek(0)
    return {"code": code, **{name: file.read() for name, file in said.items()}}

cases = [(case.__name__, *start(case)) for case in (silent, closed, stopped)]
print(json.dumps({name: end(process, said) for name, process, said in cases}))
"""


@pytest.fixture(scope="module")
def ends():
    """How each case ended: its exit code, and what it said."""
    done = subprocess.run([sys.executable, "-c", RANKS], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("silent", "rank 1 has given no sign of life"),
        ("closed", "the process that holds the ranks' common store is gone"),
    ],
)
def test_silence_ends_the_process_with_words(case, words, ends):
    assert ends[case]["code"] == 3, ends[case]["stderr"]
    assert f"error: rank 0 stops: {words}" in ends[case]["stderr"]
    assert "--resume" in ends[case]["stderr"]
    assert ends[case]["stdout"] == ""


def test_time_in_which_a_process_was_stopped_is_no_silence(ends):
    assert ends["stopped"]["code"] == 0, ends["stopped"]["stderr"]
