"""The two ways to state the dynamics, a vector field or a flow, behind one object that counts and checks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from hgde.geometry.contract import Manifold
from hgde.solvers.solution import InputError

FieldFunction = Callable[[Tensor, Tensor], Tensor]


class Flow:
    """Marks ``function(t, x)`` as a flow, a point ``F`` of the manifold, rather than a tangent vector.

    The two are tied by ``X = log_x(F)`` and ``F = exp_x(X)`` (paper, def:manifold-vector-field and def:manifold-flow).
    Graph diffusion gives a flow.

    >>> import torch
    >>> from hgde import PoincareBall, odeint
    >>> towards = Flow(lambda t, x: 0.5 * x)        # points, not tangent vectors
    >>> x0 = torch.tensor([[0.6, 0.0]])
    >>> bool(odeint(towards, x0, [0.0, 1.0], manifold=PoincareBall(), method="heuler").final.norm() < 0.6)
    True
    """

    def __init__(self, function: FieldFunction) -> None:
        self.function = function

    def __call__(self, t: Tensor, x: Tensor) -> Tensor:
        return self.function(t, x)


class Dynamics:
    """A field or flow on a manifold, read as either. Counts evaluations and refuses results of the wrong shape."""

    def __init__(self, field: FieldFunction | Flow, manifold: Manifold) -> None:
        self.manifold = manifold
        self.is_flow = isinstance(field, Flow)
        self.evaluations = 0
        self._function = field.function if isinstance(field, Flow) else field

    def _evaluate(self, t: float, x: Tensor) -> Tensor:
        self.evaluations += 1
        value = self._function(torch.full((), t, dtype=x.dtype, device=x.device), x)
        if not isinstance(value, Tensor):
            raise InputError(f"expected the field to return a tensor, got {type(value).__name__}")
        if value.shape != x.shape or value.dtype != x.dtype:
            kind = "a point" if self.is_flow else "a tangent vector"
            raise InputError(
                f"expected the field to return {kind} of shape {tuple(x.shape)} and {x.dtype} like the state, "
                f"got shape {tuple(value.shape)} and {value.dtype}; the signature is field(t, x)"
            )
        return value

    def slope(self, t: float, x: Tensor) -> Tensor:
        """The vector field ``X(t, x)``, a tangent vector at ``x``."""
        value = self._evaluate(t, x)
        return self.manifold.logmap(x, value) if self.is_flow else value

    def flow(self, t: float, x: Tensor) -> Tensor:
        """The flow ``F(t, x)``, a point."""
        value = self._evaluate(t, x)
        return value if self.is_flow else self.manifold.expmap(x, value)
