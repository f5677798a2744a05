"""A rank that hears nothing of another one says so on standard error, through logging, and ends."""

import subprocess
import sys

import pytest

ALONE = """
import threading
from hgde.distributed import heartbeat

heartbeat.PERIOD, heartbeat.SILENCE = 0.05, 0.3

class Store:
    def add(self, name, amount):
        {answer}

heartbeat.Heartbeat(Store(), rank=0, size=2)
threading.Event().wait(60)  # as in a collective that never ends
"""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("return 0", "rank 1 has given no sign of life"),
        ("raise RuntimeError('closed')", "the process that holds the ranks' common store is gone"),
    ],
)
def test_silence_ends_the_process_with_words(answer, words):
    code = ALONE.format(answer=answer)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 3, done.stderr
    assert f"error: rank 0 stops: {words}" in done.stderr
    assert "--resume" in done.stderr
    assert done.stdout == ""


STOPPED = """
import os, threading, time
from hgde.distributed import heartbeat

heartbeat.PERIOD, heartbeat.SILENCE = 0.05, 0.5

class Store:
    calls = 0
    def add(self, name, amount):
        self.calls += 1
        return self.calls // 6  # the other one counts, but not at every look

began, clock = time.monotonic(), time.monotonic
time.monotonic = lambda: clock() + (1000 if clock() - began > 0.3 else 0)
heartbeat.Heartbeat(Store(), rank=0, size=2)
time.sleep(1)
os._exit(0)
"""


def test_time_in_which_a_process_was_stopped_is_no_silence():
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
