"""The model's layers against their formulas, and the block against the solver it shortcuts."""

import dataclasses

import pytest
import torch
from scipy import sparse
from torch import nn
from torch_geometric.nn import GCNConv

from hgde.data import load
from hgde.data.sets.disease_sim import simulate_disease
from hgde.diffusion import GraphFlow, make_diffusivity
from hgde.geometry import PoincareBall, ball
from hgde.graph import Graph, SparseFeatures
from hgde.models import HGDE, MODELS, Encoder, HGDEConv, HPDEBlock, NodeDecoder, Shape
from hgde.sections import SettingsError, from_dict
from hgde.solvers import SOLVERS, InputError, RungeKutta
from hgde.solvers.tableau import DOPRI5


@pytest.fixture(scope="module")
def epidemic():
    return simulate_disease(seed=0, num_nodes=80)


@pytest.fixture
def features(epidemic):
    return epidemic.features.double() / 4


def make(outputs=2, **changes):
    torch.manual_seed(0)
    settings = from_dict(HGDE.Settings, {"width": 4, "time": 3.0, "dropout": 0.0, **changes})
    return HGDE(settings, Shape(16, 80, outputs)).double()


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


@pytest.mark.parametrize("diffusivity", ["isotropic", "symmetric", "ricci"])
def test_the_shortcut_equals_the_solver(diffusivity, features, epidemic):
    model = make(diffusivity=diffusivity).eval()
    z0 = model.encoder(features)
    solved = model.block.solve(z0, epidemic.graph, [0.0, 3.0]).final
    torch.testing.assert_close(model.block(z0, epidemic.graph), solved, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("method", "space"), [*((name, "ball") for name in SOLVERS), ("hrk4", "lorentz")])
def test_recomputing_gives_the_gradient_of_storing(method, space, features, epidemic):
    gradients = []
    for gradient in ("backprop", "recompute"):
        model = make(solver=method, gradient=gradient, diffusivity="attention", time=1.0, space=space)
        model(features, epidemic.graph).square().sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for one, two in zip(*gradients, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)


def test_a_method_may_be_an_object(features, epidemic):
    z0 = make().encoder(features).detach()
    flow = GraphFlow(PoincareBall(1.0)).double()
    named, given = (HPDEBlock(flow, 2.0, method) for method in ("dopri5", RungeKutta(DOPRI5)))
    assert torch.equal(named(z0, epidemic.graph), given(z0, epidemic.graph))


def test_a_block_refuses_what_its_method_would_ignore():
    flow = GraphFlow(PoincareBall(1.0))
    with pytest.raises(InputError, match="dopri5 chooses its steps by rtol and atol; leave out step"):
        HPDEBlock(flow, 2.0, "dopri5", step=0.5)
    with pytest.raises(InputError, match="heuler has no error estimate"):
        HPDEBlock(flow, 2.0, "heuler", rtol=1e-6)
    assert HPDEBlock(flow, 2.0, "implicit_adams", rtol=1e-6).rtol == 1e-6


@pytest.mark.parametrize("space", ["ball", "lorentz", "product"])
def test_a_trajectory_starts_and_ends_where_it_should(space, features, epidemic):
    model = make(solver={"name": "rk4", "step": 0.5}, space=space).eval()
    times, states = model.trajectory(features, epidemic.graph)
    assert times == [0.5 * k for k in range(7)]
    assert torch.equal(states[0], model.encoder(features))
    torch.testing.assert_close(states[-1], model.embed(features, epidemic.graph))


