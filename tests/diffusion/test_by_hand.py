"""Every registered diffusivity against the paper's formulas, node by node: values and gradients, on both paths."""

from functools import cache

import by_hand
import pytest
import torch

from hgde.diffusion import DIFFUSIVITIES, LOCAL, GraphFlow, make_diffusivity
from hgde.geometry import Lorentz, PoincareBall
from hgde.graph import Graph
from hgde.graph.measures.ricci import ollivier_ricci
from hgde.kernels import set_backend
from hgde.kernels.linear import landmark_halves
from hgde.sections import choose

WIDTH, COUNT = 3, 14
ETA = (1.0, 0.6, 0.1)
ALPHA = 0.3

#: What each entry is tried with: never only its defaults.
OPTIONS = {
    "isotropic": [{}],
    "symmetric": [{}],
    "isotropic-printed": [{}, {"self_loops": True}],
    "attention": [{"heads": 3, "negative_slope": 0.3}, {"heads": 2, "self_loops": True}],
    "ricci": [{"alpha": ALPHA}, {"alpha": ALPHA, "self_loops": True}],
    "global": [{"heads": 3, "beta": 0.7}],
    "linear-global": [{"heads": 2, "beta": 0.3, "landmarks": 5}, {"beta": 0.3}],
    "local-global": [
        {"heads": 2, "beta": 0.4, "local": {"name": "attention", "heads": 3}},
        {"beta": 0.4, "learn_beta": True, "local": {"name": "ricci", "alpha": ALPHA}},
        {"beta": 0.2, "local": {"name": "symmetric"}},
        {"beta": 0.2, "local": {"name": "isotropic-printed"}},
    ],
}
CASES = [(name, options) for name, several in OPTIONS.items() for options in several]


def test_every_registered_diffusivity_is_tried():
    assert set(OPTIONS) == set(DIFFUSIVITIES)
    assert set(LOCAL) < set(DIFFUSIVITIES)


def directed_hub(weighted):
    """A hub with ten spokes in, three out, a path back, a loop of its own, a node that none reach, an isolated one."""
    pairs = [(j, 0) for j in range(1, 11)] + [(0, 1), (0, 2), (0, 5), (1, 2), (2, 3), (3, 4), (4, 1), (6, 7), (7, 12)]
    pairs += [(12, 8), (12, 12), (5, 3)]
    weights = [0.3 + 0.17 * (7 * k % 11) for k in range(len(pairs))] if weighted else [1.0] * len(pairs)
    key = sorted(range(len(pairs)), key=lambda k: (pairs[k][1], pairs[k][0]))
    sources = torch.tensor([pairs[k][0] for k in key])
    targets = torch.tensor([pairs[k][1] for k in key])
    indptr = torch.zeros(COUNT + 1, dtype=torch.int64)
    indptr[1:] = torch.bincount(targets, minlength=COUNT).cumsum(0)
    values = torch.tensor([weights[k] for k in key], dtype=torch.float64)
    graph = Graph(indptr, sources, values if weighted else None)
    return graph, {(t, s): w for (s, t), w in zip(pairs, weights, strict=True)}


def points(c, seed):
    random = torch.Generator().manual_seed(seed)
    u = 0.5 * torch.randn(COUNT, WIDTH, generator=random, dtype=torch.float64)
    return PoincareBall(c).expmap0(u)


def local_rule(name, options, module, near, z, c, graph):
    table = ollivier_ricci(graph, alpha=ALPHA, cache=False) if name == "ricci" else None
    curvature = {}
    if table is not None:
        curvature = {(int(i), int(j)): float(k) for i, j, k in zip(graph.rows, graph.indices, table, strict=True)}
        curvature |= {(i, i): 0.0 for i in range(COUNT)}
    rule = {
        "isotropic": by_hand.isotropic,
        "symmetric": by_hand.symmetric,
        "isotropic-printed": by_hand.printed,
        "attention": by_hand.attention,
        "ricci": by_hand.ricci,
    }[name]
    loops = options.get("self_loops", False)
    return lambda i: rule(near, i, z=z, c=c, module=module, curvature=curvature, self_loops=loops)


def expected(flow, name, options, graph, edges, z, z0, c):
    near, module = by_hand.Neighbourhoods(edges, COUNT), flow.diffusivity
    if name in LOCAL:
        return by_hand.flow(z, z0, near, c, flow.eta, local_rule(name, options, module, near, z, c, graph))
    chosen = options.get("local", {"name": "isotropic"})
    rule = local_rule(chosen["name"], chosen, module.local, near, z, c, graph)
    beta = torch.sigmoid(module.beta_logit) if options.get("learn_beta") else options["beta"]
    halves = None
    if "landmarks" in options:
        halves = [half.tolist() for half in landmark_halves(COUNT, options["landmarks"])]
    return by_hand.flow(z, z0, near, c, flow.eta, rule, beta, module, halves)


