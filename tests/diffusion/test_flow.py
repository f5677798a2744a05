"""Properties a diffusion must have, whatever its weights and its space."""

import pickle

import geoopt
import pytest
import torch

from hgde.diffusion import DIFFUSIVITIES, LOCAL, Diffusivity, GraphFlow, Operator, make_diffusivity
from hgde.diffusion.operator import GlobalWeights
from hgde.geometry import Euclidean, GeooptManifold, Lorentz, PoincareBall, Product, ball
from hgde.graph import Graph
from hgde.graph.measures.ricci import ollivier_ricci
from hgde.kernels import EdgeWeights
from hgde.registry import RegistryError
from hgde.sections import SettingsError

ETA = (1.0, 0.6, 0.1)
SPACES = {
    "ball": lambda: PoincareBall(0.7, learnable=True),
    "lorentz": lambda: Lorentz(0.7, learnable=True),
    "euclidean": lambda: Euclidean(2.0),
    "product": lambda: Product([PoincareBall(0.7, learnable=True), Lorentz(0.4), Euclidean()], [2, 1, 1]),
}


@pytest.fixture(scope="module")
def graph():
    """A random graph with isolated nodes and self-loops."""
    random = torch.Generator().manual_seed(0)
    pairs = torch.randint(0, 35, (2, 90), generator=random)
    loops = torch.tensor([[3, 8], [3, 8]])
    return Graph.from_edges(torch.cat([pairs, loops], dim=1), 40, self_loops=True)


def points(num_nodes, width=4, c=0.7, dtype=torch.float64, seed=1, space=None):
    random = torch.Generator().manual_seed(seed)
    tangent = 0.4 * torch.randn(num_nodes, width, generator=random, dtype=torch.float64)
    made = ball.expmap0(tangent, c) if space is None else space.expmap0(tangent).detach()
    return made.to(dtype)


def make_flow(name, width=4, eta=ETA, c=0.7, dtype=torch.float64, space=None, **options):
    torch.manual_seed(0)
    manifold = PoincareBall(c, learnable=True) if space is None else space
    return GraphFlow(manifold, make_diffusivity(name, width, **options), eta).to(dtype)