def test_relabelling_nodes_relabels_the_classes(features, epidemic):
    model = make(diffusivity="local-global").eval()
    order = torch.randperm(80, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        moved = model(features[order], epidemic.graph.subgraph(order))
        torch.testing.assert_close(moved, model(features, epidemic.graph)[order], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("space", ["ball", "lorentz", "euclidean", "product"])
@pytest.mark.parametrize("num_nodes", [0, 1])
def test_no_node_and_one_node(num_nodes, space):
    nothing = Graph.from_edges([], num_nodes)
    assert make(space=space).eval()(torch.ones(num_nodes, 16, dtype=torch.float64), nothing).shape == (num_nodes, 2)


def test_without_outputs_there_are_points_alone(features, epidemic):
    model = make(None)
    assert model.embed(features, epidemic.graph).shape == (80, 4)
    with pytest.raises(TypeError, match="compare points in pairs"):
        model(features, epidemic.graph)
    with pytest.raises(SettingsError, match="hidden_dropout has no effect: links are decoded from the points"):
        make(None, hidden_dropout=0.5)


def test_reading_out_some_nodes_is_reading_out_all(features, epidemic):
    model, nodes = make().eval(), torch.tensor([3, 50, 7])
    z = model.embed(features, epidemic.graph)
    torch.testing.assert_close(model.readout(z[nodes]), model(features, epidemic.graph)[nodes])


def test_curvatures_are_trained_and_stay_positive(features, epidemic):
    model = make()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    before = model.curvatures()
    assert set(before) == {"encoder", "diffusion"}
    for _ in range(20):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(features, epidemic.graph), epidemic.labels).backward()
        optimiser.step()
    after = model.curvatures()
    assert all(after[name] != before[name] and after[name] > 0 for name in before)
    fixed = make(space={"name": "ball", "learn_curvature": False})
    assert fixed.curvatures() == before
    assert not [name for name, _ in fixed.named_parameters() if "curvature" in name]


def test_node_decoder_of_the_origin_gives_equal_scores():
    decoder = NodeDecoder(4, 3, PoincareBall(1.0))
    torch.testing.assert_close(decoder(torch.zeros(2, 4)), torch.zeros(2, 3))


def test_the_first_weights_are_drawn_for_encoder_diffusivity_decoder():
    model = make(diffusivity={"name": "local-global", "local": "attention"}).float()
    torch.manual_seed(0)
    drawn = [torch.empty(16, 4), *(torch.empty(shape) for shape in ((4, 4), (1, 4), (1, 4))), *(torch.empty(4, 4),) * 2]
    drawn.append(torch.empty(4, 2))
    module = model.block.flow.diffusivity
    weights = [
        *(model.encoder.linear.weight, module.local.transform, module.local.target, module.local.source),
        *(module.query, module.key, model.decoder.linear.weight),
    ]
    for weight, empty in zip(weights, drawn, strict=True):
        assert torch.equal(weight, nn.init.xavier_uniform_(torch.empty_like(empty)))


#: A change of every setting, with what else it needs to act.
CHANGES = {
    "width": {"width": 5},
    "space": {"space": "euclidean"},
    "time": {"time": 4.0},
    "solver": {"solver": "rk4"},
    "gradient": None,  # changes memory, not numbers: see the test of recomputing
    "diffusivity": {"diffusivity": "symmetric"},
    "residual": {"residual": False},
    "eta": {"eta": [1.0, 0.1, 0.6]},
    "learn_eta": {"learn_eta": True},
    "activation": {"activation": "tanh"},
    "encoder_layers": {"encoder_layers": 2},
    "encoder_activation": {"encoder_activation": "tanh"},
    "encoder_width": {"encoder_layers": 2, "encoder_width": 3},
    "encoder_bends_last": {"encoder_layers": 2, "encoder_activation": "tanh", "encoder_bends_last": False},
    "dropout": {"dropout": 0.5},
    "state_dropout": {"state_dropout": 0.5},
    "start_distance": {"start_distance": 2.0},
    "hidden_dropout": {"hidden_dropout": 0.5},
    "own_readout": {"own_readout": True},
}


def test_every_setting_changes_what_is_trained(features, epidemic):
    assert set(CHANGES) == {spec.name for spec in dataclasses.fields(HGDE.Settings)}

    def run(**changes):
        model = make(**changes)
        model.begin(features, epidemic.graph)
        loss = nn.functional.cross_entropy(model(features, epidemic.graph), epidemic.labels)
        loss.backward()
        return float(loss.detach()), sum(p.numel() for p in model.parameters())

    plain = run()
    assert run() == plain
    for name, changes in CHANGES.items():
        if changes is not None:
            assert run(**changes) != plain, name


def test_settings_that_cannot_act_are_refused_with_the_reason():
    for name, value in (("eta", [1.0, 0.5, 0.5]), ("learn_eta", True)):
        with pytest.raises(SettingsError, match=f"{name} has no effect: there is no residual"):
            from_dict(HGDE.Settings, {"residual": False, name: value})
    with pytest.raises(SettingsError, match="the diffusivity isotropic has no such setting"):
        from_dict(HGDE.Settings, {"diffusivity": {"heads": 3}})
    with pytest.raises(SettingsError, match="width must be at least 1"):
        from_dict(HGDE.Settings, {"width": 0})


def test_ricci_alpha_is_reached_from_the_settings(features, epidemic):
    outputs = [
        make(diffusivity={"name": "ricci", "alpha": alpha}).eval()(features, epidemic.graph) for alpha in (0.0, 0.5)
    ]
    assert not torch.allclose(*outputs)


def test_the_model_is_registered():
    assert MODELS.get("hgde") is HGDE


class Mixed(nn.Module):
    """A PyG model with a diffusion layer among its own."""

    def __init__(self, diffusivity, space="ball"):
        super().__init__()
        self.first = GCNConv(16, 8)
        self.diffusion = HGDEConv(8, 6, time=2.0, diffusivity=diffusivity, space=space)
        self.last = GCNConv(6, 2)

    def forward(self, x, edge_index):
        return self.last(self.diffusion(self.first(x, edge_index).relu(), edge_index), edge_index)


@pytest.mark.parametrize(
    ("diffusivity", "space"),
    [
        *(("isotropic", "ball"), ("global", "ball"), (make_diffusivity("attention", 6), "ball")),
        *(("isotropic", "lorentz"), ("attention", "product"), ("symmetric", "euclidean")),
    ],
)
def test_the_layer_drops_into_a_pyg_model(diffusivity, space, epidemic):
    torch.manual_seed(0)
    model = Mixed(diffusivity, space)
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


def test_the_layers_options_are_the_diffusivitys():
    assert HGDEConv(16, 4, diffusivity="attention", heads=3).block.flow.diffusivity.heads == 3
    with pytest.raises(ValueError, match="has its options already, got heads"):
        HGDEConv(16, 4, diffusivity=make_diffusivity("attention", 4), heads=3)


@pytest.mark.slow
@pytest.mark.parametrize("diffusivity", ["isotropic", "symmetric", "ricci"])  # the others take minutes
def test_pubmed_with_the_papers_settings_is_finite(diffusivity, data_file):
    """hrk4, T = 16, width 64, in float32: scores and every gradient."""
    dataset = load("pubmed", data_file("pubmed").parent, largest_component=True, row_normalise=True)
    torch.manual_seed(0)
    values = {"width": 64, "time": 16.0, "solver": "hrk4", "diffusivity": diffusivity}
    model = HGDE(from_dict(HGDE.Settings, values), Shape(dataset.features.shape[1], dataset.graph.num_nodes, 3))
    scores = model(dataset.features, dataset.graph)
    nn.functional.cross_entropy(scores[:60], dataset.labels[:60]).backward()
    assert bool(torch.isfinite(scores).all())
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
