"""A piece of a graph has the weights that its nodes have in the whole."""

import pytest
import torch

from hgde.diffusion import make_diffusivity
from hgde.diffusion.degrees import degrees
from hgde.diffusion.diffusivity import LOCAL
from hgde.geometry import PoincareBall
from hgde.graph import Graph, PieceGraph
from hgde.graph.measures.ricci import ollivier_ricci

OWN = 5


def whole(weighted):
    """Directed, with two loops; the first five nodes are the piece."""
    generator = torch.Generator().manual_seed(0)
    table = torch.rand(9, 9, generator=generator) > 0.55
    table[torch.arange(9), torch.arange(9)] = False
    table[1, 1] = table[7, 7] = True
    graph = Graph.from_edges(table.nonzero().T.flip(0), 9, undirected=False, self_loops=True)
    if not weighted:
        return graph
    return Graph(graph.indptr, graph.indices, 0.5 + torch.rand(graph.num_edges, generator=generator).double())


def cut(graph):
    """The rows of the first nodes; halo nodes stay where they are and have no rows."""
    end = int(graph.indptr[OWN])
    indptr = torch.cat([graph.indptr[: OWN + 1], graph.indptr[OWN].expand(graph.num_nodes - OWN)])
    arriving, leaving = degrees(graph)
    loops = torch.zeros(graph.num_nodes, dtype=torch.bool)
    loops[graph.rows[graph.rows == graph.indices]] = True
    weights = None if graph.weights is None else graph.weights[:end]
    return PieceGraph(
        indptr, graph.indices[:end], weights, own=OWN, degrees=torch.stack([arriving, leaving]), loops=loops
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
def test_degrees_are_those_in_the_whole(weighted, self_loops):
    graph = whole(weighted)
    for dtype in (torch.float32, torch.float64):
        for one, other in zip(
            degrees(graph, dtype, self_loops=self_loops),
            degrees(cut(graph), dtype, self_loops=self_loops),
            strict=True,
        ):
            torch.testing.assert_close(one, other)
    arriving, leaving = degrees(graph, self_loops=self_loops)
    dense = torch.zeros(9, 9, dtype=torch.float64)
    dense[graph.rows, graph.indices] = 1.0 if graph.weights is None else graph.weights
    if self_loops:
        dense += torch.diag((dense.diagonal() == 0).double())
    torch.testing.assert_close(arriving, dense.sum(1))
    torch.testing.assert_close(leaving, dense.sum(0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in LOCAL]
    + [(name, {"self_loops": True}) for name in ("attention", "ricci", "isotropic-printed")],
)
def test_own_nodes_are_moved_as_in_the_whole(name, options, weighted):
    graph, ball = whole(weighted), PoincareBall(0.7)
    piece = cut(graph)
    torch.manual_seed(0)
    module = make_diffusivity(name, 3, **options).double()
    generator = torch.Generator().manual_seed(1)
    z = ball.expmap0(0.4 * torch.randn(9, 3, generator=generator, dtype=torch.float64))
    with torch.no_grad():
        expected = module(z, graph, ball).tangent_sum(z, graph, ball)[:OWN]
        if name == "ricci":
            curvature = ollivier_ricci(graph, alpha=module.alpha, cache=False)
            module.know(piece, curvature[: piece.num_edges])
        moved = module(z, piece, ball).tangent_sum(z, piece, ball)[:OWN]
    torch.testing.assert_close(moved, expected)
    assert float(moved.abs().max()) > 0.01
    assert piece.num_halo == 4
