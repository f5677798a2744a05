"""The HPDE block: a graph flow, integrated over time by any solver."""

from __future__ import annotations

import logging
from typing import Literal

import torch
from torch import Tensor, nn

from hgde.diffusion import BoundFlow, GraphFlow
from hgde.diffusion.stability import stability
from hgde.geometry import Manifold, PoincareBall
from hgde.graph import Graph
from hgde.kernels import FusedBall, diffuse_steps
from hgde.sections import Chosen
from hgde.solvers import Flow, HEuler, Method, Solution, configured, odeint
from hgde.solvers.registry import resolve

logger = logging.getLogger(__name__)


class HPDEBlock(nn.Module):
    """``z(T) = HPDESolve(z(0), F, 0, T)`` on a graph.

    Args:
        flow: the flow to integrate.
        time: ``T``.
        method: any method of :data:`hgde.solvers.METHODS`, by name or as an object.
        step: step of fixed-step methods.
        rtol, atol: tolerances of adaptive methods.
        gradient: ``"backprop"``, or ``"recompute"`` (exact, keeps one state per step).

    >>> import torch
    >>> from hgde import Graph, GraphFlow, PoincareBall
    >>> block = HPDEBlock(GraphFlow(PoincareBall()), time=4.0, method="rk4", step=0.5)
    >>> graph = Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), 3)
    >>> block(0.1 * torch.randn(3, 2), graph).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        flow: GraphFlow,
        time: float = 8.0,
        method: str | Method = "heuler",
        step: float = 1.0,
        rtol: float = 1e-3,
        atol: float = 1e-4,
        gradient: Literal["backprop", "recompute"] = "backprop",
    ) -> None:
        super().__init__()
        self.flow, self.time, self.step = flow, time, step
        self.method = resolve(method)
        self.rtol, self.atol, self.gradient = rtol, atol, gradient
        self._is_checked = False

    @classmethod
    def from_settings(
        cls, flow: GraphFlow, time: float, solver: Chosen, gradient: Literal["backprop", "recompute"] = "backprop"
    ) -> HPDEBlock:
        """A block whose solver is a choice among :data:`hgde.solvers.SOLVERS`."""
        method, call = configured(solver)
        return cls(flow, time, method, gradient=gradient, **call)

    def forward(self, z0: Tensor, graph: Graph) -> Tensor:
        """Points at time ``T``, ``[N, d]``."""
        bound = self._bind(z0, graph)
        flow, weights = self.flow, None if bound.operator is None else bound.operator.edges_alone
        if self._is_plain_iteration() and bound.c is not None and weights is not None:
            # heuler with steps of one is F applied T times; with constant weights one kernel call does them all.
            return diffuse_steps(z0, graph, weights, bound.c, int(self.time), z0, flow.eta, flow.activation)
        return self._solve(bound, [0.0, self.time]).final

    def _is_plain_iteration(self) -> bool:
        return isinstance(self.method, HEuler) and self.step == 1.0 and float(self.time).is_integer()

    def _bind(self, z0: Tensor, graph: Graph) -> BoundFlow:
        bound = self.flow.bind(z0, graph)
        if not self._is_checked and not torch.compiler.is_compiling():
            self._is_checked = True
            verdict = stability(bound, self.method, self.step)
            if not verdict.is_stable:
                logger.warning("%s", verdict)
        return bound

    def solve(self, z0: Tensor, graph: Graph, times: list[float]) -> Solution:
        """The solution at the given times, with its statistics."""
        return self._solve(self._bind(z0, graph), times)

    def _solve(self, bound: BoundFlow, times: list[float]) -> Solution:
        adaptive = self.method.adaptive
        return odeint(
            Flow(bound),
            bound.z0,
            times,
            manifold=_solving_space(self.flow.manifold),
            method=self.method,
            gradient=self.gradient,
            step=None if adaptive else self.step,
            rtol=self.rtol if adaptive else None,
            atol=self.atol if adaptive else None,
        )

    def trajectory(self, z0: Tensor, graph: Graph) -> tuple[list[float], Tensor]:
        """Times ``0, step, ..., T`` and the states there, ``[len(times), N, d]``."""
        count = max(1, round(self.time / self.step))
        times = [self.time * k / count for k in range(count + 1)]
        return times, self.solve(z0, graph, times).states

    def extra_repr(self) -> str:
        return f"time={self.time}, method={self.method.name}, step={self.step}, gradient={self.gradient}"


def _solving_space(manifold: Manifold) -> Manifold:
    return FusedBall.for_solve(manifold) if isinstance(manifold, PoincareBall) else manifold
