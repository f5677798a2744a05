"""Which implementation runs: the compiled CPU kernels or plain torch."""

from __future__ import annotations

import os
from typing import Literal

import torch
from torch import Tensor

Backend = Literal["auto", "fused", "reference"]
_CHOICES = ("auto", "fused", "reference")
_FUSED_DTYPES = (torch.float32, torch.float64)


def _check(name: str) -> str:
    if name not in _CHOICES:
        raise ValueError(f"backend must be one of {', '.join(_CHOICES)}, got {name!r}")
    return name


_default = _check(os.environ.get("HGDE_BACKEND", "auto"))


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
    _default = _check(name)


def get_backend() -> str:
    """What ``backend="auto"`` means in this process.

    >>> get_backend() in ("auto", "fused", "reference")
    True
    """
    return _default


def use_fused(backend: Backend, *tensors: Tensor | None) -> bool:
    """Whether the compiled path serves these tensors: on the CPU, float32 or float64, all of one dtype."""
    chosen = _check(backend)
    if chosen == "auto":
        chosen = _default
    if chosen == "reference":
        return False
    present = [tensor for tensor in tensors if tensor is not None]
    first = present[0].dtype
    suitable = first in _FUSED_DTYPES and all(t.device.type == "cpu" and t.dtype == first for t in present)
    if not suitable and backend == "fused":
        found = ", ".join(sorted({f"{t.dtype} on {t.device}" for t in present}))
        raise ValueError(
            f"the fused kernels take float32 or float64 tensors of one dtype on the CPU, got {found}; "
            "convert the tensors, or leave backend='auto'"
        )
    return suitable
