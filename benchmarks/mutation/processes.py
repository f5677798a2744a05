"""Processes: a warm parent that has imported torch once, and children that import the package from an overlay.

The parent never imports :mod:`hgde`. A child is forked for every mutant, imports the changed package from a copy in a
temporary folder, and forks again for every folder of tests, because helpers of different folders share names. The work
tree is only read. Kernels are out of scope and stored by the content of their sources, so all copies share the compiled
ones; everything else that the package would store goes to the temporary folder.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "hgde"
TESTS = ROOT / "tests"
_WARM = (
    "torch", "torch.optim.swa_utils", "torch.utils.checkpoint", "numpy", "scipy.sparse", "scipy.optimize",
    "scipy.stats", "pandas", "geoopt", "sklearn.linear_model",
    "sklearn.neighbors", "sklearn.metrics", "pytest", "hypothesis",
    "hypothesis.strategies", "safetensors.torch", "llvmlite.binding", "torch._dynamo", "torchdiffeq",
    "torch_geometric.data", "filelock",
)  # fmt: skip

#: Exit status of a child whose own code failed; tests cannot end in it, they are caught.
_OWN_FAULT = 86


def warm_up() -> None:
    """Import what tests need and mutants cannot change."""
    for name in _WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "hgde" in sys.modules:
        raise RuntimeError("the parent imported hgde; its children would not see mutants")


@dataclass(frozen=True)
class Overlay:
    """A copy of the package whose files can be exchanged."""

    folder: Path

    @property
    def package(self) -> Path:
        return self.folder / "src" / "hgde"

    def sources(self, packages: tuple[str, ...]) -> dict[str, bytes]:
        """The files of some packages as they were when the copy was made, by path."""
        files = sorted(file for name in packages for file in (self.package / name).rglob("*.py"))
        return {file.relative_to(self.package).as_posix(): file.read_bytes() for file in files}

    @contextlib.contextmanager
    def changed(self, path: str, content: bytes, stamp: int) -> Iterator[None]:
        """One file exchanged for a while. ``stamp`` differs per mutant: stored byte code goes by time and size."""
        target = self.package / path
        original, times = target.read_bytes(), target.stat()
        try:
            target.write_bytes(content)
            os.utime(target, (1_000_000_000 + stamp, 1_000_000_000 + stamp))
            yield
        finally:
            target.write_bytes(original)
            os.utime(target, (times.st_atime, times.st_mtime))


@contextlib.contextmanager
def overlay() -> Iterator[Overlay]:
    with tempfile.TemporaryDirectory(prefix="hgde-mutation-") as name:
        folder = Path(name)
        shutil.copytree(SOURCE, folder / "src" / "hgde", ignore=shutil.ignore_patterns("__pycache__"))
        user = os.environ.get("HGDE_CACHE") or str(
            Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "hgde"
        )
        kernels = Path(user) / "kernels"
        kernels.mkdir(parents=True, exist_ok=True)
        (folder / "cache").mkdir()
        (folder / "cache" / "kernels").symlink_to(kernels)
        yield Overlay(folder)


def enter(place: Overlay) -> None:
    """Let this process, and those it starts, import the package from the overlay."""
    sys.path[:] = [str(place.folder / "src"), *(p for p in sys.path if not p.endswith("/src"))]
    os.environ["PYTHONPATH"] = str(place.folder / "src")
    os.environ["HGDE_CACHE"] = str(place.folder / "cache")
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(place.folder / "hypothesis")
    os.chdir(ROOT)
    importlib.invalidate_caches()


def call(work: Callable[[], Any], log: Path, cpu: float | None = None, wall: float = 3600.0) -> tuple[str, Any]:
    """Run ``work`` in a forked process group: ``("done", value)``, ``("timeout", None)`` or ``("died", why)``.

    The value travels as JSON. Whatever is printed goes to ``log``. ``cpu`` limits the seconds it works, however busy
    the machine is; ``wall`` is for what waits and never works.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(work, write, log, cpu)
    os.close(write)
    os.set_blocking(read, False)
    deadline, received = time.monotonic() + wall, b""
    status: int | None = None
    while status is None and time.monotonic() < deadline:
        received += _available(read)
        done, code = os.waitpid(pid, os.WNOHANG)
        status = code if done else None
        if status is None:
            time.sleep(0.02)
    if status is None:
        # The child leads a group of its own: this ends what its tests started, and nothing else.
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    received += _available(read)
    os.close(read)
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return "timeout", None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _OWN_FAULT:
        raise RuntimeError(f"a child of the harness failed; {log} ends with the reason")
    if not received:
        return "died", f"status {status}"
    return "done", json.loads(received)


def _available(read: int) -> bytes:
    received = b""
    with contextlib.suppress(BlockingIOError):
        while part := os.read(read, 1 << 16):
            received += part
    return received


def _child(work: Callable[[], Any], write: int, log: Path, cpu: float | None) -> None:
    code = _OWN_FAULT
    try:
        os.setpgid(0, 0)
        if cpu is not None:
            # The soft limit alone: the hard one is inherited and could not be raised again.
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(cpu), resource.getrlimit(resource.RLIMIT_CPU)[1]))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(output, stream)
        value = json.dumps(work()).encode()
        while value:
            value = value[os.write(write, value) :]
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
