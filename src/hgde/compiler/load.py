"""Where compiled kernels come from: memory, the folder of stored objects, or worker processes that compile them.

Kernels that are needed soon can be asked for ahead (:func:`prepare`); up to four workers compile side by side. Objects
are stored under ``$HGDE_CACHE`` (else ``hgde`` in the user's cache folder), in a folder named by everything they depend
on, so an object is never used after a change. Where nothing can be written, kernels live in memory, with one warning.

Torch is not needed here: a command can have its kernels compiled while it loads its libraries.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

from hgde import files
from hgde.compiler import build as compiler
from hgde.compiler.haste import QUICK, is_hasty
from hgde.compiler.jobs import Kernel

log = logging.getLogger("hgde.kernels")

Key = tuple[str, str]
#: Seconds after which a worker without work is stopped.
_PATIENCE = 3.0
_MOST_WORKERS = 4

_lock = threading.RLock()
_ready: dict[Key, Kernel] = {}
_awaited: dict[Key, Future[tuple[str, bytes]]] = {}
_waiting: dict[Key, int] = {}  # and how urgent: 0 is awaited now
_arrival = threading.Condition(_lock)
_workers = 0
_processes: WeakSet[subprocess.Popen[bytes]] = WeakSet()
_warned = False
_jit: Any = None
_linked: list[Any] = []


def cache_folder() -> Path:
    """Where objects are stored."""
    return files.private_folder(files.cache_folder(), "kernels") / compiler.fingerprint()


def function(name: str, real: str) -> Kernel:
    """The kernel ``name`` for ``real`` ``"float32"`` or ``"float64"``, compiled if need be."""
    key = (name, real) if not is_hasty() else _in_haste((name, real))
    found = _ready.get(key)
    return found if found is not None else _obtain(key)


def prepare(names: Sequence[str], dtype: Any) -> None:
    """Begin to compile those kernels that are neither in memory nor stored, without waiting for them."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        return
    real = str(dtype).removeprefix("torch.")
    for name in names:
        key = (name, real) if not is_hasty() else _in_haste((name, real))
        if key in _ready:
            continue
        with _lock:
            if key not in _ready and key not in _awaited and not os.path.exists(_path(key)):
                _ask(key, urgent=False)


def _in_haste(key: Key) -> Key:
    """The kernel itself where it is at hand, else the one that is made in half the time."""
    quick = (f"{key[0]}@{QUICK}", key[1])
    if key in _ready or "@" in key[0]:
        return key
    if quick in _ready or quick in _awaited:
        return quick
    return key if key in _awaited or os.path.exists(_path(key)) else quick


def _obtain(key: Key) -> Kernel:
    with _lock:
        if key in _ready:
            return _ready[key]
        future = _awaited.get(key)
        if key in _waiting:
            _waiting[key] = 0
        stored = _stored(key) if future is None else None
        if future is None and stored is None:
            future = _ask(key, urgent=True)
        elif future is not None and not future.done():
            _hire(_cores())
    if stored is None:
        assert future is not None
        stored = future.result()
    with _lock:
        if key not in _ready:
            _ready[key] = _link(key, *stored)
            _awaited.pop(key, None)
        return _ready[key]


def _link(key: Key, kinds: str, code: bytes) -> Kernel:
    import llvmlite.binding as llvm

    global _jit
    if _jit is None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _jit = llvm.create_lljit_compiler()
    symbol = compiler.symbol(*key)
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(symbol)
    tracker = library.link(_jit, f"{symbol}_{len(_linked)}")
    _linked.append(tracker)  # the code is freed with it
    return Kernel(tracker[symbol], kinds)


def _path(key: Key) -> Path:
    return cache_folder() / f"{key[0]}-{key[1]}.o"


def _stored(key: Key) -> tuple[str, bytes] | None:
    """A stored object with its arguments' kinds; a damaged file, or one that another user may have written, is none."""
    path = _path(key)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if not files.is_private(path):
        return None
    digest, body = data[:32], data[32:]
    if hashlib.sha256(body).digest() != digest:
        log.warning("the stored kernel %s is damaged and is compiled anew", _path(key))
        return None
    kinds, _, code = body.partition(b"\n")
    return kinds.decode(), code


