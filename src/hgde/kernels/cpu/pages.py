"""Huge pages for large arrays, where Linux gives them to those who ask (``transparent_hugepage`` set to ``madvise``).

The system hands out memory page by page as it is first written, which takes two microseconds or more for each 4 kB: as
long as some of the work on an array of tens of megabytes. And rows of neighbours lie anywhere in it, in more pages than
a processor remembers the places of. In pages of 2 MB an array is filled about five times as fast, and they are few.

numpy asks for its own arrays; torch does not. The request is a hint: values are not touched, and elsewhere than on
Linux nothing is done.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

SMALLEST = 1 << 22
"""Bytes below which an array is left alone, as numpy leaves it."""
_HUGEPAGE, _COLLAPSE = 14, 25
"""Linux's ``MADV_HUGEPAGE``, for pages not yet handed out, and ``MADV_COLLAPSE``, which moves those that are."""


def _page_size() -> int:
    """Bytes of a huge page; 0 where there is none to ask for."""
    try:
        return int(Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").read_text())
    except (OSError, ValueError):
        return 0


_page = _page_size() if sys.platform == "linux" else 0
_system = ctypes.CDLL(None) if _page else None
_visited: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _advise(tensor: Tensor, advice: int) -> None:
    """Whole pages only: others share theirs with somebody else's memory."""
    if _system is None:
        return
    begin, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
    first, after = -(-begin // _page) * _page, (begin + size) // _page * _page
    if after > first:
        _system.madvise(ctypes.c_void_p(first), ctypes.c_size_t(after - first), advice)


def empty(shape: Sequence[int] | int, dtype: torch.dtype) -> Tensor:
    """``torch.empty`` on the CPU; a large one in huge pages.

    >>> empty((2, 3), torch.float32).shape
    torch.Size([2, 3])
    """
    tensor = torch.empty(shape, dtype=dtype)
    if tensor.numel() * tensor.element_size() >= SMALLEST:
        _advise(tensor, _HUGEPAGE)
    return tensor


def empty_like(tensor: Tensor) -> Tensor:
    """A contiguous tensor of the same shape and dtype."""
    return empty(tensor.shape, tensor.dtype)


def settle(tensor: Tensor) -> Tensor:
    """The tensor itself; a large one that comes a second time is moved into huge pages.

    That takes as long as copying it, which pays for what is read again and again, but not for what lives for one call.
    """
    if tensor.numel() * tensor.element_size() >= SMALLEST:
        visits = _visited[tensor] = _visited.get(tensor, 0) + 1
        if visits == 2:
            _advise(tensor, _COLLAPSE)
    return tensor
