"""Which implementation runs: the compiled CPU kernels or plain torch."""

from __future__ import annotations

import os
from typing import Literal

Backend = Literal["auto", "fused", "reference"]
_CHOICES = ("auto", "fused", "reference")


def checked(name: str) -> str:
    if name not in _CHOICES:
        raise ValueError(f"backend must be one of {', '.join(_CHOICES)}, got {name!r}")
    return name


_default = checked(os.environ.get("HGDE_BACKEND", "auto"))


def set_backend(name: Backend) -> None:
    """Set what ``backend="auto"`` means in this process; the environment variable ``HGDE_BACKEND`` sets it at start.

    >>> from hgde.kernels import get_backend
    >>> before = get_backend()
    >>> set_backend("reference")
    >>> get_backend()
    'reference'
    >>> set_backend(before)
    """
    global _default
    _default = checked(name)


def get_backend() -> str:
    """What ``backend="auto"`` means in this process.

    >>> get_backend() in ("auto", "fused", "reference")
    True
    """
    return _default
