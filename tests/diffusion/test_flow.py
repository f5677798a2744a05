"""The flow against its definition, written out pair by pair, and the properties a diffusion must have."""

import pytest
import torch

from hgde.diffusion import (
    DIFFUSIVITIES,
    Diffusivity,
    Global,
    GraphFlow,
    Isotropic,
    LocalRicci,
    Operator,
    make_diffusivity,
)
from hgde.geometry import PoincareBall, ball
from hgde.graph import Graph
from hgde.kernels import EdgeWeights, edge_values

LOCAL = ("isotropic", "attention", "ricci")
ETA = (1.0, 0.6, 0.1)


@pytest.fixture(scope="module")
def graph():
    """A random graph with isolated nodes and self-loops."""
    random = torch.Generator().manual_seed(0)
    pairs = torch.randint(0, 35, (2, 90), generator=random)
    loops = torch.tensor([[3, 8], [3, 8]])
    return Graph.from_edges(torch.cat([pairs, loops], dim=1), 40, self_loops=True)


def points(num_nodes, width=4, c=0.7, dtype=torch.float64, seed=1):
    random = torch.Generator().manual_seed(seed)
    tangent = 0.4 * torch.randn(num_nodes, width, generator=random, dtype=torch.float64)
    return ball.expmap0(tangent, c).to(dtype)


def make_flow(name, width=4, eta=ETA, c=0.7, dtype=torch.float64, **options):
    torch.manual_seed(0)
    flow = GraphFlow(PoincareBall(c, learnable=True), make_diffusivity(name, width, **options), eta)
    return flow.to(dtype)


def literal_flow(flow, z, graph, z0):
    """Log maps of single edges, and of all pairs for the global part, straight from the definition."""
    c = flow.manifold.c.detach()
    operator = flow.diffusivity(z, graph, flow.manifold)
    weights = edge_values(graph, operator.local, backend="reference")
    weights = weights if weights.dim() == 2 else weights[:, None]
    logs = ball.logmap(z[graph.rows], z[graph.indices], c)
    v = torch.zeros_like(z).index_add(0, graph.rows, weights * logs)
    if operator.everywhere is not None:
        table = torch.einsum("ihd,jhd->hij", operator.everywhere.query, operator.everywhere.key).sigmoid()
        table = (table / table.sum(-1, keepdim=True)).mean(0)
        pairs = ball.logmap(z[:, None], z[None], c)
        v = (1 - operator.beta) * v + operator.beta * (table[..., None] * pairs).sum(1)
    moved = ball.expmap(z, v, c)
    return moved if flow.eta is None else ball.gyromidpoint((moved, z, z0), torch.tensor(flow.eta, dtype=z.dtype), c)


@pytest.mark.parametrize("eta", [None, ETA])
@pytest.mark.parametrize("name", LOCAL)
def test_fused_edges_equal_single_log_maps(name, eta, graph):
    flow, z, z0 = make_flow(name, eta=eta), points(40), points(40, seed=2)
    with torch.no_grad():
        torch.testing.assert_close(flow(z, graph, z0), literal_flow(flow, z, graph, z0), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-6), (torch.float64, 1e-10)])
@pytest.mark.parametrize("name", ["global", "local-global"])
def test_streamed_pairs_equal_a_dense_table(name, dtype, bound, graph):
    flow, z = make_flow(name, heads=2, beta=0.7, dtype=dtype), points(40, dtype=dtype)
    with torch.no_grad():
        torch.testing.assert_close(flow(z, graph), literal_flow(flow, z, graph, z), rtol=0, atol=bound)


