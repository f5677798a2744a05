"""The HPDE block: a graph flow, integrated over time by any solver."""

from __future__ import annotations

import logging
from functools import lru_cache
from itertools import pairwise
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from hgde.diffusion import BoundFlow, GraphFlow
from hgde.diffusion.diffusivities.attention import Attention
from hgde.diffusion.recording import NotRecordable, record
from hgde.diffusion.stability import stability
from hgde.geometry import Manifold, PoincareBall
from hgde.geometry.numerics import is_eager
from hgde.graph import Graph
from hgde.kernels import EdgeWeights, FusedBall, Reach, attend_steps, diffuse_steps, follow, follows, reach_of
from hgde.kernels.dispatch import use_fused
from hgde.kernels.plans import Recipe
from hgde.sections import Chosen
from hgde.solvers import HRK4, Flow, HEuler, InputError, Method, Solution, configured, odeint
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.loop import fixed_grid
from hgde.solvers.method import Tolerances
from hgde.solvers.odeint import is_adaptive
from hgde.solvers.registry import resolve

logger = logging.getLogger(__name__)

MOST_STEPS = 10_000


class AnyFlow(Protocol):
    """A flow with its graph and start."""

    z0: Tensor

    def __call__(self, t: Tensor | float, z: Tensor) -> Tensor: ...


