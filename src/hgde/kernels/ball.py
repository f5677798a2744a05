"""The Poincaré ball with compiled maps, for solvers that call them many times a step."""

from __future__ import annotations

from torch import Tensor

from hgde.geometry import PoincareBall
from hgde.kernels.backend import use_fused


class FusedBall(PoincareBall):
    """A view of a ball whose exp, log, transport and inverse differential of exp are compiled passes where they serve.

    It shares the :class:`~hgde.geometry.Curvature` it is given, so training one trains the other. Compiled are CPU
    tensors ``[..., d]`` of at least two axes, all of one shape and dtype, if the backend allows it; anything else goes
    to :class:`PoincareBall`. The compiled maps have no second derivative and say so when asked for one.
    """

    @classmethod
    def view(cls, manifold: PoincareBall) -> PoincareBall:
        """The fused view of a plain ball; a subclass has maps of its own and is returned as it is."""
        return cls(manifold.curvature) if type(manifold) is PoincareBall else manifold

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        if not _served(x, v):
            return super().expmap(x, v)
        from hgde.kernels import fused_maps

        return fused_maps.expmap(_rows(x), _rows(v), self.c).view(x.shape)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        if not _served(x, y):
            return super().logmap(x, y)
        from hgde.kernels import fused_maps

        return fused_maps.logmap(_rows(x), _rows(y), self.c).view(x.shape)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        if not _served(x, y, v):
            return super().transport(x, y, v)
        from hgde.kernels import fused_transport

        return fused_transport.transport(_rows(x), _rows(y), _rows(v), self.c).view(x.shape)

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        if not _served(x, v, w, x if y is None else y):
            return super().dexp_inv(x, v, w, y)
        from hgde.kernels import fused_transport

        end = self.expmap(x, v) if y is None else y
        return fused_transport.dexp_inv(_rows(x), _rows(v), _rows(w), self.c, _rows(end)).view(x.shape)


def _served(*tensors: Tensor) -> bool:
    shape = tensors[0].shape
    return len(shape) >= 2 and all(t.shape == shape for t in tensors) and use_fused("auto", *tensors)


def _rows(tensor: Tensor) -> Tensor:
    return tensor if tensor.dim() == 2 else tensor.reshape(-1, tensor.shape[-1])
