"""The stable bound: what it is for each method, and that a flow beyond it is said so once."""

import logging
import math

import pytest
import torch

from hgde.diffusion import DIFFUSIVITIES, GraphFlow, make_diffusivity
from hgde.diffusion.stability import Stability, real_limit, stability
from hgde.geometry import Euclidean, PoincareBall
from hgde.graph import Graph
from hgde.models import HPDEBlock
from hgde.solvers import SOLVERS, SolverError
from hgde.solvers.registry import resolve

STAR = Graph.from_edges([(0, i) for i in range(1, 171)], 171)


def start(width=2):
    u = 0.1 * torch.randn(171, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return PoincareBall().expmap0(u)


@pytest.mark.parametrize(
    ("method", "limit"), [("heuler", 2.0), ("euler", 2.0), ("midpoint", 2.0), ("heun", 2.0), ("rk4", 2.785)]
)
def test_real_stability_limits_are_the_textbooks(method, limit):
    assert real_limit(resolve(method, {}), 1.0) == pytest.approx(limit, abs=5e-3)
    assert real_limit(resolve(method, {}), 0.25) == pytest.approx(limit / 0.25, rel=5e-3) or method == "heuler"


@pytest.mark.parametrize("method", [name for name in SOLVERS if not resolve(name, {}).adaptive])
def test_below_its_limit_a_method_decays_and_above_it_grows(method):
    """A star, whose Laplacian reaches the Gershgorin bound: the flow at the bound against one 20 % beyond it."""
    pair = Graph.from_edges([(0, 1)], 2)
    limit = real_limit(resolve(method, {}), 1.0)
    if math.isinf(limit):
        pytest.skip(f"{method} is stable for every step, or refuses")
    z = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    sizes = []
    for scale in (0.95, 1.2):
        flow = GraphFlow(Euclidean(), Scaled(scale * limit / 2), eta=None)
        try:
            sizes.append(float(HPDEBlock(flow, 80.0, method)(z, pair).abs().max()))
        except SolverError:
            sizes.append(math.inf)
    assert sizes[0] < 1.0
    assert sizes[1] > 10.0


class Scaled(type(make_diffusivity("isotropic", 1))):
    """Every edge by one number."""

    def __init__(self, weight):
        super().__init__()
        self._known = lambda graph, dtype: torch.full((graph.num_edges,), weight, dtype=dtype)


@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_row_sums_are_sums_of_weights(name):
    torch.manual_seed(0)
    module = make_diffusivity(name, 2).double()
    operator = module(start(), STAR, PoincareBall())
    sums = operator.row_sums(STAR).detach()
    if name == "isotropic-printed":
        assert float(sums.max()) == pytest.approx(math.sqrt(170), rel=1e-9)
    else:
        assert float(sums.max()) <= 1 + 1e-9
        assert float(sums.min()) > 0
    if name == "symmetric":
        own = 1 / (STAR.degree + 1)
        torch.testing.assert_close(sums, 1 - own.double())
    if name == "isotropic":
        torch.testing.assert_close(sums, (STAR.degree / (STAR.degree + 1)).double())


def test_a_loop_of_the_graph_pulls_nothing():
    looped = Graph.from_edges([(0, 1), (0, 0)], 2, self_loops=True)
    operator = make_diffusivity("isotropic", 2)(start()[:2], looped, PoincareBall())
    torch.testing.assert_close(operator.row_sums(looped), torch.tensor([0.5, 0.5], dtype=torch.float64))


def test_the_residual_widens_the_bound():
    bare, mixed = (GraphFlow(PoincareBall(), eta=eta).bind(start(), STAR) for eta in (None, (1.0, 0.6, 0.1)))
    method = resolve("heuler", {})
    assert stability(bare, method, 1.0).bound == pytest.approx(1.0, rel=1e-3)
    assert stability(mixed, method, 1.0).bound == pytest.approx((2 * 1.7 - 0.1) / 2, rel=1e-3)
    assert stability(bare, method, 0.5).bound == pytest.approx(2.0, rel=1e-3)
    assert stability(bare, resolve("dopri5", {}), 1.0).bound == math.inf


def warnings_of(caplog, name, **options):
    caplog.clear()
    block = HPDEBlock(GraphFlow(PoincareBall(), make_diffusivity(name, 2), eta=None), 2.0, **options).double()
    with caplog.at_level(logging.WARNING), torch.no_grad():
        for _ in range(3):
            block(start(), STAR)
    messages = [record.getMessage() for record in caplog.records]
    return [message for message in messages if "unstable" in message]


def test_an_unstable_flow_is_said_once_with_its_bound_and_what_to_choose(caplog):
    (message,) = warnings_of(caplog, "isotropic-printed")
    assert "sums to 13" in message
    assert "stable up to 1" in message
    assert "isotropic" in message
    assert "steps of at most 0.0766" in message
    assert warnings_of(caplog, "isotropic-printed", method="heuler", step=0.05) == []


@pytest.mark.parametrize("name", [name for name in DIFFUSIVITIES if name != "isotropic-printed"])
def test_well_conditioned_weights_are_not_warned_of(name, caplog):
    assert warnings_of(caplog, name) == []


@pytest.mark.parametrize(("row_sum", "advised"), [(1.002, "0.998"), (1.006, "0.994"), (2.0, "0.5"), (3.0, "0.333")])
def test_the_step_that_is_advised_is_stable(row_sum, advised):
    checked = Stability(row_sum, bound=1.0, step=1.0, method="heuler")
    assert f"steps of at most {advised}," in str(checked)
    assert float(advised) * row_sum <= checked.bound
