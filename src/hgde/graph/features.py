"""Sparse node features: a CSR matrix that knows its transpose and how to drop entries without densifying."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """An ``[N, F]`` matrix in CSR form. Bag-of-words features stay in it from the file to the gradient.

    >>> import scipy.sparse
    >>> import torch
    >>> features = SparseFeatures.from_scipy(scipy.sparse.eye(3, format="csr"))
    >>> features.shape
    (3, 3)
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[int, int]

    @classmethod
    def from_scipy(cls, matrix: csr_matrix, dtype: torch.dtype = torch.float32) -> SparseFeatures:
        csr = matrix.tocsr()
        csr.sort_indices()
        return cls(
            torch.from_numpy(csr.indptr.astype(np.int64)),
            torch.from_numpy(csr.indices.astype(np.int64)),
            torch.as_tensor(csr.data).to(dtype),
            (int(csr.shape[0]), int(csr.shape[1])),
        )

    @cached_property
    def rows(self) -> Tensor:
        return torch.repeat_interleave(torch.arange(self.shape[0], device=self.device), self.indptr.diff())

    @cached_property
    def by_column(self) -> tuple[Tensor, Tensor, Tensor]:
        """The transpose in CSR form: ``(indptr, rows, order)``, ``order`` pointing into ``values``."""
        order = torch.argsort(self.indices, stable=True)
        indptr = torch.zeros(self.shape[1] + 1, dtype=torch.int64, device=self.device)
        indptr[1:] = torch.cumsum(torch.bincount(self.indices, minlength=self.shape[1]), 0)
        return indptr, self.rows[order], order

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    def with_values(self, values: Tensor) -> SparseFeatures:
        """The same pattern with other values; what was worked out about the pattern is kept."""
        other = SparseFeatures(self.indptr, self.indices, values, self.shape)
        for name in ("rows", "by_column"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    def to(self, target: Any) -> SparseFeatures:
        """Move to a device or convert to a dtype."""
        if isinstance(target, torch.dtype):
            return self.with_values(self.values.to(target))
        return SparseFeatures(self.indptr.to(target), self.indices.to(target), self.values.to(target), self.shape)

    def row_normalised(self, order: int = 1) -> SparseFeatures:
        """Each row divided by the sum of its absolute values (its length for ``order`` 2); empty rows stay empty."""
        total = torch.zeros(self.shape[0], dtype=self.dtype, device=self.device)
        total.index_add_(0, self.rows, self.values.abs() ** order)
        total = total ** (1 / order)
        return self.with_values(self.values / total.clamp_min(torch.finfo(self.dtype).tiny)[self.rows])

    def select(self, nodes: Tensor) -> SparseFeatures:
        """The rows of ``nodes``, in the given order."""
        return SparseFeatures.from_scipy(self.to_scipy()[nodes.cpu().numpy()], self.dtype).to(self.device)

    def to_dense(self) -> Tensor:
        dense = torch.zeros(self.shape, dtype=self.dtype, device=self.device)
        return dense.index_put_((self.rows, self.indices), self.values, accumulate=True)

    def to_scipy(self) -> csr_matrix:
        from scipy.sparse import csr_matrix

        parts = (self.values.detach().cpu().numpy(), self.indices.cpu().numpy(), self.indptr.cpu().numpy())
        return csr_matrix(parts, shape=self.shape)


Features = Tensor | SparseFeatures
