"""Kinds of work for tests, found by the processes through ``package.module:function``."""

import os
import signal
import time
from pathlib import Path


def echo(job):
    return {"value": job.more.get("value"), "pid": os.getpid()}


def fail(job):
    raise ZeroDivisionError("on purpose")


def threads(job):
    return {"threads": os.environ["OMP_NUM_THREADS"]}


def process(job):
    time.sleep(0.2)
    return {"pid": os.getpid()}


def kill_self(job):
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(job):
    time.sleep(job.more["value"])
    return {}


def announce(job):
    path = Path(job.more["folder"]) / "pid"
    path.with_suffix(".part").write_text(str(os.getpid()))
    path.with_suffix(".part").rename(path)
    time.sleep(600)
