"""The Poincaré ball with compiled maps, for solvers that call them many times a step."""

from __future__ import annotations

from torch import Tensor

from hgde.geometry import Curvature, PoincareBall
from hgde.kernels.backend import use_fused


class FusedBall(PoincareBall):
    """A view of a ball whose exp and log are one compiled pass each way where the backend rule allows it.

    It shares the :class:`Curvature` it is given, so training one trains the other. Points are ``[..., d]`` with at
    least two axes and all arguments of one shape, on the CPU; anything else goes to :class:`PoincareBall`. The compiled
    maps have no second derivative and say so when asked for one.
    """

    def __init__(self, c: float | Curvature = 1.0, learnable: bool = False) -> None:
        super().__init__(c, learnable)

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


def _served(*tensors: Tensor) -> bool:
    shape = tensors[0].shape
    return len(shape) >= 2 and all(t.shape == shape for t in tensors) and use_fused("auto", *tensors)


def _rows(tensor: Tensor) -> Tensor:
    return tensor if tensor.dim() == 2 else tensor.reshape(-1, tensor.shape[-1])
