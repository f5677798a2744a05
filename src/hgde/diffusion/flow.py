"""The flow of graph diffusion on a manifold: gradient, diffusivity, divergence, exponential map, residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from hgde.diffusion.diffusivities.isotropic import Isotropic
from hgde.diffusion.diffusivity import Diffusivity
from hgde.diffusion.frames import in_frame
from hgde.diffusion.operator import Operator
from hgde.geometry import Manifold, PoincareBall
from hgde.graph import Graph
from hgde.kernels import advance, diffuse
from hgde.kernels.reference import resolve_activation

Activation = str | Callable[[Tensor], Tensor]


class GraphFlow(nn.Module):
    """The flow ``F`` of the paper's equations hyperbolic-graph-diffusion-equation and residual-diffusion-hyperbolic.

    ``v_i = sigma(sum_j a_ij log_{z_i}(z_j))``, ``dz_i = exp_{z_i}(v_i)`` and, with ``eta``,
    ``F(z)_i = midpoint({dz_i, z_i, z_i(0)}; eta)``.

    Args:
        manifold: the space it runs on, any with exp and log; the ball has fused passes.
        diffusivity: weights ``a_ij``.
        eta: weights of step, state and start in the residual; ``None`` leaves the residual out.
        learn_eta: train them.
        activation: ``sigma``, a name or any function of a tensor; on channels, see :mod:`hgde.diffusion.frames`.

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> ball = PoincareBall()
    >>> graph = Graph.from_edges(torch.tensor([[0], [1]]), 2)
    >>> z = torch.tensor([[0.4, 0.0], [-0.4, 0.0]])
    >>> moved = GraphFlow(ball, eta=None).bind(z, graph)(0.0, z)      # each halfway to the other
    >>> bool(moved.norm(dim=1).max() < 0.1)
    True
    """

    def __init__(
        self,
        manifold: Manifold,
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
            if learn_eta:
                raise ValueError("learn_eta has nothing to train without eta; give three weights (step, state, start)")
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
        return BoundFlow(self, z0, graph, operator)

    def forward(self, z: Tensor, graph: Graph, z0: Tensor | None = None) -> Tensor:
        """One evaluation ``F(z)``; the start is ``z`` itself unless given."""
        return self.bind(z if z0 is None else z0, graph)(0.0, z)

    def extra_repr(self) -> str:
        return f"eta={self.eta}, activation={self.activation}"


class BoundFlow:
    """A flow with its graph and start; what is constant in time was worked out when it was made.

    >>> import torch
    >>> from hgde import Graph, GraphFlow, PoincareBall
    >>> graph, z = Graph.from_edges([(0, 1)]), torch.tensor([[0.4, 0.0], [-0.4, 0.0]])
    >>> bound = GraphFlow(PoincareBall()).bind(z, graph)
    >>> type(bound).__name__, bound(0.0, z).shape
    ('BoundFlow', torch.Size([2, 2]))
    """

    def __init__(self, flow: GraphFlow, z0: Tensor, graph: Graph, operator: Operator | None) -> None:
        self.flow, self.z0, self.graph, self.operator = flow, z0, graph, operator
        self.manifold = flow.manifold
        self.c = flow.manifold.c if isinstance(flow.manifold, PoincareBall) else None

    def operator_at(self, z: Tensor) -> Operator:
        if self.operator is not None:
            return self.operator
        return self.flow.diffusivity(z, self.graph, self.manifold)

    def __call__(self, t: Tensor | float, z: Tensor) -> Tensor:
        operator, flow = self.operator_at(z), self.flow
        if self.c is None:
            return self.advance_plainly(z, operator.tangent_sum(z, self.graph, self.manifold))
        weights = operator.edges_alone
        if weights is not None:
            return diffuse(z, self.graph, weights, self.c, self.z0, flow.eta, flow.activation)
        v = operator.tangent_sum(z, self.graph, self.manifold)
        return advance(z, v, self.c, self.z0, flow.eta, flow.activation)

    def advance_plainly(self, z: Tensor, v: Tensor) -> Tensor:
        """``F(z)`` from the tangent sum in plain torch, on any manifold."""
        manifold, flow = self.manifold, self.flow
        if flow.activation != "identity":
            v = in_frame(manifold, z, v, resolve_activation(flow.activation))
        moved = manifold.expmap(z, v)
        if flow.eta is None:
            return moved
        weights = flow.eta.to(z) if isinstance(flow.eta, Tensor) else flow.eta
        return manifold.midpoint((moved, z, self.z0), weights)
