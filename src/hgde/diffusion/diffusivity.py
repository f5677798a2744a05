"""Diffusivities: how strongly a node is drawn to each of the others.

A diffusivity is a module that turns a state into an :class:`Operator`. It never builds an ``N x N`` table. To use one
of your own, subclass :class:`Diffusivity` and return ``Operator(local=EdgeWeights(values))``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from hgde.geometry import PoincareBall
from hgde.graph import Graph
from hgde.kernels import (
    AttentionWeights,
    ChannelWeights,
    EdgeWeights,
    LocalWeights,
    tangent_sum,
    tangent_sum_global,
    tangent_sum_global_linear,
)


@dataclass(frozen=True, eq=False)
class GlobalWeights:
    """Weights between all pairs, stated by queries and keys ``[N, H, d]``; exact, or by a linear-cost feature map."""

    query: Tensor
    key: Tensor
    exact: bool = True


@dataclass(frozen=True, eq=False)
class Operator:
    """``(1 - beta) * local + beta * global``, ready to be applied to a state."""

    local: LocalWeights | None = None
    everywhere: GlobalWeights | None = None
    beta: Tensor | float = 0.0

    def tangent_sum(self, z: Tensor, graph: Graph, c: Tensor) -> Tensor:
        """``v_i = sum_j a_ij log_{z_i}(z_j)`` (paper eq. hyperbolic-graph-diffusion-equation)."""
        if len(z) == 0:
            return torch.zeros_like(z)
        parts = []
        if self.local is not None:
            near = tangent_sum(z, graph, self.local, c)
            parts.append(near if self.everywhere is None else (1 - self.beta) * near)
        if self.everywhere is not None:
            streamed = tangent_sum_global if self.everywhere.exact else tangent_sum_global_linear
            parts.append(self.beta * streamed(z, self.everywhere.query, self.everywhere.key, c))
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


class Diffusivity(nn.Module):
    """Base of all diffusivities.

    ``constant_in_time`` says that the operator does not depend on the state, so that a solve asks for it only once.
    """

    constant_in_time = False

    def forward(self, z: Tensor, graph: Graph, manifold: PoincareBall) -> Operator:
        raise NotImplementedError

    def prepare(self, graph: Graph) -> None:
        """Work out what depends on the graph alone (called once, before training)."""


def isotropic_weights(graph: Graph, dtype: torch.dtype) -> Tensor:
    """``1 / sqrt(d_i d_j)`` on each edge; ``d`` counts arriving edges (departing ones for the sender)."""
    arriving = graph.degree.to(dtype)
    leaving = arriving if graph.is_symmetric else graph.by_source[0].diff().to(dtype)
    return arriving.rsqrt()[graph.rows] * leaving.rsqrt()[graph.indices]


class Isotropic(Diffusivity):
    """The normalised adjacency, ``a_ij = 1 / sqrt(d_i d_j)``."""

    constant_in_time = True

    def __init__(self) -> None:
        super().__init__()
        self._known = _Remember(isotropic_weights)

    def prepare(self, graph: Graph) -> None:
        self._known(graph, torch.get_default_dtype())

    def forward(self, z: Tensor, graph: Graph, manifold: PoincareBall) -> Operator:
        return Operator(local=EdgeWeights(self._known(graph, z.dtype)))


class LocalAttention(Diffusivity):
    """Graph attention in the tangent space at the origin, averaged over heads.

    ``a_ij = softmax_j LeakyReLU(a . [W u_i, W u_j])`` with ``u = log_o z``. Only node scores ``[N, H]`` are formed.
    """

    def __init__(self, width: int, heads: int = 1, negative_slope: float = 0.2) -> None:
        super().__init__()
        self.transform = nn.Parameter(torch.empty(width, heads * width))
        self.target = nn.Parameter(torch.empty(heads, width))
        self.source = nn.Parameter(torch.empty(heads, width))
        self.heads, self.negative_slope = heads, negative_slope
        for parameter in self.parameters():
            nn.init.xavier_uniform_(parameter)

    def forward(self, z: Tensor, graph: Graph, manifold: PoincareBall) -> Operator:
        tangent = manifold.logmap0(z)
        # a . (W u) = (W a) . u: the product with W never happens per node and channel.
        split = self.transform.view(-1, self.heads, self.target.shape[1])
        target = tangent @ torch.einsum("ihd,hd->ih", split, self.target)
        source = tangent @ torch.einsum("ihd,hd->ih", split, self.source)
        return Operator(local=AttentionWeights(target, source, self.negative_slope))


class LocalRicci(Diffusivity):
    """Channel-wise softmax over neighbours of an MLP of the Ollivier-Ricci curvature.

    The MLP ``1 -> d -> LeakyReLU -> d`` is applied to the distinct values of the curvature only.
    """

    constant_in_time = True

    def __init__(self, width: int, alpha: float = 0.5) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(1, width), nn.LeakyReLU(0.2), nn.Linear(width, width))
        self.alpha = alpha
        self._known = _Remember(self._curvatures)

    def _curvatures(self, graph: Graph, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        from hgde.graph.measures.ricci import ollivier_ricci

        values, index = torch.unique(ollivier_ricci(graph, alpha=self.alpha), return_inverse=True)
        # How often each value occurs among the neighbours of a node: the normaliser is this matrix times the table.
        pairs, counts = torch.unique(graph.rows * values.numel() + index, return_counts=True)
        occurrences = torch.sparse_coo_tensor(
            torch.stack([pairs // max(values.numel(), 1), pairs % max(values.numel(), 1)]),
            counts.to(dtype),
            (graph.num_nodes, values.numel()),
            is_coalesced=True,
            check_invariants=False,
        )
        return values.to(dtype).unsqueeze(1), index, occurrences

    def prepare(self, graph: Graph) -> None:
        self._known(graph, torch.get_default_dtype())

    def forward(self, z: Tensor, graph: Graph, manifold: PoincareBall) -> Operator:
        values, index, occurrences = self._known(graph, z.dtype)
        logits = self.mlp(values)
        # One table serves all rows, so its maximum may be far above a row's own: bounded below, no row's sum vanishes.
        table = torch.exp((logits - logits.amax(0, keepdim=True)).clamp_min(-30.0)) if values.numel() else logits
        total = torch.sparse.mm(occurrences, table) if values.numel() else z.new_ones(graph.num_nodes, table.shape[1])
        scale = torch.where(total > 0, total, torch.ones_like(total)).reciprocal()
        return Operator(local=ChannelWeights(table, index, scale))


class Global(Diffusivity):
    """``beta * g_ij + (1 - beta) * local_ij``: a global part over all pairs, mixed with a local one.

    ``g`` is the row-normalised ``sigmoid(q_i . k_j)``, queries and keys linear in ``log_o z``, averaged over heads. The
    paper's global scheme has the normalised adjacency as its local part, its local-global scheme an anisotropic one.

    Args:
        local: the local part.
        beta: share of the global part.
        learn_beta: train it (kept in (0, 1) by a sigmoid).
        exact: all pairs, streamed; else a linear-cost approximation.
    """

    def __init__(
        self,
        width: int,
        local: Diffusivity,
        heads: int = 1,
        beta: float = 0.5,
        learn_beta: bool = False,
        exact: bool = True,
    ) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(width, heads * width))
        self.key = nn.Parameter(torch.empty(width, heads * width))
        nn.init.xavier_uniform_(self.query)
        nn.init.xavier_uniform_(self.key)
        self.local, self.heads, self.exact = local, heads, exact
        self.fixed_beta = beta
        bounded = min(max(beta, 1e-3), 1 - 1e-3)
        self.beta_logit = nn.Parameter(torch.logit(torch.tensor(bounded))) if learn_beta else None

    @property
    def beta(self) -> Tensor | float:
        return self.fixed_beta if self.beta_logit is None else torch.sigmoid(self.beta_logit)

    def prepare(self, graph: Graph) -> None:
        self.local.prepare(graph)

    def forward(self, z: Tensor, graph: Graph, manifold: PoincareBall) -> Operator:
        tangent = manifold.logmap0(z)
        query, key = ((tangent @ matrix).unflatten(1, (self.heads, -1)) for matrix in (self.query, self.key))
        near = self.local(z, graph, manifold)
        return replace(near, everywhere=GlobalWeights(query, key, self.exact), beta=self.beta)


class _Remember:
    """Remembers what was worked out for the last graph, per dtype. Holds the graph, so its identity stays valid."""

    def __init__(self, compute: Callable[[Graph, torch.dtype], object]) -> None:
        self._compute = compute
        self._graph: Graph | None = None
        self._values: dict[torch.dtype, object] = {}

    def __call__(self, graph: Graph, dtype: torch.dtype):  # type: ignore[no-untyped-def]  # as the function it wraps
        if graph is not self._graph:
            self._graph, self._values = graph, {}
        if dtype not in self._values:
            self._values[dtype] = self._compute(graph, dtype)
        return self._values[dtype]


def _make_local(kind: str, width: int, heads: int, ricci_alpha: float) -> Diffusivity:
    if kind == "attention":
        return LocalAttention(width, heads)
    return LocalRicci(width, ricci_alpha) if kind == "ricci" else Isotropic()


def make_diffusivity(
    name: str,
    width: int,
    *,
    local: str = "attention",
    heads: int = 1,
    beta: float = 0.5,
    learn_beta: bool = False,
    ricci_alpha: float = 0.5,
) -> Diffusivity:
    """The diffusivity of that name (see :data:`DIFFUSIVITIES`)."""
    if name not in DIFFUSIVITIES:
        raise ValueError(f"unknown diffusivity {name!r}; known are {', '.join(DIFFUSIVITIES)}")
    if name in ("isotropic", "attention", "ricci"):
        return _make_local(name, width, heads, ricci_alpha)
    near = _make_local(local if name == "local-global" else "isotropic", width, heads, ricci_alpha)
    return Global(width, near, heads, beta, learn_beta, exact=name != "linear-global")


DIFFUSIVITIES = ("isotropic", "attention", "ricci", "global", "local-global", "linear-global")