def _store(key: Key, kinds: str, code: bytes) -> None:
    global _warned
    body = kinds.encode() + b"\n" + code
    try:
        folder = cache_folder()
        files.make_private(folder)
        files.sweep(folder, "*.part")
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(body).digest() + body)
        os.replace(temporary, _path(key))
    except OSError as error:
        if not _warned:
            _warned = True
            log.warning(
                "compiled kernels cannot be stored (%s): every process compiles them again; "
                "set HGDE_CACHE to a folder that can be written to",
                error,
            )


def _ask(key: Key, urgent: bool) -> Future[tuple[str, bytes]]:
    """Queue a kernel for the workers. The lock is held."""
    future = _awaited[key] = Future()
    _waiting[key] = 0 if urgent else 1
    log.info("compiling kernel %s for %s (kept for later runs)", *key)
    _arrival.notify_all()
    # Until somebody waits for a kernel, whoever asked has other work to do, and one core is theirs.
    _hire(_cores() if urgent else _cores() - 1)
    return future


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def _hire(most: int) -> None:
    """One more worker, unless there are as many already, or nothing that one could do. The lock is held."""
    global _workers
    if _waiting and _workers < min(_MOST_WORKERS, max(1, most)):
        _workers += 1
        threading.Thread(target=_manage, daemon=True, name=f"hgde-compile-{_workers}").start()


def _next() -> Key | None:
    """The most urgent kernel that nobody compiles yet; none after waiting in vain."""
    global _workers
    until = time.monotonic() + _PATIENCE
    with _lock:
        while not _waiting:
            # A kernel that comes at the last moment is looked for once more: nobody else may be there to take it.
            if not _arrival.wait(max(until - time.monotonic(), 0.0)) and not _waiting:
                _workers -= 1
                return None
        key = min(_waiting, key=_waiting.__getitem__)
        del _waiting[key]
        return key


def _start() -> subprocess.Popen[bytes] | None:
    """A worker process, or none where processes cannot be started."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", compiler.WORKER, *compiler.packages()]
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    except (OSError, ValueError):
        return None
    _processes.add(process)
    return process


def _manage() -> None:
    """Feed one worker process from the queue until there is nothing left for a while.

    The lock is held but while this thread waits: a process that is forked then finds nothing half done.
    """
    with _lock:
        process = _start()
        while (key := _next()) is not None:
            future, begun = _awaited[key], time.perf_counter()
            try:
                result = _build_here(key) if process is None else _converse(process, key)
            except (OSError, ValueError):
                # The worker died or never came up (no pipes, a frozen interpreter): compile here.
                process = None
                try:
                    result = _build_here(key)
                except Exception as error:
                    future.set_exception(error)
                    continue
            except Exception as error:
                future.set_exception(error)
                continue
            log.info("compiled %s for %s in %.1f s, %d to go", *key, time.perf_counter() - begun, len(_waiting))
            _store(key, *result)
            future.set_result(result)
    if process is not None and process.stdin is not None:
        process.stdin.close()
        process.wait()


def _build_here(key: Key) -> tuple[str, bytes]:
    with _unlocked():
        return compiler.build(*key)


def _converse(process: subprocess.Popen[bytes], key: Key) -> tuple[str, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{key[0]} {key[1]}\n".encode())
    process.stdin.flush()
    with _unlocked():
        header = json.loads(process.stdout.readline())  # an empty line, from a worker that died, is a ValueError
        code = process.stdout.read(header["size"])
    if len(code) != header["size"]:
        raise ValueError(f"the worker died while it handed over {key[0]}")
    if "error" in header:
        raise RuntimeError(f"kernel {key[0]} could not be compiled for {key[1]}:\n{header['error']}")
    return header["kinds"], code


@contextmanager
def _unlocked() -> Iterator[None]:
    """Let others have the lock meanwhile."""
    _lock.release()
    try:
        yield
    finally:
        _lock.acquire()


def _begin_anew() -> None:
    """A forked child has the kernels of its parent, but neither its threads nor its workers. The lock is held."""
    global _arrival, _workers
    _arrival, _workers = threading.Condition(_lock), 0
    _awaited.clear()
    _waiting.clear()
    for process in _processes:
        if process.stdin is not None:
            process.stdin.close()  # else the worker would wait for work until the child ends, too
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_begin_anew)