class HPDEBlock(nn.Module):
    """``z(T) = HPDESolve(z(0), F, 0, T)`` on a graph.

    Args:
        flow: the flow to integrate.
        time: ``T``.
        method: any method of :data:`hgde.solvers.SOLVERS`, by name or as an object.
        step: step of fixed-step methods, 1 by default.
        rtol, atol: tolerances of adaptive methods, 1e-3 and 1e-4 by default, or of ``implicit_adams``'s corrector.
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
        step: float | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        gradient: Literal["backprop", "recompute"] = "backprop",
    ) -> None:
        super().__init__()
        self.flow, self.time, self.gradient = flow, time, gradient
        self.method = resolve(method)
        if self.method.adaptive:
            if step is not None:
                raise InputError(f"{self.method.name} chooses its steps by rtol and atol; leave out step")
            rtol, atol = 1e-3 if rtol is None else rtol, 1e-4 if atol is None else atol
        is_adaptive(self.method, step, rtol, atol)
        #: Also the distance of the times of :meth:`trajectory`.
        self.step = 1.0 if step is None else step
        if time / self.step > MOST_STEPS:
            raise InputError(f"{time:g} in steps of {self.step:g} is more than {MOST_STEPS:,} steps; take larger ones")
        self.rtol, self.atol = rtol, atol
        self._is_checked = False

    @classmethod
    def from_settings(
        cls, flow: GraphFlow, time: float, solver: Chosen, gradient: Literal["backprop", "recompute"] = "backprop"
    ) -> HPDEBlock:
        """A block whose solver is a choice among :data:`hgde.solvers.SOLVERS`."""
        method, call = configured(solver)
        return cls(flow, time, method, gradient=gradient, **call)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Parts of :func:`hgde.kernels.warm_up` that training needs."""
        if not isinstance(self.flow.manifold, PoincareBall):
            return ()
        if self.is_plain_iteration and isinstance(self.flow.diffusivity, Attention):
            return self.flow.diffusivity.kernels if self.flow.diffusivity.self_loops else ("attending",)
        if isinstance(self.method, HEuler):
            return self.flow.diffusivity.kernels if self.step == 1.0 else (*self.flow.diffusivity.kernels, "solver")
        if self.flow.diffusivity.constant_in_time and self.flow.diffusivity.kernels == ("edge",) and self.recipe:
            return ("stages",)
        return (*self.flow.diffusivity.kernels, "solver", *(() if isinstance(self.method, HRK4) else ("transport",)))

    def reach(self, graph: Graph, nodes: Tensor, like: Tensor) -> Reach | None:
        """What the points of some nodes at time ``T`` depend on, where a start like this can be restricted to it."""
        flow, diffusivity = self.flow, self.flow.diffusivity
        is_plain = isinstance(flow.manifold, PoincareBall) and isinstance(flow.activation, str) and is_eager()
        if not (is_plain and nodes.dim() == 1 and use_fused("auto", like)):
            return None
        weighs_edges = diffusivity.constant_in_time and diffusivity.kernels == ("edge",)
        attends = isinstance(diffusivity, Attention) and not diffusivity.self_loops
        if self.is_plain_iteration:
            return reach_of(graph, nodes, int(self.time)) if weighs_edges or attends else None
        recipe = self.recipe if weighs_edges else None
        return None if recipe is None else reach_of(graph, nodes, recipe.plan.evaluations)

    def forward(self, z0: Tensor, graph: Graph, reach: Reach | None = None) -> Tensor:
        """Points at time ``T``, ``[N, d]``; with ``reach``, from starts of the nodes within it to those asked for."""
        bound = self._bind(z0, graph)
        flow, weights = self.flow, None if bound.operator is None else bound.operator.edges_alone
        if self.is_plain_iteration and bound.c is not None and weights is not None:
            # heuler with steps of one is F applied T times; with constant weights one kernel call does them all.
            return diffuse_steps(
                z0, graph, weights, bound.c, int(self.time), z0, flow.eta, flow.activation, reach=reach
            )
        rule = flow.diffusivity.rule(graph, z0.dtype) if self.is_plain_iteration and bound.c is not None else None
        if rule is not None and bound.c is not None:
            attended = z0, graph, rule, bound.c, int(self.time), z0, flow.eta, flow.activation
            return attend_steps(*attended, reach=reach)
        if bound.c is not None and isinstance(weights, EdgeWeights) and isinstance(flow.activation, str):
            recipe = self.recipe if follows(z0, weights) else None
            if recipe is not None:
                return follow(z0, graph, weights, bound.c, recipe, z0, flow.eta, flow.activation, reach)
        if reach is not None:
            return self(reach.among_all(z0, graph), graph).index_select(0, reach.rows[: reach.counts[-1]])
        if torch.compiler.is_compiling() and not self.method.adaptive:
            return self._march(bound)
        return self.integrate(bound, [0.0, self.time]).final

    @property
    def recipe(self) -> Recipe | None:
        """What the solver does, if it can be written down."""
        if self.gradient != "backprop" or torch.compiler.is_compiling():
            return None
        return _recipe(self.method, self.time, self.step)

    def _march(self, bound: BoundFlow) -> Tensor:
        """The steps alone, for ``torch.compile`` and ``torch.export``: what :func:`odeint` checks are values."""
        manifold, x = self.flow.manifold, bound.z0
        dynamics = Dynamics(Flow(bound), manifold)
        memory = self.method.start(dynamics, manifold, 0.0, x)
        tolerances = Tolerances(self.rtol or 0.0, self.atol or 0.0)
        for t0, t1 in pairwise(fixed_grid((0.0, self.time), self.step)):
            h = self.step if t1 != self.time else t1 - t0
            result = self.method.step(dynamics, manifold, t0, h, x, memory, tolerances)
            x, memory = result.state, result.memory
        return x

    @property
    def is_plain_iteration(self) -> bool:
        """Whether the solver is the flow applied over and over."""
        return isinstance(self.method, HEuler) and self.step == 1.0 and float(self.time).is_integer()

    def _bind(self, z0: Tensor, graph: Graph) -> BoundFlow:
        self.check(z0, graph)
        return self.flow.bind(z0, graph)

    def check(self, z0: Tensor, graph: Graph) -> None:
        """Warn, once, of a flow that may be unstable; a start of fewer nodes stands for any of all nodes."""
        if self._is_checked or torch.compiler.is_compiling():
            return
        self._is_checked = True
        # Flows that start from some nodes alone have row sums that do not depend on the state.
        whole = z0 if len(z0) == graph.num_nodes else z0.new_zeros(graph.num_nodes, z0.shape[1])
        checked = stability(self.flow.bind(whole, graph), self.method, self.step)
        if not checked.is_stable:
            logger.warning("%s", checked)

    def solve(self, z0: Tensor, graph: Graph, times: list[float]) -> Solution:
        """The solution at the given times, with its statistics."""
        return self.integrate(self._bind(z0, graph), times)

    def integrate(self, bound: AnyFlow, times: list[float]) -> Solution:
        """The solution of a flow that has its graph and start."""
        return odeint(
            Flow(bound),
            bound.z0,
            times,
            manifold=_solving_space(self.flow.manifold),
            method=self.method,
            gradient=self.gradient,
            step=None if self.method.adaptive else self.step,
            rtol=self.rtol,
            atol=self.atol,
        )

    def trajectory(self, z0: Tensor, graph: Graph) -> tuple[list[float], Tensor]:
        """Times ``0, step, ..., T`` and the states there, ``[len(times), N, d]``."""
        count = max(1, round(self.time / self.step))
        times = [self.time * k / count for k in range(count + 1)]
        return times, self.solve(z0, graph, times).states

    def extra_repr(self) -> str:
        return f"time={self.time}, method={self.method.name}, step={self.step}, gradient={self.gradient}"


@lru_cache(maxsize=64)
def _recipe(method: Method, time: float, step: float) -> Recipe | None:
    try:
        return record(method, time, step)
    except NotRecordable as reason:
        logger.debug("%s is stepped through: %s", method.name, reason)
        return None


def _solving_space(manifold: Manifold) -> Manifold:
    return FusedBall.for_solve(manifold) if isinstance(manifold, PoincareBall) else manifold