@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_relabelling_nodes_relabels_the_output(name, graph):
    flow, z = make_flow(name), points(40)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        moved = flow(z, graph)
        torch.testing.assert_close(flow(z[order], graph.subgraph(order)), moved[order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("eta", [None, ETA])
@pytest.mark.parametrize("name", [name for name in DIFFUSIVITIES if name != "symmetric"])
def test_a_consensus_stays_put(name, eta, space, graph):
    manifold = SPACES[space]().double()
    flow = make_flow(name, eta=eta, space=manifold)
    z = points(1, space=manifold).expand(40, -1).contiguous()
    with torch.no_grad():
        torch.testing.assert_close(flow(z, graph), z, rtol=0, atol=1e-12)


@pytest.mark.parametrize("space", SPACES)
def test_the_origin_alone_stays_put_under_symmetric_weights(space, graph):
    manifold = SPACES[space]().double()
    flow = make_flow("symmetric", space=manifold)
    z = manifold.expmap0(torch.zeros(40, 4, dtype=torch.float64)).detach()
    with torch.no_grad():
        torch.testing.assert_close(flow(z, graph), z, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in LOCAL if name != "symmetric"])
def test_isolated_nodes_stay_where_they_are(name, graph):
    alone = graph.degree == 0
    assert int(alone.sum()) >= 5
    z = points(40)
    with torch.no_grad():
        torch.testing.assert_close(make_flow(name, eta=None)(z, graph)[alone], z[alone], rtol=0, atol=1e-14)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("eta", [None, ETA])
@pytest.mark.parametrize("num_nodes", [0, 1])
@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_no_node_and_one_node(name, num_nodes, eta, space):
    nothing = Graph.from_edges([], num_nodes)
    manifold = SPACES[space]().double()
    z = points(num_nodes, space=manifold)
    with torch.no_grad():
        torch.testing.assert_close(make_flow(name, eta=eta, space=manifold)(z, nothing), z, rtol=0, atol=1e-14)


def test_one_node_with_a_loop():
    looped = Graph.from_edges([(0, 0)], 1, self_loops=True)
    z = points(1)
    for name in LOCAL:
        with torch.no_grad():
            torch.testing.assert_close(make_flow(name, eta=None)(z, looped), z, rtol=0, atol=1e-14)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_every_parameter_gets_a_finite_gradient(name, space, graph):
    manifold = SPACES[space]().double()
    options = {"learn_beta": True, "heads": 2} if name not in LOCAL else {}
    flow = make_flow(name, space=manifold, **options)
    z = points(40, space=manifold).requires_grad_()
    flow(z, graph, points(40, seed=5, space=manifold)).square().sum().backward()
    for label, parameter in [*flow.named_parameters(), ("z", z)]:
        assert parameter.grad is not None, label
        assert torch.isfinite(parameter.grad).all(), label


def test_in_flat_space_symmetric_weights_are_the_propagation_of_gcn(graph):
    adjacency = torch.zeros(40, 40, dtype=torch.float64)
    adjacency[graph.rows, graph.indices] = 1.0
    adjacency.fill_diagonal_(1.0)
    scale = adjacency.sum(1).rsqrt()
    propagation = scale[:, None] * adjacency * scale[None]
    z = torch.randn(40, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    flow = GraphFlow(Euclidean(), make_diffusivity("symmetric", 4), eta=None)
    torch.testing.assert_close(flow(z, graph), propagation @ z, rtol=0, atol=1e-13)
    small = 1e-4
    near_flat = GraphFlow(PoincareBall(small), make_diffusivity("symmetric", 4), eta=None)
    torch.testing.assert_close(near_flat(z, graph), propagation @ z, rtol=0, atol=40 * small)


@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_flat_space_is_the_limit_of_the_ball(name, graph):
    tangent = 0.4 * torch.randn(40, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.no_grad():
        flat = make_flow(name, space=Euclidean(2.0))(tangent, graph)
        errors = []
        for c in (1e-3, 1e-5):
            space = PoincareBall(c)
            errors.append(float((make_flow(name, space=space)(space.expmap0(tangent), graph) - flat).abs().max()))
    assert errors[0] < 5e-2
    assert errors[1] < 0.011 * errors[0], "the difference is of the order of the curvature"


def test_beta_goes_from_the_local_to_the_global_part(graph):
    z = points(40)
    local = make_flow("isotropic")
    with torch.no_grad():
        torch.testing.assert_close(make_flow("global", beta=0.0)(z, graph), local(z, graph), rtol=0, atol=1e-12)
        everywhere = make_flow("global", beta=1.0)
        without_edges = Graph.from_edges([], 40)
        torch.testing.assert_close(everywhere(z, graph), everywhere(z, without_edges), rtol=0, atol=1e-12)


def test_a_trained_beta_starts_where_it_was_set():
    module = make_diffusivity("global", 4, beta=0.3, learn_beta=True)
    assert float(module.beta.detach()) == pytest.approx(0.3, abs=1e-6)


class Uniform(Diffusivity):
    """A diffusivity of one's own, which counts how often it is asked."""

    constant_in_time = True

    def __init__(self, options=None, width=0):
        super().__init__()
        self.asked = 0

    def forward(self, z, graph, manifold):
        self.asked += 1
        return Operator(local=EdgeWeights((1 / graph.degree.to(z.dtype))[graph.rows]))


def test_ones_own_diffusivity_and_activation(graph):
    flow = GraphFlow(PoincareBall(1.0), Uniform(), eta=None, activation=lambda v: 0.0 * v).double()
    z = points(40, c=1.0)
    torch.testing.assert_close(flow(z, graph), z, rtol=0, atol=1e-14)
    assert isinstance(make_diffusivity(f"{__name__}:Uniform", 4), Uniform)


def test_weights_that_are_constant_in_time_are_asked_for_once(graph):
    flow = GraphFlow(PoincareBall(1.0), Uniform()).double()
    bound = flow.bind(points(40, c=1.0), graph)
    for _ in range(3):
        bound(0.0, points(40, c=1.0))
    assert flow.diffusivity.asked == 1


def test_what_is_known_of_one_graph_is_not_used_for_another(graph):
    for name in LOCAL:
        flow, z = make_flow(name), points(40)
        other = Graph.from_edges([(i, i + 1) for i in range(39)])
        with torch.no_grad():
            flow(z, graph)
            torch.testing.assert_close(flow(z, other), make_flow(name)(z, other), rtol=0, atol=0)


@pytest.mark.parametrize("space", ["ball", "lorentz"])
def test_rows_of_global_weights_are_what_the_flow_uses(space):
    manifold = SPACES[space]().double()
    z = points(9, space=manifold)
    nodes = torch.arange(9)
    for name in ("global", "linear-global"):
        operator = make_flow(name, space=manifold, heads=2, beta=1.0).diffusivity(z, Graph.from_edges([], 9), manifold)
        assert isinstance(operator.everywhere, GlobalWeights)
        table = operator.everywhere.rows(nodes)
        torch.testing.assert_close(table.sum(1), torch.ones(9, dtype=torch.float64))
        assert bool((table >= 0).all())
    exact = make_flow("global", space=manifold, heads=2, beta=1.0)
    operator = exact.diffusivity(z, Graph.from_edges([], 9), manifold)
    logs = manifold.logmap(z[:, None].expand(-1, 9, -1), z[None].expand(9, -1, -1))
    by_table = (operator.everywhere.rows(nodes)[..., None] * logs).sum(1)
    torch.testing.assert_close(operator.tangent_sum(z, Graph.from_edges([], 9), manifold), by_table)


def test_unknown_names_and_wrong_options_are_refused():
    with pytest.raises(SettingsError, match="unknown diffusivity 'globl'; did you mean 'global'"):
        make_diffusivity("globl", 4)
    with pytest.raises(RegistryError, match="expected a diffusivity"):
        DIFFUSIVITIES.get(3)
    with pytest.raises(SettingsError, match="the diffusivity isotropic has no such setting"):
        make_diffusivity("isotropic", 4, heads=2)
    with pytest.raises(SettingsError, match="at most 1"):
        make_diffusivity("ricci", 4, alpha=1.5)
    with pytest.raises(ValueError, match="three weights"):
        GraphFlow(PoincareBall(1.0), eta=(1.0, 2.0))


def test_ricci_weights_survive_an_mlp_with_enormous_outputs():
    """One table serves every row: a row far below its maximum must still sum to one, with a finite gradient."""
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 3)])
    diffusivity = make_diffusivity("ricci", 4)
    with torch.no_grad():
        diffusivity.mlp[2].weight.mul_(3000)
    weights = diffusivity(torch.zeros(6, 4), graph, PoincareBall()).edges(graph)
    sums = torch.zeros(6, 4).index_add(0, graph.rows, weights)
    torch.testing.assert_close(sums, torch.ones(6, 4))
    weights.square().sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in diffusivity.parameters())


