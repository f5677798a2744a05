"""The operator by itself, from weights given by hand; what is left out; bounds of flows whose residual is all."""

import inspect
import math

import pytest
import torch

from hgde.diffusion import DIFFUSIVITIES, GraphFlow, make_diffusivity
from hgde.diffusion.diffusivity import LOCAL
from hgde.diffusion.operator import GlobalWeights, Operator
from hgde.diffusion.stability import Stability, real_limit, stability
from hgde.geometry import Euclidean, PoincareBall
from hgde.graph import Graph
from hgde.kernels import EdgeWeights
from hgde.kernels.linear import line_slope
from hgde.solvers.registry import resolve

#: ``0 -> 1``, ``2 -> 1`` and ``1 -> 2``; node 3 is alone.
GRAPH = Graph.from_edges([(0, 1), (1, 2)], 4)


def weights_of(graph, origin=None):
    values = 0.1 + 0.1 * torch.arange(graph.num_edges, dtype=torch.float64)
    return EdgeWeights(values, origin)


def everywhere(count, width=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return GlobalWeights(*torch.randn(2, count, 1, width, generator=generator, dtype=torch.float64))


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("with_origin", [False, True])
def test_row_sums_count_the_edges_the_origin_and_all_pairs(mixed, with_origin):
    origin = torch.tensor([0.5, 0.0, 2.0, 1.0], dtype=torch.float64)
    local = weights_of(GRAPH, origin if with_origin else None)
    operator = Operator(local, everywhere(4) if mixed else None, 0.3 if mixed else 0.0)
    expected = [0.0] * 4
    share = 0.7 if mixed else 1.0
    for row, value in zip(GRAPH.rows.tolist(), local.values.tolist(), strict=True):
        expected[row] += share * value
    for node in range(4):
        expected[node] += share * float(origin[node]) * with_origin + 0.3 * mixed
    assert operator.row_sums(GRAPH).tolist() == pytest.approx(expected)
    assert operator.edges(GRAPH).tolist() == pytest.approx([share * v for v in local.values.tolist()])


@pytest.mark.parametrize("mixed", [False, True])
def test_the_tangent_sum_in_flat_space_is_a_sum_over_neighbours_the_origin_and_all_pairs(mixed):
    z = torch.randn(4, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    origin = torch.tensor([0.5, 0.0, 2.0, 1.0], dtype=torch.float64)
    local, far = weights_of(GRAPH, origin), everywhere(4)
    operator = Operator(local, far if mixed else None, 0.3)
    near = -origin[:, None] * z
    for row, column, value in zip(GRAPH.rows, GRAPH.indices, local.values, strict=True):
        near[row] = near[row] + value * (z[column] - z[row])
    affinity = torch.sigmoid(far.query[:, 0] @ far.key[:, 0].T)
    table = affinity / affinity.sum(1, keepdim=True)
    expected = 0.7 * near + 0.3 * (table @ z - z) if mixed else near
    torch.testing.assert_close(operator.tangent_sum(z, GRAPH, Euclidean()), expected)
    assert (operator.edges_alone is None) == mixed


def test_without_a_local_part_edges_weigh_nothing():
    operator = Operator(everywhere=everywhere(4), beta=0.4)
    assert operator.edges(GRAPH).tolist() == [0.0] * GRAPH.num_edges
    torch.testing.assert_close(operator.row_sums(GRAPH), torch.full((4,), 0.4))


def test_the_slope_of_the_linear_form_leaves_no_weight_negative_and_is_no_smaller_than_needed():
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 30, 2, 3, generator=generator, dtype=torch.float64)
    for scale in (0.01, 3.0):
        slope = line_slope(scale * query, key)
        reach = scale * query.norm(dim=-1).amax(0) * key.norm(dim=-1).amax(0)
        assert slope.shape == (2, 1)
        assert slope[:, 0].tolist() == pytest.approx([min(0.25, 0.5 / float(r)) for r in reach])
    assert line_slope(0 * query, key)[:, 0].tolist() == [0.25, 0.25]


@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_the_width_that_is_left_out_is_sixteen(name):
    """Of every kind that has parameters; the others take any."""
    width = inspect.signature(DIFFUSIVITIES.get(name)).parameters["width"].default
    module = DIFFUSIVITIES.get(name)().double()
    z = PoincareBall().expmap0(
        0.3 * torch.randn(4, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    )
    moved = GraphFlow(PoincareBall(), module)(z, GRAPH)
    assert moved.shape == (4, 16)
    assert width == 16 or not list(module.parameters())


def test_the_residual_that_is_left_out_is_the_papers():
    assert GraphFlow(PoincareBall()).eta == (1.0, 0.6, 0.1)
    assert isinstance(GraphFlow(PoincareBall()).diffusivity, DIFFUSIVITIES.get("isotropic"))
    assert GraphFlow(PoincareBall()).activation == "identity"


def test_local_diffusivities_are_those_on_edges_alone():
    assert set(LOCAL) == set(DIFFUSIVITIES) - {"global", "linear-global", "local-global"}
    for name in LOCAL:
        assert LOCAL.get(name) is DIFFUSIVITIES.get(name)
        made = make_diffusivity("local-global", 3, local=name)
        assert isinstance(made.local, LOCAL.get(name))


def bound_of(eta, step, method="euler"):
    z = torch.zeros(4, 2, dtype=torch.float64)
    return stability(GraphFlow(Euclidean(), eta=eta).bind(z, GRAPH), resolve(method, {}), step).bound


def test_no_flow_is_stable_where_the_start_alone_pulls_too_far():
    """``(limit total - eta_3) / (2 eta_1)``: below zero it is zero; without a step there is nothing to bound."""
    limit = real_limit(resolve("euler", {}), 3.0)
    assert limit == pytest.approx(2 / 3, rel=1e-2)
    assert bound_of((1.0, 0.0, 0.5), 3.0) == pytest.approx((1.5 * limit - 0.5) / 2)
    assert bound_of((1.0, 0.0, 9.0), 3.0) == 0.0
    assert bound_of((0.0, 1.0, 1.0), 3.0) == math.inf
    assert bound_of((-1.0, 0.0, -0.5), 3.0) == bound_of((1.0, 0.0, 0.5), 3.0), "signs do not matter"


def test_what_is_said_of_stability():
    assert "bound 2" in str(Stability(1.0, 2.0, 1.0, "euler"))
    assert Stability(2.0, 2.0, 1.0, "euler").is_stable
    assert Stability(2.001, 2.0, 1.0, "euler").is_stable, "within a thousandth"
    assert not Stability(2.003, 2.0, 1.0, "euler").is_stable
    words = str(Stability(4.0, 2.0, 0.5, "euler"))
    assert "sums to 4" in words
    assert "stable up to 2" in words
    assert "steps of at most 0.25" in words
    assert "rows sum to at most one" in words
    assert "rows sum" not in str(Stability(0.9, 0.5, 0.5, "euler")), "they do already"