@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_relabelling_nodes_relabels_the_output(name, graph):
    flow, z = make_flow(name), points(40)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        moved = flow(z, graph)
        torch.testing.assert_close(flow(z[order], graph.subgraph(order)), moved[order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("eta", [None, ETA])
@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_a_consensus_stays_put(name, eta, graph):
    flow = make_flow(name, eta=eta)
    z = points(1).expand(40, -1).contiguous()
    with torch.no_grad():
        torch.testing.assert_close(flow(z, graph), z, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LOCAL)
def test_isolated_nodes_stay_where_they_are(name, graph):
    alone = graph.degree == 0
    assert int(alone.sum()) >= 5
    z = points(40)
    with torch.no_grad():
        torch.testing.assert_close(make_flow(name, eta=None)(z, graph)[alone], z[alone], rtol=0, atol=1e-14)


@pytest.mark.parametrize("eta", [None, ETA])
@pytest.mark.parametrize("num_nodes", [0, 1])
@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_no_node_and_one_node(name, num_nodes, eta):
    nothing = Graph.from_edges([], num_nodes)
    z = points(num_nodes)
    with torch.no_grad():
        torch.testing.assert_close(make_flow(name, eta=eta)(z, nothing), z, rtol=0, atol=1e-14)


def test_one_node_with_a_loop():
    looped = Graph.from_edges([(0, 0)], 1, self_loops=True)
    z = points(1)
    with torch.no_grad():
        torch.testing.assert_close(make_flow("isotropic", eta=None)(z, looped), z, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_every_parameter_gets_a_finite_gradient(name, graph):
    flow = make_flow(name, heads=2, learn_beta=True)
    z = points(40).requires_grad_()
    flow(z, graph, points(40, seed=5)).square().sum().backward()
    for label, parameter in [*flow.named_parameters(), ("z", z)]:
        assert parameter.grad is not None, label
        assert torch.isfinite(parameter.grad).all(), label


def test_beta_goes_from_the_local_to_the_global_part(graph):
    z = points(40)
    local = make_flow("isotropic")
    with torch.no_grad():
        torch.testing.assert_close(make_flow("global", beta=0.0)(z, graph), local(z, graph), rtol=0, atol=1e-12)
        everywhere = make_flow("global", beta=1.0)
        without_edges = Graph.from_edges([], 40)
        torch.testing.assert_close(everywhere(z, graph), everywhere(z, without_edges), rtol=0, atol=1e-12)


def test_a_trained_beta_starts_where_it_was_set():
    module = Global(4, Isotropic(), beta=0.3, learn_beta=True)
    assert float(module.beta.detach()) == pytest.approx(0.3, abs=1e-6)


class Uniform(Diffusivity):
    """A diffusivity of one's own, which counts how often it is asked."""

    constant_in_time = True

    def __init__(self):
        super().__init__()
        self.asked = 0

    def forward(self, z, graph, manifold):
        self.asked += 1
        return Operator(local=EdgeWeights((1 / graph.degree.to(z.dtype))[graph.rows]))


def test_ones_own_diffusivity_and_activation(graph):
    flow = GraphFlow(PoincareBall(1.0), Uniform(), eta=None, activation=lambda v: 0.0 * v).double()
    z = points(40, c=1.0)
    torch.testing.assert_close(flow(z, graph), z, rtol=0, atol=1e-14)


def test_weights_that_are_constant_in_time_are_asked_for_once(graph):
    flow = GraphFlow(PoincareBall(1.0), Uniform()).double()
    bound = flow.bind(points(40, c=1.0), graph)
    for _ in range(3):
        bound(0.0, points(40, c=1.0))
    assert flow.diffusivity.asked == 1


def test_rows_of_weights_sum_to_one(graph):
    for name in ("attention", "ricci"):
        flow = make_flow(name)
        values = edge_values(graph, flow.diffusivity(points(40), graph, flow.manifold).local).detach()
        values = values if values.dim() == 2 else values[:, None]
        sums = torch.zeros(40, values.shape[1], dtype=values.dtype).index_add(0, graph.rows, values)
        torch.testing.assert_close(sums[graph.degree > 0], torch.ones_like(sums[graph.degree > 0]))


def test_unknown_names_and_wrong_weights_are_refused():
    with pytest.raises(ValueError, match="unknown diffusivity 'globl'; known are isotropic"):
        make_diffusivity("globl", 4)
    with pytest.raises(ValueError, match="three weights"):
        GraphFlow(PoincareBall(1.0), eta=(1.0, 2.0))


def test_ricci_weights_survive_an_mlp_with_enormous_outputs():
    """One table serves every row: a row far below its maximum must still sum to one, with a finite gradient."""
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 3)])
    diffusivity = LocalRicci(4)
    with torch.no_grad():
        diffusivity.mlp[2].weight.mul_(3000)
    local = diffusivity(torch.zeros(6, 4), graph, PoincareBall()).local
    weights = local.scale[graph.rows] * local.table[local.index]
    sums = torch.zeros(6, 4).index_add(0, graph.rows, weights)
    torch.testing.assert_close(sums, torch.ones(6, 4))
    weights.square().sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in diffusivity.parameters())
