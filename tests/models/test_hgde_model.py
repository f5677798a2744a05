"""The model's layers against their formulas, and the block against the solver it shortcuts."""

import geoopt
import pytest
import torch
from scipy import sparse
from torch import nn
from torch_geometric.nn import GCNConv

from hgde.data.sets.disease_sim import simulate_disease
from hgde.diffusion import GraphFlow, LocalAttention
from hgde.geometry import Curvature, PoincareBall, ball
from hgde.graph import Graph, SparseFeatures
from hgde.models import HGDE, Encoder, HGDEConv, HPDEBlock, LinkDecoder, NodeDecoder
from hgde.settings import Settings
from hgde.solvers import METHODS, RungeKutta
from hgde.solvers.tableau import DOPRI5
from hgde.training.optimisers import Optimisers

SETTINGS = Settings(width=4, time=3.0, dropout=0.0, dtype="float64")


@pytest.fixture(scope="module")
def epidemic():
    return simulate_disease(seed=0, num_nodes=80)


@pytest.fixture
def features(epidemic):
    return epidemic.features.double() / 4


def make(num_classes=2, **changes):
    torch.manual_seed(0)
    return HGDE.from_settings(SETTINGS.replace(**changes), 16, num_classes)


def test_encoder_is_its_formula(features):
    torch.manual_seed(0)
    source, target = PoincareBall(0.5), PoincareBall(2.0)
    encoder = Encoder(16, 4, source, target, activation="relu").double()
    with torch.no_grad():
        encoder.linear.bias.copy_(torch.tensor([0.1, -0.2, 0.0, 0.3]))
        point = ball.expmap0(ball.logmap0(ball.expmap0(features, 0.5), 0.5) @ encoder.linear.weight, 0.5)
        moved = ball.mobius_add(point, encoder.linear.bias / 0.5**0.5, torch.tensor(0.5, dtype=torch.float64))
        expected = ball.expmap0(torch.relu(ball.logmap0(moved, 0.5)), 2.0)
        torch.testing.assert_close(encoder(features), expected, rtol=1e-10, atol=1e-12)


def test_a_second_layer_of_the_encoder_is_the_same_formula_again(features):
    torch.manual_seed(0)
    source, target = PoincareBall(0.5), PoincareBall(2.0)
    deep = Encoder(16, 4, source, target, activation="tanh", layers=2).double()
    first = torch.tanh(deep.linear.tangent(features))
    expected = ball.expmap0(torch.tanh(ball.logmap0(deep.hidden[0](first), 0.5)), 2.0)
    torch.testing.assert_close(deep(features), expected, rtol=1e-10, atol=1e-12)


def test_state_dropout_acts_in_training_only(features):
    torch.manual_seed(0)
    encoder = Encoder(16, 4, PoincareBall(1.0), PoincareBall(1.0), state_dropout=0.5).double()
    whole = encoder.eval()(features)
    dropped = encoder.train()(features)
    zeros = (dropped == 0).double().mean()
    assert 0.4 < zeros < 0.6
    assert not (whole == 0).any()


def test_link_decoder_is_fermi_dirac():
    decoder = LinkDecoder(PoincareBall(1.0), r=2.0, t=0.5)
    z = torch.tensor([[0.1, 0.2], [-0.3, 0.4]], dtype=torch.float64)
    distance = ball.dist(z[0], z[1], 1.0)
    expected = 1 / (torch.exp((distance**2 - 2.0) / 0.5) + 1)
    torch.testing.assert_close(decoder.probability(z, torch.tensor([[0], [1]]))[0], expected)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_sparse_features_give_what_dense_ones_give(dropout, features, epidemic):
    thin = torch.where(features > 0.1, features, 0.0)
    csr = SparseFeatures.from_scipy(sparse.csr_matrix(thin.numpy()), torch.float64)
    model = make(dropout=dropout).eval()
    torch.testing.assert_close(model(csr, epidemic.graph), model(thin, epidemic.graph), rtol=1e-10, atol=1e-12)
    model.train()
    loss = model(csr, epidemic.graph).square().sum()
    loss.backward()
    assert torch.isfinite(model.encoder.linear.weight.grad).all()