def test_attention_survives_enormous_scores_of_loops_that_are_not_there(graph):
    module = make_diffusivity("attention", 4, self_loops=True).double()
    with torch.no_grad():
        module.target.mul_(1e4)
        module.source.mul_(1e4)
    z = points(40).requires_grad_()
    weights = module(z, graph, PoincareBall(0.7)).edges(graph)
    assert bool(torch.isfinite(weights).all())
    weights.square().sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in (*module.parameters(), z))


def test_a_sphere_of_geoopt_is_trained_on(graph):
    """Points of a sphere are moved so that after diffusing they are near given ones."""
    sphere = GeooptManifold(geoopt.Sphere())
    random = torch.Generator().manual_seed(0)
    start, goal = (torch.nn.functional.normalize(torch.randn(40, 3, generator=random).double(), dim=1) for _ in "ab")
    z = geoopt.ManifoldParameter(start, manifold=geoopt.Sphere())
    flow = GraphFlow(sphere, make_diffusivity("attention", 2), learn_eta=True).double()
    optimiser = geoopt.optim.RiemannianAdam([z, *flow.parameters()], lr=0.15)
    losses = []
    for _ in range(8):
        optimiser.zero_grad()
        loss = sphere.dist(flow(flow(z, graph), graph), goal).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]
    assert all(bool(torch.isfinite(p.grad).all()) for p in flow.parameters())