def make_flow(manifold, name, options, eta=ETA):
    torch.manual_seed(0)
    return GraphFlow(manifold, make_diffusivity(name, WIDTH, **options), eta).double()


def gradients(outputs, flow, inputs):
    random = torch.Generator().manual_seed(9)
    direction = torch.randn(outputs.shape, generator=random, dtype=torch.float64)
    wanted = [*inputs, *flow.diffusivity.parameters()]
    return torch.autograd.grad((outputs * direction).sum(), wanted)


@cache
def worked_out(case, weighted):
    """What the formulas give on a graph: values, gradients, and the parameters they were worked out for."""
    name, options = CASES[case]
    graph, edges = directed_hub(weighted)
    flow = make_flow(PoincareBall(0.7), name, options)
    z, z0 = (points(0.7, seed).requires_grad_() for seed in (1, 2))
    hand = expected(flow, name, options, graph, edges, z, z0, 0.7)
    return hand.detach(), gradients(hand, flow, (z, z0)), list(flow.diffusivity.parameters())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_ball_by_both_backends(name, options, weighted):
    graph, _ = directed_hub(weighted)
    flow = make_flow(PoincareBall(0.7), name, options)
    z, z0 = (points(0.7, seed).requires_grad_() for seed in (1, 2))
    hand, by_hand_gradients, _ = worked_out(CASES.index((name, options)), weighted)
    for backend in ("auto", "reference"):
        set_backend(backend)
        try:
            mine = flow(z, graph, z0)
            found = gradients(mine, flow, (z, z0))
        finally:
            set_backend("auto")
        torch.testing.assert_close(mine, hand, rtol=0, atol=1e-10)
        for one, two in zip(found, by_hand_gradients, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_lorentz(name, options):
    graph, _ = directed_hub(True)
    ball, space = PoincareBall(0.7), Lorentz(0.7)
    flow = make_flow(space, name, options)
    hand, by_hand_gradients, parameters = worked_out(CASES.index((name, options)), True)
    assert all(map(torch.equal, flow.diffusivity.parameters(), parameters))
    z, z0 = (points(0.7, seed).requires_grad_() for seed in (1, 2))
    lifted = [space.expmap0(ball.logmap0(x)) for x in (z, z0)]
    mine = ball.expmap0(space.logmap0(flow(lifted[0], graph, lifted[1])))
    torch.testing.assert_close(mine, hand, rtol=0, atol=1e-9)
    for one, two in zip(gradients(mine, flow, (z, z0)), by_hand_gradients, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "tanh", "elu"])
@pytest.mark.parametrize("name", ["isotropic", "ricci"])
def test_activations_are_the_same_on_ball_and_lorentz(activation, name):
    graph, _ = directed_hub(True)
    ball, space = PoincareBall(0.7), Lorentz(0.7)
    z, z0 = points(0.7, 1), points(0.7, 2)
    flows = [make_flow(manifold, name, {}) for manifold in (ball, space)]
    for flow in flows:
        flow.activation = activation
    lifted = [space.expmap0(ball.logmap0(x)) for x in (z, z0)]
    with torch.no_grad():
        other = ball.expmap0(space.logmap0(flows[1](lifted[0], graph, lifted[1])))
        torch.testing.assert_close(other, flows[0](z, graph, z0), rtol=0, atol=1e-10)


def test_ricci_takes_alpha_from_its_settings():
    graph, _ = directed_hub(False)
    chosen = choose(DIFFUSIVITIES, "ricci", {"alpha": 0.0})
    torch.manual_seed(0)
    module = make_diffusivity(chosen, WIDTH).double()
    torch.manual_seed(0)
    other = make_diffusivity("ricci", WIDTH).double()
    z, manifold = points(0.7, 1), PoincareBall(0.7)
    one, two = (m(z, graph, manifold).edges(graph) for m in (module, other))
    assert not torch.allclose(one, two)


def test_a_prepared_graph_is_cached_and_gives_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("HGDE_CACHE", str(tmp_path))
    graph, _ = directed_hub(False)
    other, _ = directed_hub(True)
    z, manifold = points(0.7, 1), PoincareBall(0.7)
    torch.manual_seed(0)
    module = make_diffusivity("ricci", WIDTH, alpha=ALPHA).double()
    with torch.no_grad():
        plain = module(z, graph, manifold).edges(graph)
        assert not list(tmp_path.rglob("*.npz")), "a graph that was not prepared leaves nothing on the disk"
        module.prepare(graph)
        module(z, other, manifold)
        torch.testing.assert_close(module(z, graph, manifold).edges(graph), plain, rtol=0, atol=0)
    assert len(list(tmp_path.rglob("*.npz"))) == 1
