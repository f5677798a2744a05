import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from hgde.geometry import PoincareBall
from hgde.graph import Graph
from hgde.graph.measures.distortion import graph_distortion


def binary_tree(levels: int) -> Graph:
    nodes = 2**levels - 1
    return Graph.from_edges([((child - 1) // 2, child) for child in range(1, nodes)], nodes)


def test_an_isometry_has_none_whatever_its_scale():
    graph = binary_tree(5)
    hops = torch.from_numpy(np.array([[_hops(u, v) for v in range(31)] for u in range(31)], dtype=np.float64))
    assert graph_distortion(graph, lambda u, v: 7.5 * hops[u, v]) == pytest.approx(0.0, abs=1e-12)


def test_it_is_the_least_over_scales():
    graph, place = binary_tree(4), torch.rand(15, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pairs = [(u, v) for u in range(15) for v in range(15) if u != v]
    ratio = np.array([float((place[u] - place[v]).norm()) / _hops(u, v) for u, v in pairs])
    least = minimize_scalar(lambda s: np.abs(s * ratio - 1).mean(), bounds=(0, 100), method="bounded").fun
    found = graph_distortion(graph, lambda u, v: (place[u] - place[v]).norm(dim=-1))
    assert found == pytest.approx(least, rel=1e-6)


def test_points_in_one_place_have_the_largest():
    assert graph_distortion(binary_tree(4), lambda u, _: torch.zeros(u.shape)) == 1.0


def test_a_star_fits_the_disk_and_not_the_plane():
    """Far from the centre, leaves are twice as far from each other as from it, in whatever direction they lie."""
    star, ball = Graph.from_edges([(0, leaf) for leaf in range(1, 41)], 41), PoincareBall(1.0)
    angle = torch.linspace(0, 2 * np.pi, 41, dtype=torch.float64)[:-1]
    flat = torch.cat([torch.zeros(1, 2, dtype=torch.float64), torch.stack([angle.cos(), angle.sin()], -1)])
    points = ball.expmap0(10 * flat)
    assert graph_distortion(star, lambda u, v: ball.dist(points[u], points[v])) < 0.1
    assert graph_distortion(star, lambda u, v: (flat[u] - flat[v]).norm(dim=-1)) > 0.3


def test_a_graph_without_edges_has_no_distances():
    assert np.isnan(graph_distortion(Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), 3), lambda u, v: u + v))


def _hops(u: int, v: int) -> int:
    steps = 0
    while u != v:
        u, v = (u, (v - 1) // 2) if v > u else ((u - 1) // 2, v)
        steps += 1
    return steps
