"""Energies: their definitions, the two theorems in flat space, and how they go along a diffusion on the ball."""

import math

import pytest
import torch
from flow_graphs import random_graph, with_weights

from hgde.data.sets.disease_sim import simulate_disease
from hgde.diffusion import GraphFlow, dirichlet_energy, edge_energy, make_diffusivity
from hgde.geometry import Euclidean, Lorentz, PoincareBall
from hgde.graph import Graph
from hgde.models import Encoder, HPDEBlock
from hgde.solvers import HAM


def test_two_nodes_by_hand():
    graph = Graph.from_edges([(0, 1)], 2)
    manifold = PoincareBall(0.5)
    tangent = torch.tensor([[0.3, 0.0], [0.0, -0.4]], dtype=torch.float64)
    z, shrunk = manifold.expmap0(tangent), manifold.expmap0(tangent / math.sqrt(2))
    by_hand = 0.5 * float(manifold.dist(shrunk[0], shrunk[1])) ** 2
    assert float(dirichlet_energy(z, graph, manifold)) == pytest.approx(by_hand, rel=1e-12)
    assert float(edge_energy(z, graph, manifold)) == pytest.approx(0.5 * float(manifold.dist(z[0], z[1])) ** 2)


def test_weights_multiply_and_degrees_are_sums_of_weights():
    graph = with_weights(Graph.from_edges([(0, 1), (1, 2)], 3), torch.tensor([2.0, 2.0, 5.0, 5.0]).double())
    z, flat = torch.tensor([[1.0], [3.0], [-2.0]], dtype=torch.float64), Euclidean()
    assert float(edge_energy(z, graph, flat)) == pytest.approx(0.5 * (2 * 4 + 5 * 25))
    scaled = z[:, 0] / torch.tensor([3.0, 8.0, 6.0]).sqrt()
    by_hand = 0.5 * (2 * (scaled[0] - scaled[1]) ** 2 + 5 * (scaled[1] - scaled[2]) ** 2)
    assert float(dirichlet_energy(z, graph, flat)) == pytest.approx(float(by_hand))


def test_times_of_a_trajectory_are_kept_and_no_edge_means_no_energy():
    states, manifold = 0.1 * torch.ones(5, 3, 2), PoincareBall()
    for energy in (dirichlet_energy, edge_energy):
        assert energy(states, Graph.from_edges([(0, 1)], 3), manifold).shape == (5,)
        assert float(energy(states[0], Graph.from_edges([], 3), manifold)) == 0.0
        with pytest.raises(ValueError, match="3 rows, the graph 4 nodes"):
            energy(states, Graph.from_edges([(0, 1)], 4), manifold)


def test_ball_and_lorentz_have_the_same_energies():
    graph = random_graph(3)
    tangent = torch.randn(graph.num_nodes, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for energy in (dirichlet_energy, edge_energy):
        one, two = (energy(space.expmap0(tangent), graph, space) for space in (PoincareBall(0.7), Lorentz(0.7)))
        torch.testing.assert_close(one, two, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("form", "energy"), [("isotropic", edge_energy), ("symmetric", dirichlet_energy)])
def test_in_flat_space_each_forms_own_energy_never_rises(form, energy):
    flat = Euclidean()
    flow = GraphFlow(flat, make_diffusivity(form, 2), eta=None)
    risen = 0
    for seed in range(200):
        graph = random_graph(seed)
        z = torch.randn(graph.num_nodes, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        before = float(energy(z, graph, flat))
        for _ in range(5):
            z = flow(z, graph)
            after = float(energy(z, graph, flat))
            risen += after > before * (1 + 1e-12) + 1e-15
            before = after
    assert risen == 0


@pytest.mark.parametrize(("form", "energy"), [("isotropic", dirichlet_energy), ("isotropic-printed", edge_energy)])
def test_the_theorem_is_of_that_form_and_that_energy(form, energy):
    """Other pairs do rise somewhere, so the test above can fail."""
    flat = Euclidean()
    flow = GraphFlow(flat, make_diffusivity(form, 2), eta=None)
    risen = 0
    for seed in range(60):
        graph = random_graph(seed)
        z = torch.randn(graph.num_nodes, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        z = torch.ones_like(z) + 0.01 * z
        risen += float(energy(flow(z, graph), graph, flat)) > float(energy(z, graph, flat)) * (1 + 1e-9)
    assert risen > 0


# The corrector iterated: with few corrections steps as long as these are past its stability bound.
INTEGRATORS = {"heuler": "heuler", "hrk4": "hrk4", "ham": HAM(tolerance=1e-3)}


def energies(method, eta, energy):
    epidemic = simulate_disease(seed=0, num_nodes=300)
    torch.manual_seed(0)
    space = PoincareBall(1.0)
    encoder = Encoder(epidemic.features.shape[1], 16, PoincareBall(1.0), space)
    block = HPDEBlock(GraphFlow(space, eta=eta), 16.0, method, step=0.25)
    with torch.no_grad():
        times, states = block.trajectory(encoder(epidemic.features / 4), epidemic.graph)
        return dict(zip(times, energy(states, epidemic.graph, space).tolist(), strict=True))


@pytest.mark.parametrize("method", INTEGRATORS.values(), ids=INTEGRATORS)
def test_energy_falls_without_residual_and_settles_above_zero_with_it(method):
    bare, kept = (energies(method, eta, edge_energy) for eta in (None, (1.0, 0.4, 0.1)))
    assert bare[16.0] < 0.05 * bare[0.0], "without residual joined nodes become one"
    assert bare[16.0] < bare[12.0] < bare[8.0] < bare[4.0], "and go on doing so"
    assert kept[16.0] > 3 * bare[16.0], "with residual they do not"
    assert abs(kept[16.0] - kept[12.0]) < 0.05 * kept[12.0], "but settle"
