"""Sums of log maps in plain torch."""

import torch

from hgde import Graph
from hgde.diffusion.plain import edge_sum
from hgde.geometry import Euclidean
from hgde.kernels import EdgeWeights


def test_flat_sums_with_constant_weights_equal_those_edge_by_edge():
    """Constant weights go by a sparse product, weights that are trained edge by edge."""
    generator = torch.Generator().manual_seed(0)
    graph = Graph.from_edges(torch.randint(0, 30, (2, 90), generator=generator), 30)
    values, origin = (torch.rand(n, dtype=torch.float64, generator=generator) for n in (graph.num_edges, 30))
    points, along = (torch.randn(30, 5, dtype=torch.float64, generator=generator) for _ in range(2))
    sums, gradients = [], []
    for weights in (values, values.clone().requires_grad_()):
        z = points.clone().requires_grad_()
        sums.append(edge_sum(z, graph, EdgeWeights(weights, origin), Euclidean()))
        gradients.append(torch.autograd.grad((sums[-1] * along).sum(), z)[0])
    torch.testing.assert_close(sums[0], sums[1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-12, atol=1e-12)
