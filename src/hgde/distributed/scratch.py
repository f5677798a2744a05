"""Tensors on disk: what is worked out once is mapped, what a gradient will need is written and read back.

Mapped pages belong to the file, so the system drops them when memory is short and reads them again. Values are not
touched: results have the same bits.
"""

from __future__ import annotations

import ctypes
import shutil
import sys
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

SMALLEST = 1 << 18
"""Tensors of fewer bytes stay in memory."""


class _Stored:
    """A tensor in a file, which goes with the last reference to it.

    Its strides come back too: a product with a transposed matrix is summed in another order than with a copy of it.
    """

    def __init__(self, path: Path, tensor: Tensor) -> None:
        self.path = path
        self.order = _by_stride(tensor)
        array = tensor.detach().permute(self.order).numpy()
        self.shape, self.kind = array.shape, array.dtype
        array.tofile(path)

    def read(self) -> Tensor:
        stored = torch.from_numpy(np.fromfile(self.path, dtype=self.kind).reshape(self.shape))
        return stored.permute([self.order.index(axis) for axis in range(len(self.order))])

    def __del__(self) -> None:
        self.path.unlink(missing_ok=True)


def _by_stride(tensor: Tensor) -> list[int]:
    """The axes in the order in which they lie in memory."""
    strides = tensor.stride()
    return sorted(range(tensor.dim()), key=lambda axis: (-strides[axis], axis))


class Scratch:
    """A folder for tensors; it is removed by :meth:`close`."""

    def __init__(self, parent: Path, smallest: int = SMALLEST) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=".scratch-", dir=parent))
        self.smallest = smallest
        self.written = 0
        self._count = 0
        self._mapped: set[int] = set()
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None

    def mapped(self, tensor: Tensor) -> Tensor:
        """The same values in a mapped file."""
        if tensor.numel() * tensor.element_size() < self.smallest or self.knows(tensor):
            return tensor
        path = self._next()
        array = tensor.detach().contiguous().numpy()
        array.tofile(path)
        self.written += array.nbytes
        result = torch.from_numpy(np.memmap(path, dtype=array.dtype, mode="c", shape=array.shape))
        self.know(result)
        return result

    def know(self, tensor: Tensor) -> None:
        """Remember a tensor that is mapped already; it must live as long as this."""
        self._mapped.add(tensor.untyped_storage().data_ptr())

    def knows(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() in self._mapped

    def saving(self) -> AbstractContextManager[Any]:
        """Inside, what autograd keeps for the backward pass is kept on disk."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: Tensor) -> Tensor | _Stored:
        small = tensor.numel() * tensor.element_size() < self.smallest
        if small or tensor.is_sparse or self.knows(tensor) or not tensor.permute(_by_stride(tensor)).is_contiguous():
            return tensor
        self.written += tensor.numel() * tensor.element_size()
        return _Stored(self._next(), tensor)

    def _unpack(self, kept: Tensor | _Stored) -> Tensor:
        return kept.read() if isinstance(kept, _Stored) else kept

    def trim(self) -> None:
        """Give freed memory back to the system, where the C library can: it would be kept for later otherwise."""
        if self._trim is not None:
            self._trim(0)

    def _next(self) -> Path:
        self._count += 1
        return self.folder / f"{self._count}.bin"

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
