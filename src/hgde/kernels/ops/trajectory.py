"""What the operations that follow a trajectory share: its graph and weights as kernels take them, and what gradients
are collected in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.geometry import numerics
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.layout import layout_of, narrowed
from hgde.kernels.cpu.threads import Given, lent
from hgde.kernels.ops.register import padded

TABLE_COPIES = 8
TOLD = 4
SUMS, MOVED, RESIDUAL = 0, 1, 2
Three = tuple[float, float, float]
NO_ETA: Three = (0.0, 0.0, 0.0)


def three(eta: Tensor | None) -> Three:
    """The weights of step, state and start as numbers."""
    return NO_ETA if eta is None else tuple(eta.tolist())


class Trajectory:
    """What does not change along the steps of a trajectory; curvature and weights of the residual come with each call
    (:meth:`numbers`)."""

    def __init__(
        self, z: Tensor, z0: Tensor | None, weight: Tensor, scale: Tensor | None, index: Tensor | None,
        extra: Tensor | None, indptr: Tensor, indices: Tensor, mode: int, code: int, counts: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.layout, self.counts = layout_of(indptr, indices), tuple(counts)
        self.blocks = self.layout.stages(self.counts)
        self.stage = self.layout.num_blocks + 1 if self.counts else 0
        self.z, (self.rows, self.width) = z, z.shape
        self.dtype, self.channels = z.dtype, index is not None
        self.mode, self.code, self.margin = mode, code, numerics.limits(z.dtype).margin
        self.z0 = z if z0 is None else z0
        self.starts_here = z0 is None and mode == RESIDUAL
        self.extra = None if extra is None else extra.contiguous()
        given = (int(extra is not None), self.extra)
        if index is None:
            self.weight = weight.contiguous()
            self.weights: tuple[Any, ...] = (self.weight, given[1], given[0])
        else:
            assert scale is not None
            self.weight, self.index = padded(weight), narrowed(index)
            self.scale = padded(scale)
            self.weights = (self.weight, self.index, *given, self.scale)
        self.work = (self.layout.num_entries + 8 * self.rows) * self.width

    @property
    def flow(self) -> tuple[Any, ...]:
        """The flow's arguments of a kernel, from the start on."""
        eta = Given("e0"), Given("e1"), Given("e2")
        return self.z0, self.mode, self.code, *eta, Given("c"), self.margin

    @staticmethod
    def numbers(c: float, eta: Three) -> dict[str, float]:
        """What comes with each call."""
        return {"c": c, "e0": eta[0], "e1": eta[1], "e2": eta[2]}

    @property
    def num_asked(self) -> int:
        """Rows of the last state."""
        return self.counts[-1] if self.counts else self.rows

    @property
    def reverse(self) -> Tensor | None:
        """The reverse of each edge, where an edge and its reverse are visited together on the way back."""
        return None if self.channels else self.layout.reverse


class Gradients:
    """Where a backward pass collects what the weights and the first state receive; the latter only where it is not
    joined with the gradient of the state that it is."""

    def __init__(self, path: Trajectory, wanted: bool, tells: bool = False, is_joined: bool = False) -> None:
        z = path.z
        self._path, self._size = path, 2 * z.numel()
        self._told = TOLD * path.layout.num_entries if tells or path.reverse is None else 0
        has_start = path.mode == RESIDUAL and not is_joined
        self.z0 = torch.from_numpy(np.zeros_like(z.numpy())) if has_start else z
        self.copies = 1
        self.values = pages.empty_like(path.weight).zero_() if wanted and not path.channels else None
        self.extra: Tensor | None = None
        if path.extra is not None and not path.channels:
            self.extra = torch.zeros(path.rows, dtype=torch.float64)
        elif path.extra is not None and wanted:
            self.extra = torch.zeros_like(path.extra)
        self.scale: Tensor | None = None
        self.table: Tensor | None = None
        if path.channels:
            # Copies of the table together take no more room than a state.
            self.copies = max(1, min(TABLE_COPIES, path.rows // max(len(path.weight), 1)))
            self.table = torch.zeros(self.copies, *path.weight.shape, dtype=torch.float64)
            self.scale = torch.zeros_like(z)
        collected = (self.z0 if has_start else None, self.values, self.extra, self.table, self.scale)
        self._collected = [tensor.numpy() for tensor in collected if tensor is not None]

    def clear(self) -> None:
        """Begin anew."""
        for array in self._collected:
            array.fill(0)

    def buffers(self) -> dict[str, Tensor]:
        """What a pass writes on the way, by the names that its kernel's arguments have."""
        dtype = self._path.dtype
        found = {"sums": lent("sums", self._size, dtype)}
        if self._told:
            found["tell"] = lent("tell", self._told, dtype)
        if self._path.reverse is not None and not self._told:
            found["own"] = lent("own", self._size, dtype)
        return found

    def add_start(self, gz: Tensor) -> None:
        """Where the start is the first state itself. numpy adds on this thread: torch would wake others, which spin for
        a while."""
        np.add(gz.numpy(), self.z0.numpy(), out=gz.numpy())
