"""What a diffusivity is: how strongly a node is drawn to each of the others.

A new one is one file in :mod:`hgde.diffusion.diffusivities` (or in a package of your own) that registers a subclass of
:class:`Diffusivity`. It never builds an ``N x N`` table: it returns an :class:`Operator`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from torch import Tensor, nn

from hgde.diffusion.operator import Operator
from hgde.geometry import Manifold
from hgde.graph import Graph
from hgde.registry import Registry
from hgde.sections import Chosen, Section, choose

D = TypeVar("D", bound="type[Diffusivity]")


class Diffusivity(nn.Module):
    """Base of all diffusivities; subclasses take ``(options, width)``, ``options`` an instance of their ``Settings``.

    ``constant_in_time`` says that the operator does not depend on the state, so that a solve asks for it only once.
    """

    Settings: ClassVar[type[Section]] = Section
    constant_in_time: ClassVar[bool] = False

    def __init__(self, options: Section | None = None, width: int = 0) -> None:
        super().__init__()

    def forward(self, z: Tensor, graph: Graph, manifold: Manifold) -> Operator:
        """The weights at the state ``z [N, d]``."""
        raise NotImplementedError

    def prepare(self, graph: Graph) -> None:
        """Work out what depends on the graph alone (called once, before training)."""


def _accepts(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Diffusivity)


_HOME = ("hgde.diffusion.diffusivities",)
DIFFUSIVITIES: Registry[type[Diffusivity]] = Registry("diffusivity", "diffusivities", _HOME, _accepts)
LOCAL: Registry[type[Diffusivity]] = Registry("local diffusivity", "local_diffusivities", _HOME, _accepts)
"""Those that weigh edges alone, which a global part can be mixed with."""


def register_local(name: str) -> Callable[[D], D]:
    """Decorator: a diffusivity that weighs edges alone, by itself or as the local part of a mixture."""

    def add(entry: D) -> D:
        DIFFUSIVITIES.add(name, entry)
        LOCAL.add(name, entry)
        return entry

    return add


<<<<<<< HEAD
def make_diffusivity(name: str | Chosen, width: int, **options: Any) -> Diffusivity:
    """The diffusivity of a name with its options (``"package.module:Name"`` works too), or of a settings' choice."""
    chosen = choose(DIFFUSIVITIES, name, options) if isinstance(name, str) else name
    made: Diffusivity = chosen.entry(chosen.options, width)
    return made
=======
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
>>>>>>> data