@pytest.mark.parametrize("diffusivity", ["isotropic", "ricci"])
def test_the_shortcut_equals_the_solver(diffusivity, features, epidemic):
    model = make(diffusivity=diffusivity).eval()
    z0 = model.encoder(features)
    solved = model.block.solve(z0, epidemic.graph, [0.0, 3.0]).final
    torch.testing.assert_close(model.block(z0, epidemic.graph), solved, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_recomputing_gives_the_gradient_of_storing(method, features, epidemic):
    gradients = []
    for gradient in ("backprop", "recompute"):
        model = make(method=method, gradient=gradient, diffusivity="attention", time=1.5, step=0.5)
        model(features, epidemic.graph).square().sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for one, two in zip(*gradients, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)


def test_a_method_may_be_an_object(features, epidemic):
    z0 = make().encoder(features).detach()
    flow = GraphFlow(PoincareBall(1.0)).double()
    named, given = (HPDEBlock(flow, 2.0, method) for method in ("dopri5", RungeKutta(DOPRI5)))
    assert torch.equal(named(z0, epidemic.graph), given(z0, epidemic.graph))


def test_a_trajectory_starts_and_ends_where_it_should(features, epidemic):
    model = make(step=0.5, method="rk4").eval()
    z0 = model.encoder(features)
    times, states = model.block.trajectory(z0, epidemic.graph)
    assert times == [0.5 * k for k in range(7)]
    assert torch.equal(states[0], z0)
    torch.testing.assert_close(states[-1], model.block(z0, epidemic.graph))


def test_relabelling_nodes_relabels_the_classes(features, epidemic):
    model = make(diffusivity="local-global").eval()
    order = torch.randperm(80, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        moved = model(features[order], epidemic.graph.subgraph(order))
        torch.testing.assert_close(moved, model(features, epidemic.graph)[order], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("num_nodes", [0, 1])
def test_no_node_and_one_node(num_nodes):
    nothing = Graph.from_edges([], num_nodes)
    assert make().eval()(torch.ones(num_nodes, 16, dtype=torch.float64), nothing).shape == (num_nodes, 2)


def test_the_wrong_decoder_is_named(features, epidemic):
    with pytest.raises(TypeError, match="decodes links"):
        make(None)(features, epidemic.graph)
    with pytest.raises(TypeError, match="decodes node classes"):
        make(2).score_pairs(features, torch.zeros(2, 1, dtype=torch.int64))


def test_weight_decay_is_on_the_feature_matrix_alone():
    model = make(diffusivity="local-global", learn_eta=True)
    parts = Optimisers(model, SETTINGS.replace(weight_decay=0.1, weight_decay_rest=0.0, lr_curvature=0.5)).parts
    adam, radam = parts["adam"], parts["radam"]
    decayed = [p for group in adam.param_groups if group["weight_decay"] for p in group["params"]]
    assert decayed == [model.encoder.linear.weight]
    points = [p for group in radam.param_groups for p in group["params"]]
    assert len(points) == 2
    assert all(isinstance(p, geoopt.ManifoldParameter) for p in points)
    owned = [p for part in parts.values() for group in part.param_groups for p in group["params"]]
    assert sorted(map(id, owned)) == sorted(map(id, model.parameters())), "each parameter in exactly one place"
    curved = [p for m in model.modules() if isinstance(m, Curvature) for p in m.parameters()]
    fast = [p for group in adam.param_groups if group["lr"] == 0.5 for p in group["params"]]
    assert {id(p) for p in fast} == {id(p) for p in curved}


def test_curvatures_are_trained_and_stay_positive(features, epidemic):
    model = make()
    optimisers = Optimisers(model, SETTINGS.replace(lr=0.5))
    before = model.curvatures()
    for _ in range(20):
        optimisers.zero_grad()
        nn.functional.cross_entropy(model(features, epidemic.graph), epidemic.labels).backward()
        optimisers.step()
    after = model.curvatures()
    assert all(after[name] != before[name] and after[name] > 0 for name in before)
    assert make(learn_curvature=False).curvatures() == before
    assert not [name for name, _ in make(learn_curvature=False).named_parameters() if "curvature" in name]


def test_node_decoder_of_the_origin_gives_equal_scores():
    decoder = NodeDecoder(4, 3, PoincareBall(1.0))
    torch.testing.assert_close(decoder(torch.zeros(2, 4)), torch.zeros(2, 3))


class Mixed(nn.Module):
    """A PyG model with a diffusion layer among its own."""

    def __init__(self, diffusivity):
        super().__init__()
        self.first = GCNConv(16, 8)
        self.diffusion = HGDEConv(8, 6, time=2.0, diffusivity=diffusivity)
        self.last = GCNConv(6, 2)

    def forward(self, x, edge_index):
        return self.last(self.diffusion(self.first(x, edge_index).relu(), edge_index), edge_index)


@pytest.mark.parametrize("diffusivity", ["isotropic", "global", LocalAttention(6)])
def test_the_layer_drops_into_a_pyg_model(diffusivity, epidemic):
    torch.manual_seed(0)
    model = Mixed(diffusivity)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(15):
        optimiser.zero_grad()
        scores = model(epidemic.features, epidemic.graph.edge_index)
        loss = nn.functional.cross_entropy(scores, epidemic.labels)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_the_layer_notices_a_changed_graph(epidemic):
    torch.manual_seed(0)
    layer = HGDEConv(16, 4).eval()
    edges = epidemic.graph.edge_index
    with torch.no_grad():
        before = layer(epidemic.features, edges)
        assert torch.equal(layer(epidemic.features, epidemic.graph), before)
        edges[:, :20] = edges[:, 20:40]
        assert not torch.equal(layer(epidemic.features, edges), before)
