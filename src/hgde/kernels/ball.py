"""The Poincaré ball with compiled maps, for solvers that call them many times a step."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from hgde.geometry import PoincareBall
from hgde.kernels.dispatch import use_fused
from hgde.kernels.ops import advance, maps


class FusedBall(PoincareBall):
    """A ball whose exp, log, transport and inverse differential of exp are compiled passes where they serve.

    Compiled are CPU tensors ``[..., d]`` of at least two axes, all of one shape and dtype, if the backend allows it;
    anything else goes to :class:`PoincareBall`. The compiled maps have no second derivative and say so when asked for
    one.

    >>> import torch
    >>> from hgde import PoincareBall
    >>> ball = PoincareBall(c=1.0)
    >>> fast, x, v = FusedBall.for_solve(ball), torch.zeros(3, 2), torch.full((3, 2), 0.2)
    >>> torch.allclose(fast.expmap(x, v), ball.expmap(x, v))
    True
    """

    _held: Tensor | None = None

    @classmethod
    def for_solve(cls, manifold: PoincareBall) -> PoincareBall:
        """The fused view of a plain ball for one solve: it shares the curvature's parameter and reads ``c`` once.

        Make another after the parameter has changed. A subclass has maps of its own and is returned as it is.
        """
        if type(manifold) is not PoincareBall:
            return manifold
        view = cls(manifold.curvature)
        view._held = manifold.c
        return view

    @property
    def c(self) -> Tensor:
        return super().c if self._held is None else self._held

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        if not _served(x, v):
            return super().expmap(x, v)
        return _by_rows(lambda c, x, v: advance(x, v, c), self.c, x, v)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        if not _served(x, y):
            return super().logmap(x, y)
        return _by_rows(maps.logmap, self.c, x, y)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        if not _served(x, y, v):
            return super().transport(x, y, v)
        return _by_rows(maps.transport, self.c, x, y, v)

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        end = self.expmap(x, v) if y is None else y
        if not _served(x, v, w, end):
            return super().dexp_inv(x, v, w, end)
        return _by_rows(maps.shrink, self.c, x, v, self.transport(end, x, w))


def _served(*tensors: Tensor) -> bool:
    shape = tensors[0].shape
    return len(shape) >= 2 and all(t.shape == shape for t in tensors) and use_fused("auto", *tensors)


def _by_rows(function: Callable[..., Tensor], c: Tensor, *tensors: Tensor) -> Tensor:
    shape = tensors[0].shape
    if len(shape) == 2:
        return function(c, *tensors)
    return function(c, *(t.reshape(-1, shape[-1]) for t in tensors)).view(shape)
