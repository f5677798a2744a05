"""Hyperbolic Dirichlet energy: its definition, and how it goes along a diffusion with and without residual."""

import math

import pytest
import torch

from hgde.data.sets.disease_sim import simulate_disease
from hgde.diffusion import dirichlet_energy
from hgde.geometry import ball
from hgde.graph import Graph
from hgde.models import HGDE
from hgde.settings import Settings
from hgde.solvers import HAM
from hgde.training.prepare import make_task


def test_two_nodes_by_hand():
    graph = Graph.from_edges([(0, 1)], 2)
    c = 0.5
    z = ball.expmap0(torch.tensor([[0.3, 0.0], [0.0, -0.4]], dtype=torch.float64), c)
    shrunk = ball.expmap0(torch.tensor([[0.3, 0.0], [0.0, -0.4]], dtype=torch.float64) / math.sqrt(2), c)
    expected = 0.5 * float(ball.dist(shrunk[0], shrunk[1], c)) ** 2
    assert float(dirichlet_energy(z, graph, c)) == pytest.approx(expected, rel=1e-12)


def test_times_of_a_trajectory_are_kept_and_no_edge_means_no_energy():
    states = 0.1 * torch.ones(5, 3, 2)
    assert dirichlet_energy(states, Graph.from_edges([(0, 1)], 3), 1.0).shape == (5,)
    assert float(dirichlet_energy(states[0], Graph.from_edges([], 3), 1.0)) == 0.0
    with pytest.raises(ValueError, match="3 rows, the graph 4 nodes"):
        dirichlet_energy(states, Graph.from_edges([(0, 1)], 4), 1.0)


@pytest.fixture(scope="module")
def task():
    return make_task(simulate_disease(0), Settings(time=4.0))


# The corrector iterated: with a single correction (the default of "ham") steps this long are past its stability bound.
INTEGRATORS = {"heuler": "heuler", "hrk4": "hrk4", "ham": HAM(tolerance=1e-3)}


def energies(task, method, residual):
    torch.manual_seed(0)
    settings = Settings(time=16.0, step=0.25, residual=residual, eta=(1.0, 0.4, 0.1), dropout=0.0)
    model = HGDE.from_settings(settings, task.features.shape[1], 2).eval()
    model.block.method = method
    with torch.no_grad():
        times, states = model.block.trajectory(model.encoder(task.features), task.graph)
        energy = dirichlet_energy(states, task.graph, model.manifold.c).tolist()
    return dict(zip(times, energy, strict=True))


@pytest.mark.parametrize("method", INTEGRATORS.values(), ids=INTEGRATORS)
def test_energy_falls_without_residual_and_settles_above_zero_with_it(method, task):
    bare, kept = energies(task, method, residual=False), energies(task, method, residual=True)
    assert bare[16.0] < 0.01 * bare[0.0], "without residual the nodes become one"
    assert bare[16.0] < bare[12.0] < bare[8.0] < bare[4.0], "and go on doing so"
    assert kept[16.0] > 5 * bare[16.0], "with residual they do not"
    assert abs(kept[16.0] - kept[12.0]) < 0.05 * kept[12.0], "but settle"
