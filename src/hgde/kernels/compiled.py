"""How kernels are compiled: one set of options, and a disk cache that notices when a function they call has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

# No assumption that NaN and infinity are absent: a diverging run must show as one.
# Division by zero must give infinity: a check for it would keep loops scalar.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "error_model": "numpy",
}
_SHARED = ("lanes.py", "scalars.py", "strips.py")


@cache
def _shared_sources() -> str:
    digest = hashlib.sha256()
    for name in _SHARED:
        digest.update(Path(__file__).with_name(name).read_bytes())
    return digest.hexdigest()


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at first use, release the interpreter lock, keep the result on disk."""
    return _stamped(njit(**_OPTIONS)(function))


def inlined(function: Callable[..., Any]) -> Any:
    """A building block of kernels, always merged into its caller so that the caller's loops vectorise."""
    return _stamped(njit(forceinline=True, **_OPTIONS)(function))


def _stamped(dispatcher: Any) -> Any:
    # numba looks only at the file of the function itself; one that calls changed code would be served stale.
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    stamp = getattr(cache_file, "_source_stamp", None)
    if cache_file is not None and stamp is not None:
        cache_file._source_stamp = (stamp, _shared_sources())
    return dispatcher
