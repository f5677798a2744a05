"""A global part over all pairs of nodes, mixed with the isotropic one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from hgde.diffusion.diffusivities.isotropic import Isotropic
from hgde.diffusion.diffusivity import DIFFUSIVITIES, Diffusivity
from hgde.diffusion.operator import GlobalWeights, Operator
from hgde.geometry import Manifold
from hgde.graph import Graph
from hgde.sections import Section, setting


@dataclass(frozen=True)
class MixtureSettings(Section):
    """What every mixture of a global and a local part takes."""

    beta: float = setting(0.5, "Share of the global part.", at_least=0, at_most=1)
    learn_beta: bool = setting(False, "Train that share, starting from beta.")


class Mixture(Diffusivity):
    """``beta * g_ij + (1 - beta) * local_ij``.

    ``g`` is the row-normalised ``sigmoid(q_i . k_j)``, queries and keys linear in ``log_o z``, averaged over heads. A
    trained ``beta`` is kept in (0, 1) by a sigmoid.
    """

    landmarks: int | None = None
    """How many nodes stand for all in the global sums; ``None``: all are summed over."""

    def __init__(self, width: int, local: Diffusivity, heads: int = 1, beta: float = 0.5, learn_beta: bool = False):
        super().__init__()
        self.query = nn.Parameter(torch.empty(width, heads * width))
        self.key = nn.Parameter(torch.empty(width, heads * width))
        nn.init.xavier_uniform_(self.query)
        nn.init.xavier_uniform_(self.key)
        self.local, self.heads, self.fixed_beta = local, heads, beta
        bounded = min(max(beta, 1e-3), 1 - 1e-3)
        self.beta_logit = nn.Parameter(torch.logit(torch.tensor(bounded))) if learn_beta else None

    @property
    def beta(self) -> Tensor | float:
        return self.fixed_beta if self.beta_logit is None else torch.sigmoid(self.beta_logit)

    @property
    def kernels(self) -> tuple[str, ...]:
        return (*self.local.kernels, "global" if self.landmarks is None else "advance")

    def prepare(self, graph: Graph) -> None:
        self.local.prepare(graph)

    def forward(self, z: Tensor, graph: Graph, manifold: Manifold) -> Operator:
        tangent = manifold.logmap0(z)
        query, key = ((tangent @ matrix).unflatten(1, (self.heads, -1)) for matrix in (self.query, self.key))
        near = self.local(z, graph, manifold)
        return replace(near, everywhere=GlobalWeights(query, key, self.landmarks), beta=self.beta)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, beta={self.fixed_beta}, learn_beta={self.beta_logit is not None}"


@DIFFUSIVITIES.register("global")
class Global(Mixture):
    """The paper's global scheme: ``beta * g_ij + (1 - beta) * a_ij``, ``a`` the row-stochastic isotropic weights.

    Rows sum to less than one. With the printed local part: ``local-global`` with ``isotropic-printed``.

    >>> import torch
    >>> from hgde import Graph, PoincareBall
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> operator = Global(Global.Settings(), 4)(torch.zeros(3, 4), path, PoincareBall())
    >>> operator.everywhere.rows(torch.tensor([0])).shape
    torch.Size([1, 3])
    """

    @dataclass(frozen=True)
    class Settings(MixtureSettings):
        heads: int = setting(1, "Attention heads of the global part.", at_least=1)

    def __init__(self, options: Settings | None = None, width: int = 16) -> None:
        chosen = options or self.Settings()
        super().__init__(width, Isotropic(), chosen.heads, chosen.beta, chosen.learn_beta)
