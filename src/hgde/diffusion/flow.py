"""The flow of hyperbolic graph diffusion: gradient, diffusivity, divergence, exponential map, residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from hgde.diffusion.diffusivity import Diffusivity, Isotropic, Operator
from hgde.geometry import PoincareBall
from hgde.graph import Graph
from hgde.kernels import advance, diffuse

Activation = str | Callable[[Tensor], Tensor]


class GraphFlow(nn.Module):
    """The flow ``F`` of the paper's equations hyperbolic-graph-diffusion-equation and residual-diffusion-hyperbolic.

    ``v_i = sigma(sum_j a_ij log_{z_i}(z_j))``, ``dz_i = exp_{z_i}(v_i)`` and, with ``eta``,
    ``F(z)_i = gyromidpoint({dz_i, z_i, z_i(0)}; eta)``.

    Args:
        manifold: the ball it runs on.
        diffusivity: weights ``a_ij``.
        eta: weights of step, state and start in the residual; ``None`` leaves the residual out.
        learn_eta: train them.
        activation: ``sigma``, a name or any function of a tensor.
    """

    def __init__(
        self,
        manifold: PoincareBall,
        diffusivity: Diffusivity | None = None,
        eta: Sequence[float] | None = (1.0, 0.6, 0.1),
        learn_eta: bool = False,
        activation: Activation = "identity",
    ) -> None:
        super().__init__()
        self.manifold = manifold
        self.diffusivity = diffusivity if diffusivity is not None else Isotropic()
        self.activation = activation
        self.eta: Tensor | tuple[float, ...] | None
        if eta is None:
            self.eta = None
        elif len(eta) != 3:
            raise ValueError(f"eta holds three weights (step, state, start), got {len(eta)}")
        elif learn_eta:
            self.eta = nn.Parameter(torch.tensor(tuple(eta), dtype=torch.get_default_dtype()))
        else:
            self.eta = tuple(float(weight) for weight in eta)

    def bind(self, z0: Tensor, graph: Graph) -> BoundFlow:
        """The flow on one graph from one start: a function of time and state that changes nothing."""
        operator = self.diffusivity(z0, graph, self.manifold) if self.diffusivity.constant_in_time else None
        return BoundFlow(self, z0, graph, self.manifold.c, operator)

    def forward(self, z: Tensor, graph: Graph, z0: Tensor | None = None) -> Tensor:
        """One evaluation ``F(z)``; the start is ``z`` itself unless given."""
        return self.bind(z if z0 is None else z0, graph)(0.0, z)

    def extra_repr(self) -> str:
        return f"eta={self.eta}, activation={self.activation}"


class BoundFlow:
    """A flow with its graph, start and curvature; what is constant in time was worked out when it was made."""

    def __init__(self, flow: GraphFlow, z0: Tensor, graph: Graph, c: Tensor, operator: Operator | None) -> None:
        self.flow, self.z0, self.graph, self.c, self.operator = flow, z0, graph, c, operator

    def operator_at(self, z: Tensor) -> Operator:
        if self.operator is not None:
            return self.operator
        return self.flow.diffusivity(z, self.graph, self.flow.manifold)

    def __call__(self, t: Tensor | float, z: Tensor) -> Tensor:
        operator, flow = self.operator_at(z), self.flow
        if operator.everywhere is None and operator.local is not None:
            return diffuse(z, self.graph, operator.local, self.c, self.z0, flow.eta, flow.activation)
        v = operator.tangent_sum(z, self.graph, self.c)
        return advance(z, v, self.c, self.z0, flow.eta, flow.activation)
