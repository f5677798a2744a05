"""The HPDE block: a graph flow, integrated over time by any solver. And the same as a layer for PyG models."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from hgde.diffusion import Diffusivity, GraphFlow, make_diffusivity
from hgde.diffusion.flow import Activation
from hgde.geometry import PoincareBall
from hgde.graph import Graph
from hgde.kernels import FusedBall, diffuse_steps
from hgde.models.encoder import Encoder
from hgde.solvers import SOLVERS, Flow, Method, Solution, odeint


class HPDEBlock(nn.Module):
    """``z(T) = HPDESolve(z(0), F, 0, T)`` on a graph.

    Args:
        flow: the flow to integrate.
        time: ``T``.
        method: any method of :data:`hgde.solvers.SOLVERS`, by name or as an object.
        step: step of fixed-step methods.
        rtol, atol: tolerances of adaptive methods.
        gradient: ``"backprop"``, or ``"recompute"`` (exact, keeps one state per step).
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
        self.flow, self.time, self.method, self.step = flow, time, method, step
        self.rtol, self.atol, self.gradient = rtol, atol, gradient

    def forward(self, z0: Tensor, graph: Graph) -> Tensor:
        """Points at time ``T``, ``[N, d]``."""
        bound = self.flow.bind(z0, graph)
        if self._is_plain_iteration() and bound.operator is not None and bound.operator.local is not None:
            # heuler with steps of one is F applied T times; with constant weights one kernel call does them all.
            return diffuse_steps(
                z0, graph, bound.operator.local, bound.c, int(self.time), z0, self.flow.eta, self.flow.activation
            )
        return self.solve(z0, graph, [0.0, self.time]).final

    def _is_plain_iteration(self) -> bool:
        constant = self.flow.diffusivity.constant_in_time
        return constant and self.method == "heuler" and self.step == 1.0 and float(self.time).is_integer()

    def solve(self, z0: Tensor, graph: Graph, times: list[float]) -> Solution:
        """The solution at the given times, with its statistics."""
        adaptive = (SOLVERS.get(self.method)() if isinstance(self.method, str) else self.method).adaptive
        return odeint(
            Flow(self.flow.bind(z0, graph)),
            z0,
            times,
            manifold=FusedBall.for_solve(self.flow.manifold),
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
        return f"time={self.time}, method={self.method}, step={self.step}, gradient={self.gradient}"


class HGDEConv(nn.Module):
    """Hyperbolic graph diffusion as a layer that drops into a PyG model: ``forward(x, edge_index) -> [N, out]``.

    Euclidean in, Euclidean out: features are encoded on the ball, diffuse for a time, and are read off by ``log_o``.

    Args:
        in_channels, out_channels: widths of the features.
        time, method, step: how long and by what solver to diffuse.
        diffusivity: a name of :data:`hgde.diffusion.DIFFUSIVITIES`, or a module of your own.
        eta: residual weights, ``None`` for no residual.
        curvature: ``c`` at the start; trained unless ``learn_curvature`` is off.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        time: float = 2.0,
        method: str | Method = "heuler",
        step: float = 1.0,
        diffusivity: str | Diffusivity = "isotropic",
        eta: tuple[float, float, float] | None = (1.0, 0.6, 0.1),
        activation: Activation = "identity",
        curvature: float = 1.0,
        learn_curvature: bool = True,
        heads: int = 1,
    ) -> None:
        super().__init__()
        source, target = (PoincareBall(curvature, learnable=learn_curvature) for _ in range(2))
        self.encoder = Encoder(in_channels, out_channels, source, target)
        if isinstance(diffusivity, str):
            diffusivity = make_diffusivity(diffusivity, out_channels, heads=heads)
        self.block = HPDEBlock(GraphFlow(target, diffusivity, eta, activation=activation), time, method, step)
        self._last: tuple[Tensor, int, int, Graph] | None = None

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        """``x [N, in]``; ``edge_index [2, E]`` of directed edges (source, target), used as they are."""
        graph = edge_index if isinstance(edge_index, Graph) else self._graph(edge_index, len(x))
        return self.block.flow.manifold.logmap0(self.block(self.encoder(x), graph))

    def _graph(self, edge_index: Tensor, num_nodes: int) -> Graph:
        version = edge_index._version  # counts changes in place
        known = self._last
        if known is None or known[0] is not edge_index or known[1:3] != (version, num_nodes):
            graph = Graph.from_edges(edge_index, num_nodes, undirected=False, self_loops=True, merge_duplicates=False)
            known = self._last = (edge_index, version, num_nodes, graph)
        return known[3]
