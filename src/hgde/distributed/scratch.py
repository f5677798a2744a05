"""Tensors on disk: what is worked out once is mapped, what a gradient will need is written and read back.

Mapped pages belong to the file: they are given back when a piece has had its turn, and read again at its next one.
Values are not touched: results have the same bits.
"""

from __future__ import annotations

import ctypes
import mmap
import shutil
import sys
import tempfile
import threading
from collections import defaultdict
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

SMALLEST = 1 << 18
"""Tensors of fewer bytes stay in memory."""


class _File:
    """One file that arrays are put into and taken from; the room of those that are gone is used again.

    Making a file for each array takes longer than writing a small one. Room comes in steps of an eighth, so that sizes
    which change a little from epoch to epoch find it again; what is not written of it takes no space on disk.
    """

    def __init__(self, path: Path) -> None:
        self._stream = path.open("w+b", buffering=0)
        self._lock = threading.Lock()
        self._end = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)

    def put(self, data: memoryview) -> tuple[int, int]:
        """Where it lies and how much room it has."""
        step = max(mmap.PAGESIZE.bit_length() - 1, data.nbytes.bit_length() - 4)
        room = -(-data.nbytes >> step) << step
        with self._lock:
            place = self._place(room)
            self._stream.seek(place)
            while data.nbytes:
                data = data[self._stream.write(data) :]
        return place, room

    def _place(self, room: int) -> int:
        try:
            return self._free[room].pop()
        except IndexError:
            self._end += room
            return self._end - room

    def take(self, place: int, into: memoryview) -> None:
        with self._lock:
            self._stream.seek(place)
            while into.nbytes:
                count = self._stream.readinto(into)
                if not count:
                    raise OSError(f"{self._stream.name} has become shorter while it was in use")
                into = into[count:]

    def give_back(self, place: int, room: int) -> None:
        self._free[room].append(place)  # without the lock: whoever holds it may be the one who drops an array

    def close(self) -> None:
        self._stream.close()


class _Stored:
    """A tensor in a file, whose room is given back with the last reference to it.

    Its strides come back too: a product with a transposed matrix is summed in another order than with a copy of it.
    """

    def __init__(self, file: _File, tensor: Tensor) -> None:
        self.order = _by_stride(tensor)
        array = tensor.detach().permute(self.order).numpy()
        self.shape, self.kind = array.shape, array.dtype
        self.file = file
        self.place, self.room = file.put(array.reshape(-1).data.cast("B"))

    def read(self) -> Tensor:
        array = np.empty(self.shape, self.kind)
        self.file.take(self.place, array.reshape(-1).data.cast("B"))
        return torch.from_numpy(array).permute([self.order.index(axis) for axis in range(len(self.order))])

    def __del__(self) -> None:
        if hasattr(self, "room"):
            self.file.give_back(self.place, self.room)


def _by_stride(tensor: Tensor) -> list[int]:
    """The axes in the order in which they lie in memory."""
    strides = tensor.stride()
    return sorted(range(tensor.dim()), key=lambda axis: (-strides[axis], axis))


class Scratch:
    """A folder for tensors; it is removed by :meth:`close`."""

    def __init__(self, parent: Path, smallest: int = SMALLEST) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=".scratch-", dir=parent))
        self.smallest = smallest
        self.written = 0
        self._count = 0
        self._kept = _File(self.folder / "kept.bin")
        #: Tensors of each piece by their address. They are held: an address must not come to mean something else.
        self._mapped: dict[int, dict[int, Tensor]] = defaultdict(dict)
        self._system = ctypes.CDLL(None) if sys.platform.startswith("linux") else None

    def mapped(self, tensor: Tensor, piece: int) -> Tensor:
        """The same values in a mapped file."""
        if tensor.numel() * tensor.element_size() < self.smallest or self.knows(tensor):
            return tensor
        path = self._next()
        array = tensor.detach().contiguous().numpy()
        array.tofile(path)
        self.written += array.nbytes
        result = torch.from_numpy(np.memmap(path, dtype=array.dtype, mode="c", shape=array.shape))
        self.know(result, piece)
        return result

    def know(self, tensor: Tensor, piece: int) -> None:
        """Remember a tensor of a piece that is mapped already, and never written to."""
        self._mapped[piece][tensor.untyped_storage().data_ptr()] = tensor

    def knows(self, tensor: Tensor) -> bool:
        address = tensor.untyped_storage().data_ptr()
        return any(address in known for known in self._mapped.values())

    def saving(self) -> AbstractContextManager[Any]:
        """Inside, what autograd keeps for the backward pass is kept on disk."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: Tensor) -> Tensor | _Stored:
        small = tensor.numel() * tensor.element_size() < self.smallest
        if small or tensor.is_sparse or self.knows(tensor) or not tensor.permute(_by_stride(tensor)).is_contiguous():
            return tensor
        self.written += tensor.numel() * tensor.element_size()
        return _Stored(self._kept, tensor)

    def _unpack(self, kept: Tensor | _Stored) -> Tensor:
        return kept.read() if isinstance(kept, _Stored) else kept

    def rest(self, piece: int) -> None:
        """Give back the pages that a piece has read of its files: it waits for the others now."""
        if self._system is None:
            return
        for address, tensor in self._mapped[piece].items():
            first = address // mmap.PAGESIZE * mmap.PAGESIZE
            size = address + tensor.untyped_storage().nbytes() - first
            self._system.madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), mmap.MADV_DONTNEED)

    def trim(self) -> None:
        """Give freed memory back to the system, where the C library can: it would be kept for later otherwise."""
        if self._system is not None and hasattr(self._system, "malloc_trim"):
            self._system.malloc_trim(0)

    def _next(self) -> Path:
        self._count += 1
        return self.folder / f"{self._count}.bin"

    def close(self) -> None:
        self._kept.close()
        shutil.rmtree(self.folder, ignore_errors=True)
