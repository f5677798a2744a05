"""Huge pages for large arrays, where Linux gives them to those who ask (``transparent_hugepage`` set to ``madvise``).

The system hands out memory page by page as it is first written, which takes two microseconds or more for each 4 kB: as
long as some of the work on an array of tens of megabytes. And rows of neighbours lie anywhere in it, in more pages than
a processor remembers the places of. In pages of 2 MB an array is filled about five times as fast, and they are few.

numpy asks for its own arrays; torch does not. The request is a hint: values are not touched, and elsewhere than on
Linux nothing is done.

Arrays too large for the C library to keep go back to the system when they are freed, which clears them before they come
again. So what :func:`empty` made of that size is kept when it is freed, and handed out to who next wants as much.
"""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

SMALLEST = 1 << 22
"""Bytes below which an array is left alone, as numpy leaves it."""
SMALLEST_KEPT = 1 << 25
"""Bytes below which the C library keeps what is freed by itself."""
most_kept = 1 << 31
"""Bytes of freed arrays that are kept, the last ones."""
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
_kept: dict[int, Tensor] = {}


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
    size = math.prod(shape if isinstance(shape, Sequence) else (shape,)) * dtype.itemsize
    if size >= SMALLEST_KEPT:
        return _lend(size).view(dtype).view(shape)
    tensor = torch.empty(shape, dtype=dtype)
    if size >= SMALLEST:
        _advise(tensor, _HUGEPAGE)
    return tensor


def _lend(size: int) -> Tensor:
    """So many bytes, which come back when the last tensor on them is freed."""
    fitting = (key for key, kept in list(_kept.items()) if kept.numel() == size)
    # Another thread may have been faster.
    store = next((kept for key in fitting if (kept := _kept.pop(key, None)) is not None), None)
    if store is None:
        store = torch.empty(size, dtype=torch.uint8)
        _advise(store, _HUGEPAGE)
    lent = store.numpy()
    weakref.finalize(lent, _take_back, store).atexit = False
    return torch.from_numpy(lent)


def _take_back(store: Tensor) -> None:
    _kept[id(store)] = store
    while sum(kept.numel() for kept in list(_kept.values())) > most_kept:
        _kept.pop(next(iter(_kept)), None)


def give_back() -> None:
    """Free what the operations keep for later arrays, of those that nobody uses any more.

    >>> import torch
    >>> from hgde.kernels import give_back
    >>> from hgde.kernels.cpu import pages
    >>> large = pages.empty(1 << 25, torch.uint8)
    >>> del large
    >>> give_back()
    >>> len(pages._kept)
    0
    """
    _kept.clear()


def keep_at_most(size: int) -> None:
    """Change how many bytes of freed arrays are kept from now on."""
    global most_kept
    most_kept = size
    give_back()


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