@pytest.mark.parametrize("activation", ["identity", "relu"])
@pytest.mark.parametrize("name", DIFFUSIVITIES.names())
def test_every_diffusivity_runs_on_a_sphere_of_geoopt(name, activation, graph):
    sphere = GeooptManifold(geoopt.Sphere())
    z = torch.nn.functional.normalize(torch.randn(40, 3, generator=torch.Generator().manual_seed(0)).double(), dim=1)
    z = z.requires_grad_()
    flow = make_flow(name, width=2, space=sphere)
    flow.activation = activation
    moved = flow(z, graph)
    torch.testing.assert_close(moved.norm(dim=1), torch.ones(40, dtype=torch.float64))
    moved[:, 0].sum().backward()
    assert bool(torch.isfinite(z.grad).all())


@pytest.mark.parametrize("name", DIFFUSIVITIES.names())
def test_a_pickled_diffusivity_gives_the_same_weights(name):
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 2)])
    z = PoincareBall().random(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    made = make_diffusivity(name, 3).double()
    kept = pickle.loads(pickle.dumps(made))  # our own bytes
    torch.testing.assert_close(
        kept(z, graph, PoincareBall()).tangent_sum(z, graph, PoincareBall()),
        made(z, graph, PoincareBall()).tangent_sum(z, graph, PoincareBall()),
    )


def test_weights_of_the_residual_can_only_be_trained_where_there_is_one():
    with pytest.raises(ValueError, match="nothing to train without eta"):
        GraphFlow(PoincareBall(), eta=None, learn_eta=True)


@pytest.mark.parametrize("space", ["ball", "euclidean"])
def test_learned_eta_begins_as_the_fixed_one(graph, space):
    """Step, state and start in that order, whether they are trained or not."""
    manifold = SPACES[space]()
    z, z0 = (points(40, seed=seed, space=manifold) for seed in (1, 2))
    fixed, learned = (GraphFlow(manifold, None, ETA, learn_eta=learn).double() for learn in (False, True))
    outputs = learned(z, graph, z0)
    torch.testing.assert_close(outputs, fixed(z, graph, z0), rtol=0, atol=1e-6)  # learned ones were float32
    outputs.square().sum().backward()
    assert (learned.eta.grad.abs() > 0).all()
    with pytest.raises(ValueError, match=r"three weights \(step, state, start\), got 2"):
        GraphFlow(manifold, eta=(1.0, 0.5))


def test_defaults_are_those_of_the_paper():
    """LeakyReLU below zero by 0.2, lazy walks of 1/2, one head, even shares: results were made with these."""
    attention, ricci, mixed = (make_diffusivity(name, 3) for name in ("attention", "ricci", "local-global"))
    assert (attention.heads, attention.negative_slope, attention.self_loops) == (1, 0.2, False)
    assert (ricci.alpha, ricci.self_loops) == (0.5, False)
    assert (mixed.heads, mixed.beta, mixed.beta_logit) == (1, 0.5, None)
    assert (mixed.local.heads, mixed.local.negative_slope) == (1, 0.2)


@pytest.mark.parametrize("self_loops", [False, True])
def test_ricci_on_graphs_of_one_curvature(self_loops):
    """All edges of a ring are alike: a half for each neighbour, whatever the network says of them."""
    ring = Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], 9)
    torch.manual_seed(0)
    module = make_diffusivity("ricci", 3, self_loops=self_loops).double()
    weights = module(points(9, 3), ring, PoincareBall(0.7)).edges(ring)
    if not self_loops:
        torch.testing.assert_close(weights, torch.full_like(weights, 0.5))
    else:
        own = module.mlp(torch.zeros(1, 1).double()).exp()
        curvature = ollivier_ricci(ring, alpha=0.5, cache=False)
        pull = module.mlp(curvature[:1, None]).exp()
        torch.testing.assert_close(weights, (pull / (2 * pull + own)).expand_as(weights))
