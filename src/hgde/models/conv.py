"""Hyperbolic graph diffusion as a layer for PyG models."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hgde.diffusion import Diffusivity, GraphFlow, make_diffusivity
from hgde.diffusion.flow import Activation
from hgde.geometry import SPACES, make_space
from hgde.graph import Graph
from hgde.kernels.ops.graphs import by_receiver
from hgde.models.block import HPDEBlock
from hgde.models.layers import Encoder, to_tangent
from hgde.sections import choose
from hgde.solvers import Method


class HGDEConv(nn.Module):
    """Hyperbolic graph diffusion as a layer that drops into a PyG model: ``forward(x, edge_index) -> [N, out]``.

    Euclidean in, Euclidean out: features are encoded on a space, diffuse for a time, and are read off by ``log_o``.

    Args:
        in_channels, out_channels: widths of the features.
        time, method, step: how long and by what solver to diffuse.
        diffusivity: a name of :data:`hgde.diffusion.DIFFUSIVITIES`, or a module of your own.
        eta: residual weights, ``None`` for no residual.
        activation: inside the flow, a name or any function of a tensor.
        space: a name of :data:`hgde.geometry.SPACES`; encoder and flow have one each.
        curvature: ``c`` at the start, where the space has one; trained unless ``learn_curvature`` is off.
        options: the diffusivity's own, such as ``heads=4``.

    >>> import torch
    >>> layer = HGDEConv(8, 4)
    >>> layer(torch.randn(3, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    torch.Size([3, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        time: float = 2.0,
        method: str | Method = "heuler",
        step: float | None = None,
        diffusivity: str | Diffusivity = "isotropic",
        eta: tuple[float, float, float] | None = (1.0, 0.6, 0.1),
        activation: Activation = "identity",
        space: str = "ball",
        curvature: float | None = None,
        learn_curvature: bool | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        given = {"curvature": curvature, "learn_curvature": learn_curvature}
        chosen = choose(SPACES, space, {name: value for name, value in given.items() if value is not None})
        source, target = (make_space(chosen, out_channels) for _ in range(2))
        self.encoder = Encoder(in_channels, out_channels, source, target)
        if isinstance(diffusivity, str):
            diffusivity = make_diffusivity(diffusivity, out_channels, **options)
        elif options:
            raise ValueError(f"a diffusivity given as a module has its options already, got {', '.join(options)}")
        self.block = HPDEBlock(GraphFlow(target, diffusivity, eta, activation=activation), time, method, step)
        self._last: tuple[Tensor, int, int, Graph] | None = None

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        """``x [N, in]``; ``edge_index [2, E]`` of directed edges (source, target), used as they are."""
        graph = edge_index if isinstance(edge_index, Graph) else self._graph(edge_index, len(x))
        return to_tangent(self.block(self.encoder(x), graph), self.block.flow.manifold)

    def _graph(self, edge_index: Tensor, num_nodes: int) -> Graph:
        if torch.compiler.is_compiling():
            return Graph(*by_receiver(edge_index, num_nodes))
        version = edge_index._version  # counts changes in place
        known = self._last
        if known is None or known[0] is not edge_index or known[1:3] != (version, num_nodes):
            graph = Graph.from_edges(edge_index, num_nodes, undirected=False, self_loops=True, merge_duplicates=False)
            known = self._last = (edge_index, version, num_nodes, graph)
        return known[3]
