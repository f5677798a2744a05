"""Several tensors of points, each on a manifold of its own, as one state."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hgde.geometry.contract import Manifold
from hgde.solvers.solution import InputError


class Packed(Manifold):
    """Tensors of any shapes laid end to end on one axis, ``[..., total]``, so that a method sees a single tensor.

    Lengths and distances are those of all points of all parts, ``[..., points]``: a tolerance holds for each of them.
    """

    def __init__(self, parts: Sequence[Manifold], shapes: Sequence[torch.Size]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.shapes = tuple(shapes)
        self.sizes = tuple(math.prod(shape) for shape in shapes)
        self.is_flat = all(part.is_flat for part in parts)
        self.has_dexp = all(part.has_dexp for part in parts)
        self.max_order = min((part.max_order for part in parts if part.max_order is not None), default=None)

    def pack(self, tensors: Sequence[Tensor]) -> Tensor:
        """One state from its tensors."""
        return torch.cat([t.reshape(-1) for t in tensors])

    def unpack(self, x: Tensor) -> tuple[Tensor, ...]:
        """The tensors of a state, with any axes in front that the state has."""
        pieces = x.split(self.sizes, dim=-1)
        return tuple(p.reshape(*x.shape[:-1], *shape) for p, shape in zip(pieces, self.shapes, strict=True))

    def unpacked(self, function: Callable[[Tensor, Any], Any], what: str) -> Callable[[Tensor, Tensor], Tensor]:
        """A field of tuples as a field of packed states, its results checked."""

        def packed(t: Tensor, x: Tensor) -> Tensor:
            state = self.unpack(x)
            value = function(t, state)
            if not isinstance(value, tuple | list) or len(value) != len(state):
                came = f"{len(value)} of them" if isinstance(value, tuple | list) else type(value).__name__
                raise InputError(
                    f"expected {what} to return a tuple of {len(state)} tensors like the state, got {came}"
                )
            for i, (given, like) in enumerate(zip(value, state, strict=True)):
                if not isinstance(given, Tensor) or given.shape != like.shape or given.dtype != like.dtype:
                    came = (
                        f"{tuple(given.shape)} and {given.dtype}" if isinstance(given, Tensor) else type(given).__name__
                    )
                    raise InputError(
                        f"expected part {i} of what {what} returns to have shape {tuple(like.shape)} and {like.dtype} "
                        f"like the state, got {came}"
                    )
            return self.pack(value)

        return packed

    def _each(self, name: str, *tensors: Tensor) -> list[Tensor]:
        pieces = zip(*(self.unpack(t) for t in tensors), strict=True)
        return [getattr(part, name)(*own) for part, own in zip(self.parts, pieces, strict=True)]

    def _map(self, name: str, *tensors: Tensor) -> Tensor:
        lead = tensors[0].shape[:-1]
        return torch.cat([value.reshape(*lead, -1) for value in self._each(name, *tensors)], dim=-1)

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        return self._map("expmap", x, v)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        return self._map("logmap", x, y)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return self._map("transport", x, y, v)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return self._map("inner", x, u, v)

    def norm(self, x: Tensor, v: Tensor) -> Tensor:
        return self._map("norm", x, v)

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        return self._map("dist", x, y)

    def project(self, x: Tensor) -> Tensor:
        return self._map("project", x)

    def egrad2rgrad(self, x: Tensor, g: Tensor) -> Tensor:
        return self._map("egrad2rgrad", x, g)

    def dexp(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return self._map("dexp", x, v, w, self.expmap(x, v) if y is None else y)

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return self._map("dexp_inv", x, v, w, self.expmap(x, v) if y is None else y)

    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        own = zip(self.parts, self.shapes, strict=True)
        one = self.pack([part.origin(*shape, dtype=dtype, device=device) for part, shape in own])  # type: ignore[operator]  # a ModuleList forgets that its parts are manifolds
        return one.expand(*size[:-1], -1)

    def problems(self, x: Tensor) -> list[str]:
        own = zip(self.parts, self.unpack(x), strict=True)
        return [f"part {i}: {problem}" for i, (part, t) in enumerate(own) for problem in part.problems(t)]  # type: ignore[operator]  # a ModuleList forgets that its parts are manifolds
