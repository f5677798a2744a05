"""numba's compiler with a cache on disk where there is a place for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def compiled(function: Callable[..., Any]) -> Any:
    """``njit`` that releases the interpreter; kept on disk unless neither package nor home can be written to."""
    try:
        return njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba knows no folder to keep it in
        return njit(**_OPTIONS)(function)


def inner(function: Callable[..., Any]) -> Any:
    """``njit`` of what compiled functions alone call: kept with them, and without a way in from Python."""
    return njit(no_cpython_wrapper=True, **_OPTIONS)(function)
