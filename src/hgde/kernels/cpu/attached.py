"""What was worked out for a tensor, remembered as long as the tensor lives and is not changed."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

from torch import Tensor

T = TypeVar("T")


class Attached(Generic[T]):
    """One value for each of some tensors, which are told apart by identity.

    torch's own dictionary with weak keys does the same, at ten times the cost of a look.

    >>> import torch
    >>> sums = Attached()
    >>> numbers = torch.ones(3)
    >>> sums.put(numbers, 3.0)
    3.0
    >>> sums.get(numbers)
    3.0
    >>> numbers.add_(1)
    tensor([2., 2., 2.])
    >>> sums.get(numbers) is None
    True
    """

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[Tensor], int, T]] = {}

    def get(self, tensor: Tensor) -> T | None:
        known = self._values.get(id(tensor))
        return known[2] if known is not None and known[0]() is tensor and known[1] == tensor._version else None

    def put(self, tensor: Tensor, value: T) -> T:
        """The value itself."""
        key, values = id(tensor), self._values

        def forget(gone: weakref.ref[Tensor]) -> None:
            known = values.get(key)
            if known is not None and known[0] is gone:
                del values[key]

        values[key] = weakref.ref(tensor, forget), tensor._version, value
        return value
